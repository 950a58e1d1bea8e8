"""Floating point errors that a ufunc tells of, and what is none.

What it warns of is an error, as everywhere in these tests.
"""

import cmath
import math

import numpy as np
import pytest
from running import same

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
        made = ours(x, y)
        if numpys is not None:
            np.testing.assert_array_equal(made, numpys(x, y))


@pytest.mark.parametrize("size", [1, 9, 40, 20_000])
def test_comparisons_hide_no_other_errors(size):
    for function, words in (
        (lambda x: (x < 1) / x, "divide by zero"),
        (lambda x: 0 / x, "invalid value"),
    ):
        with pytest.warns(RuntimeWarning, match=words):
            xdev.vectorize(function)(np.zeros(size))
    guarded = xdev.vectorize(lambda x: math.log(x) if x > 0 else 0.0)
    # What is not computed is no error.
    assert not guarded(np.linspace(-1, 0, size + 1)).any()


told_apart = xdev.vectorize(lambda x: (np.isfinite(x), np.isnan(x), np.isinf(x)))
by_math = xdev.vectorize(lambda x: (math.isfinite(x), math.isnan(x), math.isinf(x)))
by_cmath = xdev.vectorize(lambda x: (cmath.isfinite(x), cmath.isnan(x), cmath.isinf(x)))


@xdev.guvectorize(["f8[:],b1[:]", "f4[:],b1[:]"], "(n)->(n)")
def finite_rows(x, out):
    for k in range(x.shape[0]):
        out[k] = np.isfinite(x[k])


@xdev.kernel
def finite_points(i, x, out):
    out[i] = math.isfinite(x[i])


SPECIAL = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1e38, 1e-45]


@pytest.mark.parametrize("dtype", ["f4", "f8", "F", "D"])
@pytest.mark.parametrize("size", [1, 9, 63, 20_007])
def test_to_tell_what_is_finite_is_no_error(device, dtype, size):
    complexes = dtype in "FD"
    values = np.resize(np.array(SPECIAL, "f4"), size)
    if complexes:
        both = np.stack([values, np.roll(values, 1)], -1)
        values = both.reshape(-1).view("F")
    values = values.astype(dtype)
    parts = np.isfinite(values), np.isnan(values), np.isinf(values)
    for step in (1, 2):
        x = xdev.asarray(values, device=device)[::step]
        for function in (told_apart, by_cmath if complexes else by_math):
            same(function(x), tuple(part[::step] for part in parts))
        if not complexes:
            out = xdev.zeros(x.shape, dtype=xdev.bool, device=device)
            finite_points[x.shape[0]](x, out)
            for found in (finite_rows(x), out):
                same(found, parts[0][::step])
