"""``zeros`` on the CPU: zeros in memory that was used, and no page before its use."""

import os
from pathlib import Path

import numpy as np
import pytest

import xdev

LAZY = 32 << 20  # from here on NumPy's zeros are pages that the system makes [B]


def dirtied(nbytes):
    """Leave a block in the pool that is full of ones."""
    xdev.full(nbytes, 255, dtype=xdev.uint8, device="cpu")


def resident():
    """Return how much memory this process has touched [B]."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex128", "i4,f8"])
@pytest.mark.parametrize("nbytes", [0, 144, 1 << 16, 1 << 20, LAZY - 64, LAZY + 4000])
def test_a_used_block_is_cleared(dtype, nbytes):
    shape = (nbytes // np.dtype(dtype).itemsize // 3, 3)
    dirtied(nbytes + 64)

    x = xdev.zeros(shape, dtype=dtype, device="cpu")
    dirtied(nbytes)
    fortran = np.zeros(shape[::-1], dtype).T
    y = xdev.zeros_like(fortran)

    assert (x.shape, x.dtype, y.strides) == (shape, dtype, fortran.strides)
    for made in x, y:
        assert not np.frombuffer(made.tobytes(), np.uint8).any()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux's files")
@pytest.mark.parametrize("used", [False, True])
def test_large_zeros_have_no_memory_before_they_are_used(used):
    xdev.memory.reclaim()
    before = resident()
    if used:
        dirtied(4 * LAZY)

    x = xdev.zeros(4 * LAZY, dtype="uint8", device="cpu")

    assert resident() - before < LAZY
    x[::4096] = 1
    assert int(xdev.sum(x)) == x.size // 4096
