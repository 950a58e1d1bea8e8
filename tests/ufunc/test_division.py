"""Quotients, powers and shifts where a processor traps or Python raises: NumPy's."""

import os
from itertools import product

import numpy as np
import pytest
from running import called, same, there, told

import xdev

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
INTEGERS = ["i8", "u8", "i4", "u1"] if DEEP else ["u8", "i4"]
WRAPS = {"i8": 2**32, "u8": 2**32, "i4": 2**16, "u4": 2**16, "i1": 2**4, "u1": 2**4}
VALUES = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan])
PLANE = np.array([complex(x, y) for x in VALUES for y in VALUES])


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


# Integers: by what has wrapped to zero, and by -1, wherever it stands.


def operators(x, y):
    y = y * y
    q, r = divmod(x, y)
    a, b = x + 0, x + 0
    a //= y
    b %= y
    return x // y, x % y, q, r, a, b, np.fmod(x, y), np.floor_divide(x, y)


rest = xdev.vectorize(lambda x, y: x % (y * y))


def nested(x, y):
    return rest(x, y) + rest(y, x)


def plain(x, y):
    q, r = divmod(x, y)
    return x // y, x % y, q, r, np.fmod(x, y), np.floor_divide(x, y)


def larger(x):
    return x + 1 > x, x - 1 < x, x * 2 // 2 == x


def shifts_and_powers(x, n):
    return x << n, x >> n, np.left_shift(x, n), np.right_shift(x, n), x**n


def wrapping(dtype):
    """Return dividends, and what wraps to zero where it is squared."""
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.array([5, most, least, 3, 7, least, most], dtype)
    return x, np.array([WRAPS[dtype], 3, 1, WRAPS[dtype], 2, 0, 0], dtype)


def least(dtype):
    low = np.iinfo(dtype).min
    x = np.array([low, low, low + 1, -7], dtype)
    return x, np.array([-1, 1, -1, 2], dtype)


def bits(dtype):
    info = np.iinfo(dtype)
    n = np.array([0, 1, 2, 13, info.bits - 1, info.bits, info.bits + 1, 100], dtype)
    return np.array([info.max, info.min, 10, 5, 3, 1], dtype)[:, None], n


CASES = [
    *product((operators, nested), map(wrapping, WRAPS if DEEP else ["i8", "u1"])),
    *((plain, least(t)) for t in (["i1", "i2", "i4", "i8"] if DEEP else ["i2", "i8"])),
    (larger, (np.array([2**63 - 1, -(2**63), 2**62, 5]),)),
    *product((shifts_and_powers,), map(bits, INTEGERS)),
]
UFUNCS = {function: xdev.vectorize(function) for function, _ in CASES}
REFERENCES = {nested: lambda x, y: x % (y * y) + y % (x * x)}


@pytest.mark.parametrize(
    ("function", "args"), CASES, ids=[f"{f.__name__}-{x[0].dtype}" for f, x in CASES]
)
def test_operators_of_integers_are_numpys(device, function, args):
    expected = REFERENCES.get(function, function)(*args)
    same(UFUNCS[function](*there(device, *args)), expected)


@xdev.guvectorize("(n),(n)->(n)")
def of_arrays(x, y, out):
    for i in range(x.shape[0]):
        y2 = y[i] * y[i]
        out[i] = np.remainder(x[i], y2) + np.fmod(x[i], y2) + x[i] // y2


@xdev.kernel
def at_points(i, x, y, out):
    z = y[i] * y[i]
    out[i] = x[i] % z
    out[i] += x[i] // z
    out[i] += np.fmod(x[i], z)


