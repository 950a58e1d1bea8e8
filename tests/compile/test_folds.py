"""Kernels of reductions, scans and scatters are compiled for every architecture."""

import itertools
import os

import numpy as np
import pytest

from xdev import _optional
from xdev.compile.elementwise import computed, cubin
from xdev.compile.folds import STATISTICS, Reduce, Scan, Scatter

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
ARCHITECTURES = [(7, 5), (8, 0), (9, 0), (10, 0)]

if not all(map(_optional.installed, ("cupy", "numba_cuda"))):
    pytest.skip("needs numba-cuda and CuPy: the group cuda", allow_module_level=True)


def add(x, y):
    return x + y


def both(x, y):
    return x or y


def built(kernel, loop, capability=(9, 0)):
    function = both if loop.kind == "b" else add
    return cubin(kernel, function, (loop, loop), (loop,), capability)[0]


@pytest.mark.parametrize(
    ("char", "group"), [("?", 256), ("e", 32), ("f", 256), ("D", 32)]
)
def test_reductions_along_rows_load_16_bytes_at_a_time(char, group, instructions):
    dtype = np.dtype(char)
    kernel = Reduce(dtype, computed(dtype), dtype, group)

    lines = instructions(built(kernel, computed(dtype)))

    # Four chunks of two words under way; as many, of three words, where misaligned.
    assert sum("LDG.E.128" in line for line in lines) == 20
    assert any("SHFL" in line for line in lines)


@pytest.mark.parametrize(
    "capability",
    ARCHITECTURES if DEEP else ARCHITECTURES[::3],
    ids="sm_{0[0]}{0[1]}".format,
)
def test_every_architecture_has_every_method(capability):
    dtype = np.dtype("e" if capability < (9, 0) else "D")
    loop = computed(dtype)
    types = dtype, loop, dtype
    kernels = [
        Reduce(*types, 1, 2),
        Reduce(*types, 32, 2, masked=True),
        Reduce(*types, 256, 1, masked=True, joining=256),
        Reduce(*types, 1, 2, joining=32),
        Reduce(*types, 32, 1, statistic="count"),
        Reduce(*types, 32, 3, segmented=True),
        Scan(*types, 1, 2),
        Scan(*types, 256, 1),
        Scatter(dtype, dtype, (dtype, dtype), dtype),
    ]
    for kernel in kernels:
        scattered = isinstance(kernel, Scatter)
        code = built(kernel, dtype if scattered else loop, capability)
        assert code[:4] == b"\x7fELF"


@pytest.mark.parametrize("char", "efd" if DEEP else "f")
def test_every_statistic_compiles(char):
    dtype = np.dtype(char)
    loop = computed(dtype)
    for group, statistic in itertools.product((1, 256), STATISTICS[1:]):
        kernel = Reduce(
            dtype, loop, dtype, group, joining=256, statistic=statistic, masked=True
        )
        assert built(kernel, loop)[:4] == b"\x7fELF"


def test_a_scatter_of_one_operand_compiles():
    f = np.dtype("f")

    code, name = cubin(Scatter(f, None, (f,), f), lambda x: -x, (f,), (f,), (9, 0))

    assert code[:4] == b"\x7fELF"
    assert "scatter" in name
