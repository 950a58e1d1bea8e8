"""Code is kept on disk under what it depends on, while that is what was compiled."""

import ctypes
import importlib.util
import linecache
import struct

import numpy as np
import pytest

from xdev import _config, _optional
from xdev._disk_cache import DiskCache
from xdev.compile import digests, loops, toolchain
from xdev.compile.elementwise import Elementwise, Operand

CUDA = all(map(_optional.installed, ("cupy", "numba_cuda")))
needs_cuda = pytest.mark.skipif(not CUDA, reason="needs the compilers for CUDA")
MADE = b"\x7fELF\n\x00code", "_Z6kernelv"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(_config, "cache_dir", lambda: tmp_path / "cache")
    return tmp_path


def is_compiled(digest="digest", parts=("ff->f", (9, 0))):
    """Ask for a cubin; return whether it was compiled now."""
    calls = []

    def make():
        calls.append(1)
        return MADE

    assert toolchain.kept(digest, parts, "f", make) == MADE
    return bool(calls)


def test_whatever_a_cubin_depends_on_compiles_it_anew(monkeypatch):
    assert is_compiled()
    assert not is_compiled()
    assert is_compiled(digest="other")
    assert is_compiled(parts=("dd->d", (9, 0)))
    assert is_compiled(parts=("ff->f", (8, 0)))
    versions = toolchain.installed()
    for part in versions:
        newer = {**versions, part: "99.0"}
        with monkeypatch.context() as patch:
            patch.setattr(toolchain, "installed", lambda newer=newer: newer)
            assert is_compiled()
    monkeypatch.setattr(digests, "environment", lambda: "another xdev")
    assert is_compiled()


def test_a_function_without_a_digest_is_compiled_each_time(folder):
    assert is_compiled(digest=None)
    assert is_compiled(digest=None)
    assert not (folder / "cache").exists()


# It calls the C library's mathematics, and something that it may lack.
TEXT = """
declare double @tgamma(double)
declare double @{other}(double)

define double @twice(double %x) {{
  %y = call double @tgamma(double %x)
  %z = call double @{other}(double %y)
  %w = fadd double %z, %z
  ret double %w
}}
"""


def object_file(other):
    llvm = _optional.llvm()
    loops._llvm()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(
        codemodel="jitdefault", reloc="pic"
    )
    return target.emit_object(llvm.parse_assembly(TEXT.format(other=other)))


def kept(name, *binaries):
    """Return the loop of a name, and whether it was made."""
    made = list(binaries)
    found = loops.kept(name, (), name, lambda: (made.pop(), "twice"))
    call = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(found)
    return call, len(made) < len(binaries)


def test_a_loop_on_disk_is_loaded_each_time_anew():
    binary = object_file("floor")
    first, made = kept("one", binary)
    assert made
    second, made = kept("one")
    assert not made
    assert first(4.0) == second(4.0) == 12.0


def test_a_loop_that_calls_what_nobody_has_is_made_again():
    stranger = object_file("xdev_has_no_such_function")
    key = "other"
    assert kept(key, object_file("floor"))[1]
    cache = DiskCache("loops")
    name = next(path.name for path in (_config.cache_dir() / "loops").iterdir())
    cache.save(name, b"twice\n" + stranger, "other")  # as by a Numba that had it
    assert cache.load(name)

    call, made = kept(key, object_file("fabs"))

    assert made
    assert call(4.0) == 12.0


# What was digested is what was compiled.

PROGRAM = """
import math

import numba
import xdev

SCALE = 0.1

@numba.njit
def scaled(x):
    return x * SCALE

@xdev.vectorize
def f(x):
    return scaled(x) * 0.3

@xdev.vectorize
def g(x):
    return scaled(x)

@numba.njit
def halved(x):
    return math.sqrt(x) / 2

@xdev.vectorize
def h(x):
    return halved(x)

def k(i, out):
    out[i] = scaled(out[i])
"""


@pytest.fixture
def load(folder):
    """Return what loads the program, as a process does that starts."""

    def loaded():
        path = folder / "program.py"
        path.write_text(PROGRAM)
        linecache.clearcache()
        spec = importlib.util.spec_from_file_location("program", path)
        program = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(program)
        return program

    return loaded


def codes(folder):
    """Return the loops that are kept."""
    return list((folder / "cache" / "loops").glob("[!.]*"))


X = np.linspace(0, 1, 100, dtype=np.float32)


@needs_cuda
def test_a_global_that_changes_after_typing_is_not_kept(load, folder):
    operands = (
        Operand("Linear", X.dtype, X.dtype),
        Operand("Output", X.dtype, X.dtype),
    )

    def compiled(program):
        spec = program.f.definition.specialise((X.dtype,))
        return program.f._cuda._cubin(spec, Elementwise(operands), (9, 0))

    program = load()
    program.f.definition.specialise((X.dtype,))
    program.SCALE = 2.0
    changed = compiled(program)
    true = compiled(load())

    assert changed != true
    assert len(list((folder / "cache" / "cubins").glob("[!.]*"))) == 1
    assert compiled(load()) == true


@needs_cuda
def test_a_kernel_reads_its_own_globals_where_another_has_the_same_code(load):
    from xdev.compile.grid import Argument, Grid, cuda

    def compiled(scale):
        program = load()
        program.SCALE = scale
        out = Argument(X.dtype, 1, contiguous=True, writable=True)
        return cuda.cubin(Grid(program.k, 1, (out,)), (9, 0))[0]

    for scale in (3.1, 7.7):
        assert struct.pack("<d", scale)[4:] in compiled(scale)
    assert struct.pack("<d", 3.1)[4:] not in compiled(7.7)


def test_a_source_that_changes_after_the_import_is_not_kept(load, folder):
    expected = load().f(X)
    for code in codes(folder):
        code.unlink()  # its typing is still there

    program = load()
    (folder / "program.py").write_text(f"# edited\n{PROGRAM}")
    linecache.clearcache()
    program.f(X)

    assert codes(folder) == []
    np.testing.assert_array_equal(load().f(X), expected, strict=True)
    assert len(codes(folder)) == 1


@pytest.mark.parametrize("first", ["numba", "xdev"])
def test_numbas_code_of_a_global_that_changed_is_not_kept(load, folder, first):
    program = load()
    if first == "numba":
        program.scaled(X[0])
    else:
        program.f(X)
    kept = codes(folder)
    program.SCALE = 2.0
    program.g(X)

    assert codes(folder) == kept
    program = load()
    program.SCALE = 2.0
    np.testing.assert_array_equal(program.g(X), X * np.float32(2), strict=False)
    assert len(codes(folder)) == len(kept) + 1
