"""NumPy arrays on the pool: lifetimes, shapes, what is not pooled."""

import copy
import ctypes
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

import xdev
from xdev import memory

FLOAT, POOLED = np.dtype("f4"), 1 << 16  # from here on pooled [B]


def in_use():
    return memory.allocated("cpu", "host")


@given(
    hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=40),
    st.sampled_from(["?", "i1", "<i8", ">f4", "c16", "f2", "M8[s]", "S7", "V3"]),
    st.sampled_from("CF"),
)
def test_an_array_is_as_numpy_makes_it(shape, dtype, order):
    like = np.empty(shape, dtype, order)
    with memory.track():
        array = memory.host_array(shape, np.dtype(dtype), order)
    assert type(array) is np.ndarray
    assert (array.shape, array.dtype) == (like.shape, like.dtype)
    assert array.strides == like.strides
    assert array.flags.c_contiguous == like.flags.c_contiguous
    assert array.flags.writeable
    assert array.flags.aligned
    array[...] = np.zeros((), dtype)
    assert (array == like.__class__(shape, dtype, bytes(like.nbytes))).all()


def test_large_arrays_are_counted_and_small_ones_are_numpys():
    before = in_use()
    small = memory.host_array((POOLED // 4 - 1,), FLOAT)
    assert in_use() == before
    large = memory.host_array((POOLED // 4,), FLOAT)
    assert in_use() == before + POOLED
    assert large.ctypes.data % 64 == 0
    with memory.track():
        tiny = memory.host_array((3,), FLOAT)
        assert in_use() == before + POOLED + 64
    del small, large, tiny
    assert in_use() == before


def test_views_keep_the_memory_and_share_one_hidden_base():
    before = in_use()
    array = memory.host_array((1000, 100), FLOAT)
    array[:] = 5
    views = [array[3:], array.T, array.reshape(-1)[::2], array.view("i4"), array[1][2:]]
    assert type(array.base) is np.ndarray
    assert all(view.base is array.base for view in views)
    del array
    assert in_use() == before + 400_000
    others = [memory.host_array((1000, 100), FLOAT) for _ in range(3)]
    for other in others:
        other[:] = 7
    assert (views[0] == 5).all()
    del views, others, other
    assert in_use() == before


def test_shapes_that_cannot_be_are_refused():
    for shape in ((-1,), (3, -2), (1 << 62,), (1 << 40, 1 << 40)):
        for make in (memory.host_array, memory.pinned_array):
            with pytest.raises(ValueError, match=r"shape \("):
                make(shape, FLOAT)


def test_a_block_cannot_be_pickled_or_copied():
    block = memory.pool("cpu").acquire(100)
    for use in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="memory of this process"):
            use(block)


def test_pinned_memory_needs_a_device_and_says_so():
    if xdev.Device("cuda").available:
        pytest.skip("there is one")
    with pytest.raises(xdev.DeviceUnavailableError):
        memory.pinned_array((10,), FLOAT)
    assert not memory.is_pinned_address(np.empty(10).ctypes.data)


@pytest.mark.cuda
def test_pinned_arrays_are_pinned_and_come_back(cuda):  # noqa: ARG001
    before = memory.allocated("cpu", "pinned")
    array = memory.pinned_array((1000, 10), FLOAT)
    array[:] = 3
    assert memory.is_pinned_address(array.ctypes.data)
    assert memory.is_pinned_address(array[5:].ctypes.data)
    assert not memory.is_pinned_address(np.empty(1000).ctypes.data)
    assert memory.allocated("cpu", "pinned") > before
    del array
    assert memory.allocated("cpu", "pinned") == before


def test_zeros_in_locked_memory_are_zeros():
    x = xdev.ones(5_000_000, device="cpu")
    address, nbytes = x.ctypes.data, x.nbytes
    libc = ctypes.CDLL(None)
    place = ctypes.c_void_p(address + nbytes // 2), ctypes.c_size_t(4096)
    if libc.mlock(*place):
        pytest.skip("the system lets no memory be locked here")
    try:
        del x
        again = xdev.zeros(5_000_000, device="cpu")
        assert again.ctypes.data == address
        assert not again.any()
    finally:
        libc.munlock(*place)
