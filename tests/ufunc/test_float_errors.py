"""Floating point errors that a ufunc tells of, and what is none."""

import warnings

import numpy as np
import pytest

import xdev

PAIRS = {
    "<": (xdev.vectorize(lambda x, y: x < y), np.less),
    ">=": (xdev.vectorize(lambda x, y: x >= y), np.greater_equal),
    "==": (xdev.vectorize(lambda x, y: x == y), np.equal),
    "*": (xdev.vectorize(lambda x, y: (x > 0) * y), lambda x, y: (x > 0) * y),
    "min": (xdev.vectorize(lambda x, y: min(x, 2 * y)), None),
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", PAIRS)
def test_to_compare_with_nan_is_no_error(name, dtype):
    ours, numpys = PAIRS[name]
    for size in (*range(1, 41), 20_000):
        x, y = np.full(size, np.nan, dtype), np.ones(size, dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made = ours(x, y)
            if numpys is not None:
                np.testing.assert_array_equal(made, numpys(x, y))


@pytest.mark.parametrize("size", [1, 9, 40, 20_000])
def test_comparisons_hide_no_other_errors(size):
    masked = xdev.vectorize(lambda x: (x < 1) / x)
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        masked(np.zeros(size))
    root = xdev.vectorize(lambda x: 0 / x)
    with pytest.warns(RuntimeWarning, match="invalid value"):
        root(np.zeros(size))
