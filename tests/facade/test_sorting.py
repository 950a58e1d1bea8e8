"""Sorting NumPy's arrays gives what NumPy's stable kinds give, bit for bit."""

from itertools import product

import numpy as np
import pytest

import xdev

RANDOM = np.random.default_rng(20251121)
INTEGERS = ["bool", "int8", "uint16", "int32", "uint32", "int64", "uint64", "q"]
FLOATS = ["float16", "float32", "float64"]
DTYPES = [*INTEGERS, *FLOATS, "longdouble", "complex64"]
SHAPES = [(0,), (15,), (5000,), (40, 70), (3, 100, 20), (0, 600)]


def ends(dtype):
    """Return a data type's special values; the signs of zeros and NaN count."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([info.min, info.max, 0, 1, info.max - 1], dtype)
    tiny, inf, nan = np.finfo(dtype).smallest_subnormal, np.inf, np.nan
    values = [0.0, -0.0, nan, -nan, inf, -inf, tiny, -tiny, 1, -1]
    return np.array(values).astype(dtype)


# What is sorted, from random bits.
CONTENTS = {
    "spread": lambda x: x,
    "ties": lambda x: (x.view("u1")[:: x.itemsize] % 5).astype(x.dtype),
    "ends": lambda x: RANDOM.choice(ends(x.dtype), x.size),
    "ordered": lambda x: np.sort(x)[::-1],
    "runs": lambda x: np.concatenate([np.sort(x[::2]), np.sort(x[1::2])]),
}


def array(shape, dtype, content):
    dtype, size = np.dtype(dtype), int(np.prod(shape))
    if dtype.kind == "b":
        x = RANDOM.integers(0, 2, size).astype(dtype)
    elif dtype.kind == "c" or dtype == "longdouble":
        x = RANDOM.integers(-9, 9, size).astype(dtype)
    else:  # all bits, so that there are NaN of all kinds
        x = np.frombuffer(RANDOM.bytes(size * dtype.itemsize), dtype).copy()
    with np.errstate(invalid="ignore", over="ignore"):
        return CONTENTS[content](x).astype(dtype).reshape(shape)


def identical(found, expected):
    assert type(found) is np.ndarray
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.tobytes() == expected.tobytes()


def check(x, axis):
    identical(xdev.sort(x, axis=axis), np.sort(x, axis=axis, stable=True))
    order = np.argsort(x, axis=axis, stable=True)
    identical(xdev.argsort(x, axis=axis), order)
    turned = np.flip(x, axis)
    last = np.argsort(turned, axis=axis, stable=True)
    identical(
        xdev.argsort(x, axis=axis, descending=True),
        x.shape[axis] - 1 - np.flip(last, axis),
    )
    identical(
        xdev.sort(x, axis=axis, descending=True),
        np.flip(np.sort(turned, axis=axis, stable=True), axis),
    )
    for name in ("sort", "argsort"):  # of what is alike, any may come first
        found = getattr(xdev, name)(x, axis=axis, stable=False)
        if name == "argsort":
            found = np.take_along_axis(x, found, axis=axis)
        expected = np.sort(x, axis=axis, stable=True)
        np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_orders_and_copies_are_numpys_stable_ones(dtype):
    for shape, content in product(SHAPES, CONTENTS):
        x = array(shape, dtype, content)
        with np.errstate(all="raise"):
            for axis in range(-x.ndim, x.ndim):
                check(x, axis)


def test_a_copy_has_the_layout_of_what_is_sorted_which_stays():
    x = np.asfortranarray(array((300, 20), "float64", "ends"))

    assert xdev.sort(x, axis=0).flags.f_contiguous
    assert xdev.argsort(x, axis=0).flags.c_contiguous
    for y in (x, array((5000,), "float32", "ends")):
        before = y.tobytes()
        xdev.sort(y), xdev.argsort(y)
        assert y.tobytes() == before


@pytest.mark.parametrize("dtype", DTYPES)
def test_sets_are_numpys(dtype):
    for shape, content in product([(300,), (3, 30, 40)], CONTENTS):
        x = array(shape, dtype, content)
        found = np.sort(xdev.unique_values(x))
        np.testing.assert_array_equal(found, np.unique_all(x).values, strict=True)
