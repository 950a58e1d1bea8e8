"""What compiled loops cannot report to Python is refused before anything is written."""

import math

import numba
import numpy as np
import pytest

import xdev

TABLE = (1.0, 2.0, 3.0)


@numba.njit
def root(x):
    if x < 0:
        raise ValueError("negative")
    return math.sqrt(x)


def outside(x):
    return TABLE[int(x)]


def local(x):
    values = [1.0, 2.0, 3.0]
    return values[int(x)]


def called(x):
    return root(x)


def printed(x):
    y = x + 1
    print(y)  # noqa: T201
    return y


def forced(x):
    with numba.objmode(y="float64"):
        y = x + 1
    return y  # noqa: RET504 - objmode names what it gives


REFUSED = [
    (outside, "may raise IndexError: tuple index out of range", "def outside"),
    (local, "may raise IndexError|new memory is asked for", "def local"),
    (called, "may raise ValueError: negative", 'raise ValueError\\("negative'),
    (printed, "needs the Python interpreter", r"print\(y\)"),
    (forced, "needs the Python interpreter", "def forced"),
]
FORMS = ["kernel", "ufunc", "gufunc"]


def _call(form, function, x, out):
    if form == "ufunc":
        xdev.vectorize(function)(x, out=out)
    elif form == "gufunc":
        inner = numba.njit(function)

        def rows(x, out):
            out[0] = inner(x[0])

        xdev.guvectorize(["void(float64[:], float64[:])"], "(n)->(n)")(rows)(x, out=out)
    else:
        inner = numba.njit(function)

        def points(i, x, out):
            out[i] = inner(x[i])

        xdev.kernel(points)[len(x)](x, out)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("function", "reason", "line"), REFUSED)
def test_functions_that_may_raise_or_print_are_refused(
    form, function, reason, line, capfd
):
    x, out = np.array([0.0, 7.0, 1.0]), np.full(3, -1.0)

    with pytest.raises(TypeError, match=reason) as caught:
        _call(form, function, x, out)
    if form == "ufunc":  # others have the line from which they call the function
        assert caught.match(line)

    assert out.tolist() == [-1, -1, -1]
    assert capfd.readouterr() == ("", "")


def test_what_is_tested_first_is_compiled():
    def looked_up(i):
        return TABLE[i] if 0 <= i < len(TABLE) else math.nan

    x = np.array([0, 7, 2, -9])
    got = xdev.vectorize(looked_up)(x)
    np.testing.assert_array_equal(got, [1, np.nan, 3, np.nan])


@pytest.mark.parametrize("dtype", ["F", "D"])
def test_complex_division_by_zero_is_numpys_and_says_nothing(dtype, capfd):
    x, y = np.array([1 + 1j, 4, 0, 6], dtype), np.array([0, 2, 0, 3], dtype)

    with np.errstate(all="ignore"):
        got = xdev.vectorize(lambda x, y: x / y)(x, y)
        expected = np.divide(x, y)

    bad = y == 0
    np.testing.assert_allclose(got[~bad], expected[~bad])
    np.testing.assert_array_equal(got[bad], expected[bad])
    assert capfd.readouterr() == ("", "")