@pytest.mark.parametrize("dtype", ["i8", "u8"] if DEEP else ["i8"])
def test_quotients_in_loops_of_ones_own(device, dtype):
    x, y = wrapping(dtype)
    z = y * y
    same(called(device, of_arrays, x, y), x // z + x % z + np.fmod(x, z))
    dx, dy, out = there(device, x, y, np.full(x.shape, 9, dtype))
    at_points[x.size](dx, dy, out)
    same(out, x // z + x % z + np.fmod(x, z))


quotient = xdev.vectorize(lambda a, b: a / b)
LIKE_NUMPYS = {
    "//": (xdev.vectorize(lambda a, b: a // b), np.floor_divide),
    "%": (xdev.vectorize(lambda a, b: a % b), np.remainder),
    "/": (quotient, np.divide),
    "divmod": (xdev.vectorize(lambda a, b: (*divmod(a, b),)), np.divmod),
    "fmod": (xdev.vectorize(lambda a, b: +np.fmod(a, b)), np.fmod),
}


@pytest.mark.parametrize("operator", ["//", "%", "divmod", "fmod"])
def test_errors_of_integers_are_told_of_as_numpys(operator):
    x, (ours, numpys) = np.array([5, -(2**63), 7, -(2**63)]), LIKE_NUMPYS[operator]
    for y in map(np.array, ([2, 3, 4, 5], [1, 1, 0, 2], [1, -1, 2, 3], [1, 1, 1, 0])):
        assert told(ours, x, y)[0] == told(numpys, x, y)[0]


# Floats: what Python raises ZeroDivisionError for is infinite or NaN.

inverse = xdev.vectorize(lambda a: (a**-1, a + 1, a**-3))
power = xdev.vectorize(lambda a, n: a**n)


@xdev.kernel
def inverted(i, x, out):
    out[i] = x[i] ** -1


@xdev.kernel
def divided_by(i, x, y, out):
    out[i] = x[i] / y[i]


@xdev.guvectorize("(n)->(n)")
def inverses(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i] ** -1


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_powers_of_zero(device, dtype):
    x = VALUES.astype(dtype)
    dx, out = there(device, x, np.full(x.shape, 7, dtype))
    inverted[x.size](dx, out)
    first, rest, cubes = inverse(dx)

    for found in first, out, inverses(dx), power(dx, -1), power(dx, np.int8(-1)):
        np.testing.assert_array_equal(xdev.to_numpy(found), 1 / x)
    np.testing.assert_array_equal(xdev.to_numpy(rest), x + 1)
    np.testing.assert_allclose(xdev.to_numpy(cubes), 1 / x**3, rtol=1e-6)
    n = np.arange(-5, 6)
    found = called(device, power, x[:, None], n)
    np.testing.assert_allclose(found, np.power(x[:, None], n * 1.0), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_complex_quotients_by_zero(device, dtype):
    x = PLANE.astype(dtype)
    for zero in (0j, complex(-0.0, 0.0), complex(0.0, -0.0)):
        y = np.full_like(x, zero)
        dx, dy, out = there(device, x, y, np.full_like(x, 7))
        divided_by[x.size](dx, dy, out)
        for found in out, quotient(dx, dy):
            np.testing.assert_array_equal(xdev.to_numpy(found), x / y)


def test_numbas_own_functions_stay_as_they_were():
    numba = pytest.importorskip("numba")
    inverse(np.ones(3, "f4"))
    inverted[3](np.ones(3), np.ones(3))
    for function in (lambda a: a**-1, lambda a: 1.0 // a, lambda a: 1j / a):
        inner = numba.njit(error_model="python")(function)
        if function(1.0) == 1:
            xdev.vectorize(lambda x: inner(x) + 1)(np.ones(3))  # noqa: B023 - compiles
        with pytest.raises(ZeroDivisionError):
            inner(0.0)


EACH = [("//", "f4"), ("%", "f8"), ("/", "f4"), ("divmod", "f8"), ("/", "f8")]
if DEEP:
    EACH = list(product(["//", "%", "/", "divmod"], ["f4", "f8"]))
ENDS = {t: (np.finfo(t).max, np.finfo(t).smallest_subnormal) for t in ("f4", "f8")}


@pytest.mark.parametrize(("operator", "dtype"), EACH)
def test_quotients_and_their_errors_are_numpys(operator, dtype):
    ours, numpys = LIKE_NUMPYS[operator]
    values = (0.0, -0.0, 1.0, -5.5, np.inf, np.nan, *ENDS[dtype])
    sizes = range(1, 41) if DEEP else (1, 7, 40)  # SIMD code, and what remains
    for size, a, b in product(sizes, values, values):
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
    rng = np.random.default_rng(0)
    word = {"f4": "u4", "f8": "u8"}[dtype]
    x, y = rng.integers(0, 2 ** (8 * int(dtype[1])), (2, 5000), word).view(dtype)
    z = rng.integers(-20, 20, 5000).astype(dtype) / 4
    for a, b in (x, y), (x, z), (z, x), (z, z[::-1]), (z, z[:1]), (z, 0.25):
        np.testing.assert_array_equal(ours(a, b), numpys(a, b))
