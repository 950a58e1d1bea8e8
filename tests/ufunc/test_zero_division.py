"""What Python raises ZeroDivisionError for is infinite or NaN, as in NumPy."""

import os
import warnings
from itertools import product

import numpy as np
import pytest

import xdev

VALUES = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan])
PLANE = np.array([complex(x, y) for x in VALUES for y in VALUES])


@xdev.vectorize
def inverse(a):
    return a**-1


@xdev.vectorize
def cube(a):
    return a + 1, a**-3


@xdev.vectorize
def power(a, n):
    return a**n


@xdev.vectorize
def quotient(a, b):
    return a / b


@xdev.kernel
def inverted(i, x, out):
    out[i] = x[i] ** -1


@xdev.kernel
def divided(i, x, y, out):
    out[i] = x[i] / y[i]


@xdev.guvectorize("(n)->(n)")
def inverses(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i] ** -1


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


@xdev.vectorize
def floored(a, b):
    return a // b


@xdev.vectorize
def rest(a, b):
    return a % b


@xdev.vectorize
def both(a, b):
    return divmod(a, b)


LIKE_NUMPYS = {
    "//": (floored, np.floor_divide),
    "%": (rest, np.remainder),
    "/": (quotient, np.divide),
    "divmod": (both, np.divmod),
}


EACH = [("//", "f4"), ("%", "f8"), ("/", "f4"), ("divmod", "f8"), ("/", "f8")]
DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
if DEEP:
    EACH = list(product(LIKE_NUMPYS, ["f4", "f8"]))
ENDS = {t: (np.finfo(t).max, np.finfo(t).smallest_subnormal) for t in ("f4", "f8")}


def there(x, device):
    return xdev.asarray(x, device=device)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_negative_powers_of_zero(device, dtype):
    x = VALUES.astype(dtype)
    dx = there(x, device)
    out = xdev.full(x.shape, 7.0, dtype=dtype, device=device)
    inverted[x.size](dx, out)
    rest, cubes = cube(dx)

    expected = 1 / x
    for found in inverse(dx), out, inverses(dx), power(dx, -1), power(dx, np.int8(-1)):
        np.testing.assert_array_equal(xdev.to_numpy(found), expected)
    np.testing.assert_array_equal(xdev.to_numpy(rest), x + 1)
    np.testing.assert_allclose(xdev.to_numpy(cubes), 1 / x**3, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_powers_by_an_array_of_ints(device, dtype):
    x = VALUES.astype(dtype)[:, None]
    n = np.arange(-5, 6)
    found = power(there(x, device), there(n, device))
    expected = np.power(x, n.astype("f8"))
    np.testing.assert_allclose(xdev.to_numpy(found), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_complex_quotients_by_zero(device, dtype):
    x = PLANE.astype(dtype)
    for zero in (0j, complex(-0.0, 0.0), complex(0.0, -0.0)):
        y = np.full_like(x, zero)
        out = xdev.full(x.shape, 7.0, dtype=dtype, device=device)
        divided[x.size](there(x, device), there(y, device), out)
        expected = x / y
        for found in out, quotient(there(x, device), there(y, device)):
            np.testing.assert_array_equal(xdev.to_numpy(found), expected)


def test_numbas_own_functions_stay_as_they_were():
    numba = pytest.importorskip("numba")
    inverse(np.ones(3, "f4"))
    inverted[3](np.ones(3), np.ones(3))
    function = numba.njit(lambda a: a**-1)
    xdev.vectorize(lambda x: function(x) + 1)(np.ones(3))  # compiles it
    with pytest.raises(ZeroDivisionError):
        function(0.0)
    floored = numba.njit(error_model="python")(lambda a: 1.0 // a)
    xdev.vectorize(lambda x: floored(x) + 1)(np.ones(3))
    with pytest.raises(ZeroDivisionError):
        floored(0.0)
    with pytest.raises(ZeroDivisionError):
        numba.njit(lambda a, b: a / b)(1j, 0j)


def told(call, *operands):
    """Return the errors that a call warns of, and its results."""
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
        warnings.simplefilter("always")
        results = call(*operands)
    words = {str(w.message).partition(" encountered")[0] for w in caught}
    return words, results


@pytest.mark.parametrize(("operator", "dtype"), EACH)
def test_quotients_tell_of_the_errors_that_numpy_tells_of(operator, dtype):
    ours, numpys = LIKE_NUMPYS[operator]
    values = (0.0, -0.0, 1.0, -5.5, np.inf, np.nan, *ENDS[dtype])
    for size in range(1, 41) if DEEP else (1, 7, 40):  # SIMD code, and what remains
        for a in values:
            for b in values:
                x, y = np.ones((2, size), dtype)
                x[-1], y[-1] = a, b
                found, made = told(ours, x, y)
                expected, right = told(numpys, x, y)
                if operator != "/":  # NumPy's underflow where they divide for a sign
                    expected -= {"underflow"}
                assert found == expected, (size, a, b)
                np.testing.assert_array_equal(made, right)
                # The signs of zeros, too; NaN's is nobody's.
                made, right = np.nan_to_num(made), np.nan_to_num(right)
                np.testing.assert_array_equal(np.signbit(made), np.signbit(right))


@pytest.mark.parametrize(("operator", "dtype"), EACH)
def test_quotients_of_any_numbers_are_numpys(operator, dtype):
    ours, numpys = LIKE_NUMPYS[operator]
    rng = np.random.default_rng(0)
    word = {"f4": "u4", "f8": "u8"}[dtype]
    x, y = rng.integers(0, 2 ** (8 * int(dtype[1])), (2, 5000), word).view(dtype)
    z = rng.integers(-20, 20, 5000).astype(dtype) / 4

    for a, b in (x, y), (x, z), (z, x), (z, z[::-1]), (z, z[:1]), (z, 0.25):
        np.testing.assert_array_equal(ours(a, b), numpys(a, b))
