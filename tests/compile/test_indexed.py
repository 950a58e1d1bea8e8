"""Kernels over indices: the CPU's loop run, CUDA's compiled and its code read."""

import os
from functools import cache

import numpy as np
import pytest

from xdev import _optional
from xdev.compile.indexed import Indexed, cubin, loop
from xdev.random import kernels
from xdev.random.kernels import words64

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
ARCHITECTURES = [(7, 5), (8, 0), (9, 0), (10, 0)]
CUDA = all(map(_optional.installed, ("cupy", "numba_cuda")))
needs_cuda_compilers = pytest.mark.skipif(
    not CUDA, reason="needs numba-cuda and CuPy: the group cuda"
)


def square(x):
    return x * x


def fours(index, factor):
    i = np.int64(index) * 4
    return square(i) * factor, square(i + 1) * factor, -1.0 * i, 7.5


def one(index, offset):
    return index + offset


def indexed(function, parameters, result, lanes):
    return Indexed(function, tuple(map(np.dtype, parameters)), np.dtype(result), lanes)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 1001])
def test_a_loop_writes_each_element_and_no_other(n):
    fill = loop(indexed(fours, "d", "d", 4))
    out = np.full(n + 2, 99.0)

    fill(out[1:].ctypes.data, n, np.float64(0.5).tobytes())

    i = np.arange(n)
    expected = np.choose(i % 4, [i**2 / 2, i**2 / 2, -(i // 4 * 4), 7.5])
    assert out.tolist() == [99, *expected, 99]


@pytest.mark.parametrize("result", "?bhilBHILfd")
def test_a_loop_casts_to_what_it_writes(result):
    fill = loop(indexed(one, "Q", result, 1))
    out = np.zeros(300, result)

    fill(out.ctypes.data, 300, np.uint64(5).tobytes())

    assert np.array_equal(out, np.arange(5, 305, dtype=np.uint64).astype(result))


@pytest.fixture
def names(instructions):
    """A function that returns the names of a cubin's machine instructions."""

    def found(code):
        lines = (line.split() for line in instructions(code))
        words = (line[line[0].startswith("@")] for line in lines)  # predicates aside
        return [word.rstrip(";") for word in words]

    return found


FLOATS = [
    (kernels.uniform64, "d"),
    (kernels.uniform32, "f"),
    (kernels.exponential32, "f"),
]
OTHERS = [
    (kernels.normal64, "d"),
    (kernels.normal32, "f"),
    (kernels.exponential64, "d"),
    (kernels.few, "l"),
    (words64, "L"),
]


@cache  # for both tests that read it
def compiled(function, result):
    return cubin(kernels.kernel(function, np.dtype(result)), (9, 0))


@needs_cuda_compilers
@pytest.mark.usefixtures("no_disk_cache")
@pytest.mark.parametrize(
    ("function", "result"), FLOATS + (OTHERS if DEEP else OTHERS[::2])
)
def test_cuda_kernels_store_16_bytes_and_read_nothing(function, result, names):
    code, name = compiled(function, result)

    found = names(code)
    assert "indexed" in name
    assert "STG.E.128" in found
    assert not [word for word in found if word.startswith(("LDG", "LDL", "STL"))]


@needs_cuda_compilers
@pytest.mark.usefixtures("no_disk_cache")
@pytest.mark.parametrize(("function", "result"), FLOATS)
def test_cuda_kernels_round_products_before_they_add(function, result, names):
    """So that values equal the CPU's. (Quotients and roots are made of FMAs.)"""
    code, _ = compiled(function, result)

    found = names(code)
    assert [word for word in found if word.startswith(("DMUL", "FMUL"))]
    assert not [word for word in found if word.startswith(("DFMA", "FFMA"))]


@needs_cuda_compilers
@pytest.mark.usefixtures("no_disk_cache")
@pytest.mark.parametrize(
    ("function", "result", "capability"),
    [
        (*kernel, architecture)
        for k, kernel in enumerate([(kernels.many, "l"), (kernels.few, "?")])
        for architecture in (ARCHITECTURES if DEEP else ARCHITECTURES[k::2])
    ],
)
def test_cuda_kernels_compile_for_every_architecture(function, result, capability):
    code, _ = cubin(kernels.kernel(function, np.dtype(result)), capability)

    assert code[:4] == b"\x7fELF"
