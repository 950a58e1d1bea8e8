"""Code is kept on disk under what it depends on, while that is what was compiled."""

import ctypes
import importlib.util
import linecache
import struct

import numpy as np
import pytest

import xdev
from xdev import _config, _optional
from xdev._disk_cache import DiskCache
from xdev.compile import cubins, digests, loops
from xdev.compile.cubins import Elementwise, Operand

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

    assert cubins.load_or_compile(digest, parts, "f", make) == MADE
    return bool(calls)


def test_whatever_a_cubin_depends_on_compiles_it_anew(monkeypatch):
    assert is_compiled()
    assert not is_compiled()
    assert is_compiled(digest="other")
    assert is_compiled(parts=("dd->d", (9, 0)))
    assert is_compiled(parts=("ff->f", (8, 0)))
    versions = cubins.installed()
    for part in versions:
        newer = {**versions, part: "99.0"}
        with monkeypatch.context() as patch:
            patch.setattr(cubins, "installed", lambda newer=newer: newer)
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
    found = loops.load_or_compile(name, (), name, lambda: (made.pop(), "twice"))
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
    from xdev.compile.grid import Argument, Grid
    from xdev.compile.grid_code import cubin

    def compiled(scale):
        program = load()
        program.SCALE = scale
        out = Argument(X.dtype, 1, contiguous=True, writable=True)
        return cubin(Grid(program.k, 1, (out,)), (9, 0))[0]

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


MOST = 80  # modules of ours: each takes a process 0.2 ms

FUNCTION = """
import math
import xdev

SCALE = 2.0

@xdev.vectorize
def shifted(x):
    return x + SCALE

def f(a, x, y):
    return 0.5 * a * shifted(x) + y * 3 - math.sin(x)

def g(x):
    return math.gamma(x) + math.erf(x)
"""

# All is real, the cubin too, but for the driver: a launch is counted. The memory is the
# host's.
ON_CUDA = """
import ctypes, sys
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import xdev, function
import cupy

before = set(sys.modules)
f = xdev.vectorize(function.f)

from xdev import native
from xdev.compile import launch
from xdev.memory.arrays import array_maker
from xdev.ufunc import cuda, cuda_operands

count = []
called = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 11)
called = called(lambda *_: count.append(1) or 0)
stream = ctypes.CFUNCTYPE(ctypes.c_longlong)(lambda: 0)
address = lambda function: ctypes.cast(function, ctypes.c_void_p).value
addresses = address(called), address(stream), 0, 0
native.calls.connect(*addresses, cupy.ndarray, array_maker(), print, False)
launch.capability = lambda _: (9, 0)
kernels = []

def kernel(*cubin):
    kernels.append(cubin)
    return SimpleNamespace(handle=len(cubin[0]))

launch.Kernel = kernel
cuda.BACKEND.count = lambda: 1
cupy.cuda.runtime.setDevice = lambda _: None
cuda.require = lambda: native.module("pool")  # what the bridge into CuPy loads
cuda_operands.ordered = lambda _: nullcontext(0)
cupy.cuda.runtime.getDevice = lambda: 0
memory = []

def allocate(nbytes):
    memory.append(np.zeros(max(nbytes, 1), np.uint8))
    address = memory[-1].ctypes.data
    unowned = cupy.cuda.UnownedMemory(address, nbytes, memory[-1], 0)
    return cupy.cuda.MemoryPointer(unowned, 0)

with cupy.cuda.using_allocator(allocate):
    x = cupy.ndarray((1000,), "f4")
    for number in 1, 2:
        assert f(x, x, x).shape == x.shape
        assert len(count) == number
        print(*(set(sys.modules) - before))
print(kernels)
"""

ON_THE_CPU = """
import sys
import numpy as np
import xdev, function

before = set(sys.modules)
x = np.ones(1000, "f4")
result = xdev.vectorize(function.f)(x, x, x)
assert result.dtype == x.dtype
print(*(set(sys.modules) - before))
print(result.tobytes().hex())
"""


@pytest.fixture
def lines(tmp_path, run):
    """Return the lines that a program prints, with a cache of the test's own."""
    (tmp_path / "function.py").write_text(FUNCTION)
    places = {"XDEV_CACHE_DIR": tmp_path / "cache", "PYTHONPATH": tmp_path}
    return lambda program: run(program, **places).splitlines()


@pytest.mark.parametrize(
    ("program", "rooms"),
    [pytest.param(ON_CUDA, "cuda", marks=needs_cuda), (ON_THE_CPU, "cpu")],
    ids=["cuda", "cpu"],
)
def test_a_kept_function_is_the_same_and_needs_no_compiler(lines, program, rooms):
    *_, first, made = lines(program)
    second, *_, later, kept = lines(program) * 2
    first, second, later = (set(line.split()) for line in (first, second, later))

    assert kept == made
    assert {"numba", "llvmlite"} <= first
    assert "numba" not in later
    assert ("llvmlite" in later) == (rooms == "cpu")  # where LLVM loads what is kept
    own = {name for name in second if name.startswith("xdev.")}
    assert own <= first
    assert len(own) <= MOST
    assert {name for name in ("cpu", "cuda") if f"xdev.ufunc.{name}" in own} == {rooms}


RANDOM = """
import sys
import numpy as np
import xdev

rng = xdev.random.default_rng(7, device="cpu")
chances = [0.1, 0.2, 0.7]
drawn = rng.choice(3, 9, p=chances), rng.choice(3, 2, replace=False, p=chances)
drawn += rng.integers(0, np.arange(1, 10)), rng.normal(size=3)
print(*(x.tobytes().hex() for x in drawn))
print("numba" in sys.modules)
"""


def test_random_numbers_need_no_numba_the_second_time(lines):
    drawn, compiled = lines(RANDOM)

    assert compiled == "True"
    assert lines(RANDOM) == [drawn, "False"]


OF_NUMBAS_LIBRARY = """
import math
import numpy as np
import xdev, function

x = np.linspace(1, 5, 9)
expected = [math.gamma(v) + math.erf(v) for v in x]
assert np.allclose(xdev.vectorize(function.g)(x), expected, rtol=1e-13)
"""


def test_a_function_of_numbas_library_is_found_again(lines):
    """`gamma` is in no C library by that name: Numba brings what the code calls."""
    for _ in range(2):
        lines(OF_NUMBAS_LIBRARY)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(_config, "cache_dir", lambda: tmp_path)
    return tmp_path


def scaled(x):
    return x * 3


def test_dtypes_with_and_without_source_do_not_mix(cache):
    """Literals are weak only where their source is known."""
    x = np.ones(3, np.float32)
    assert xdev.vectorize(scaled)(x).dtype == np.float32
    namespace = {}
    exec("def scaled(x): return x * 3", namespace)  # noqa: S102

    xdev.vectorize(namespace["scaled"])(x)

    assert len(list((cache / "typings").iterdir())) == 1
