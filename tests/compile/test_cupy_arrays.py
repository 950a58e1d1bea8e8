"""What is found out of CuPy's arrays, against what CuPy says of them."""

import ctypes

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes

from xdev import _optional
from xdev.compile import cupy_arrays

if not _optional.installed("cupy"):
    pytest.skip("needs CuPy: the group cuda", allow_module_level=True)


def word(x, at):
    return ctypes.c_int64.from_address(id(x) + at).value


@given(array_shapes(min_dims=0, min_side=0), st.sampled_from("CF"), st.data())
def test_all_that_is_asked_of_an_array_lies_where_it_was_found(shape, order, data):
    cupy, found = _optional.cupy(), cupy_arrays.layout()
    memory = cupy.cuda.UnownedMemory(1 << 20, 1 << 40, None, 0)
    pointer = cupy.cuda.MemoryPointer(memory, data.draw(st.integers(0, 1 << 30)))
    dtype = np.dtype(data.draw(st.sampled_from("?bhilefdFD")))
    x = cupy.ndarray(shape, dtype, pointer, order=order)
    x = data.draw(st.sampled_from([x, x[..., ::2] if x.ndim else x, x.T]))

    assert word(x, found.size) == x.size
    assert word(x, found.dtype) == id(x.dtype)
    assert word(x, found.data) == id(x.data)
    assert word(x.data, found.address) == x.data.ptr
    flag = ctypes.c_int32.from_address(id(x) + found.contiguous).value
    assert flag == x.flags.c_contiguous
    begin, end = word(x, found.shape), word(x, found.shape + 8)
    assert end - begin == 8 * x.ndim
    if x.ndim:
        assert tuple((ctypes.c_int64 * x.ndim).from_address(begin)) == x.shape


def test_nothing_is_said_of_arrays_that_are_otherwise(monkeypatch):
    class Other:
        shape, size, ndim = (3,), 3, 1
        dtype, data = np.dtype("f4"), object()

    monkeypatch.setattr(cupy_arrays, "_probes", lambda: iter([Other()]))
    cupy_arrays.layout.cache_clear()
    assert cupy_arrays.layout() is None
    cupy_arrays.layout.cache_clear()


@pytest.mark.parametrize("other", [None, "array"])
def test_no_maker_is_known_of_another_cupy(monkeypatch, other):
    core = _optional.cupy()._core.core  # "array" takes something else
    table = {cupy_arrays.MAKER: core.__pyx_capi__[other]} if other else {}
    cupy_arrays.maker.cache_clear()
    assert cupy_arrays.maker()
    cupy_arrays.maker.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(core, "__pyx_capi__", table)
        assert not cupy_arrays.maker()
    cupy_arrays.maker.cache_clear()
