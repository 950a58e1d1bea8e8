"""Code is kept under a digest only while what was digested is what was compiled."""

import importlib.util
import linecache
import struct

import numpy as np
import pytest

from xdev import _config, _optional
from xdev.compile.elementwise import Elementwise, Operand

CUDA = all(map(_optional.installed, ("cupy", "numba_cuda")))

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
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(_config, "cache_dir", lambda: tmp_path / "cache")
    return tmp_path


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


@pytest.mark.skipif(not CUDA, reason="needs the compilers for CUDA")
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


@pytest.mark.skipif(not CUDA, reason="needs the compilers for CUDA")
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


def test_code_with_numbas_that_reads_libraries_alone_is_kept(load, folder):
    program = load()
    program.halved(X[0])
    program.h(X)

    assert len(codes(folder)) == 1
