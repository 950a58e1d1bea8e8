"""CUDA's way without a GPU: launches run the CPU's loop on host memory."""

import struct
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest

import xdev
from xdev import _optional
from xdev.compile import indexed as compiled
from xdev.random import kernels

if not _optional.installed("cupy"):
    pytest.skip("needs CuPy: the group cuda", allow_module_level=True)

from xdev.random import cuda, draws
from xdev.ufunc.cuda_operands import Array


def operand(x):
    """Return a host array as an operand on a device."""
    return Array(x, x.ctypes.data, x.shape, x.strides, x.dtype)


@pytest.fixture
def fill(monkeypatch):
    """Return what fills a GPU's arrays, by launches that are the CPU's loops."""

    def launch(kernel, blocks, threads, parameter, values):
        slots = len(values)
        assert slots == 1 + len(kernel.parameters)
        size, _ = struct.unpack_from("qq", parameter, 16 * slots)
        span = compiled.Launch(kernel).span
        assert span == threads * kernel.lanes
        assert blocks * span >= size > (blocks - 1) * span

        def run(given):
            address, *numbers = given
            assert {len(number) for number in numbers} <= {16}
            pairs = zip(kernel.parameters, numbers, strict=True)
            parameters = b"".join(n[: dtype.itemsize] for dtype, n in pairs)
            compiled.loop(kernel)(address, size, parameters)

        return run

    cuda._plan.cache_clear()
    monkeypatch.setattr(cuda, "_loaded", lambda kernel, _: kernel)
    monkeypatch.setattr(cuda.launch, "Launch", launch)
    monkeypatch.setattr(cuda.cuda_streams, "ordered", lambda _: nullcontext(0))
    monkeypatch.setattr(_optional.cupy().cuda, "Device", lambda _: nullcontext())
    monkeypatch.setattr(Array, "cupy", lambda self: self.owner)
    monkeypatch.setattr(cuda, "capability", lambda _: (9, 0))
    monkeypatch.setattr(cuda, "place", lambda _: np)
    monkeypatch.setattr(
        cuda, "read", lambda x, _: operand(x) if isinstance(x, np.ndarray) else x
    )
    yield partial(cuda.fill, xdev.Device("cuda:0"))
    cuda._plan.cache_clear()


CASES = [
    (kernels.uniform64, "d", (-1.5, 4.0)),
    (kernels.normal32, "f", ()),
    (kernels.exponential64, "d", (2.0,)),
    (kernels.few, "b", (2**64 - 5, 11)),
    (kernels.many, "l", (3, 2**40)),
]


@pytest.mark.parametrize(("function", "dtype", "values"), CASES)
@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 5000])
def test_launches_cover_every_element(fill, function, dtype, values, n):
    kernel = kernels.kernel(function, np.dtype(dtype))
    found, expected = (np.zeros(n, dtype) for _ in range(2))

    fill(kernel, found, (2**64 - 1, 7, *values))
    draws.fill_host(kernel, expected, (2**64 - 1, 7, *values))

    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "view", [lambda x: x[::2, 1:], lambda x: x.T, lambda x: x[::-1], lambda x: x[1]]
)
def test_views_are_filled_in_c_order(fill, view):
    kernel = kernels.kernel(kernels.uniform32, np.dtype("f"))
    found, expected = (np.zeros((6, 9), "f") for _ in range(2))

    fill(kernel, view(found), (1, 2))
    draws.fill_host(kernel, view(expected), (1, 2))

    assert found.tobytes() == expected.tobytes()
    assert found.any()
