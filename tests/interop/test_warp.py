"""Warp's arrays and kernels: the same memory both ways."""

import numpy as np
import pytest

import xdev


@pytest.fixture
def warp(imported, real_device, without_cuda):
    warp = imported("warp")
    warp.config.quiet = True
    warp.init()
    if real_device.type == "cuda" and not warp.is_cuda_available():
        without_cuda("warp")
    with warp.ScopedDevice(str(real_device)):
        yield warp


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint64", "float32", "float64"])
@pytest.mark.parametrize("take", ["asarray", "to_device"])
def test_arrays_are_taken_without_a_copy(warp, real_device, address, dtype, take):
    theirs = warp.zeros((2, 3), dtype=getattr(warp, dtype))

    with xdev.transfer_guard("disallow"):
        x = getattr(xdev, take)(theirs, device=real_device, copy=False)

    assert xdev.device_of(theirs) == xdev.device_of(x) == real_device
    assert type(x) is type(xdev.zeros(0, device=real_device))
    assert (x.dtype.name, x.shape, address(x)) == (dtype, (2, 3), theirs.ptr)
    x[0, 1] = 1
    assert theirs.numpy().tolist() == [[0, 1, 0], [0, 0, 0]]


def test_dlpack_shares_both_ways_and_vectors_are_rows(warp, real_device, address):
    theirs = warp.zeros(3, dtype=warp.float32)
    x = xdev.from_dlpack(theirs)
    assert address(x) == theirs.ptr
    y = xdev.zeros((4, 5), dtype=xdev.float32, device=real_device)[::2]
    given = warp.from_dlpack(y)
    assert (given.shape, given.ptr) == ((2, 5), address(y))
    theirs.fill_(2.0), given.fill_(2.0)
    warp.synchronize()
    assert (float(xdev.sum(x)), float(xdev.sum(y))) == (6, 20)
    points = warp.array(np.arange(6.0).reshape(2, 3), dtype=warp.vec3)
    x = xdev.asarray(points)
    assert (x.shape, address(x), float(xdev.sum(x))) == ((2, 3), points.ptr, 15)


def test_kernels_read_and_write_in_place(warp, real_device):
    @warp.kernel
    def scale(x: warp.array(dtype=float), out: warp.array(dtype=float)):
        i = warp.tid()
        out[i] = 2.0 * x[i]

    x = xdev.arange(1000, dtype=xdev.float32, device=real_device)
    out = xdev.zeros(1000, dtype=xdev.float32, device=real_device)
    xdev.synchronize(real_device)  # Warp has a stream of its own

    warp.launch(scale, dim=1000, inputs=[x], outputs=[out])
    warp.synchronize()

    np.testing.assert_array_equal(xdev.to_numpy(out), 2 * np.arange(1000))
