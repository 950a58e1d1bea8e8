"""Integers divided by what has wrapped to zero, and by -1, wherever it stands.

The processor traps both. NumPy gives 0, and the least integer, and warns.
"""

import os
import warnings

import numpy as np
import pytest

import xdev

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
INTEGERS = ["i8", "u8", "i4", "u1"] if DEEP else ["u8", "i4"]
WRAPS = {"i8": 2**32, "u8": 2**32, "i4": 2**16, "u4": 2**16, "i1": 2**4, "u1": 2**4}


@xdev.vectorize
def operators(x, y):
    y = y * y
    q, r = divmod(x, y)
    return x // y, x % y, q, r


@xdev.vectorize
def in_place(x, y):
    y *= y
    a = x
    a //= y
    b = x
    b %= y
    return a, b


@xdev.vectorize
def functions(x, y):
    y = y * y
    q, r = np.divmod(x, y)
    return np.floor_divide(x, y), np.remainder(x, y), q, r, np.fmod(x, y)


@xdev.vectorize
def rest(x, y):
    return x % (y * y)


@xdev.vectorize
def nested(x, y):
    return rest(x, y) + rest(y, x)


@xdev.guvectorize("(n),(n)->(n)")
def of_arrays(x, y, out):
    for i in range(x.shape[0]):
        out[i] = x[i] % (y[i] * y[i]) + x[i] // (y[i] * y[i])


@xdev.guvectorize("(n),(n)->(n)")
def by_functions(x, y, out):
    for i in range(x.shape[0]):
        y2 = y[i] * y[i]
        out[i] = np.remainder(x[i], y2) + np.fmod(x[i], y2) + np.floor_divide(x[i], y2)


@xdev.kernel
def at_points(i, x, y, out):
    z = y[i] * y[i]
    out[i] = x[i] % z
    out[i] += x[i] // z
    out[i] += np.fmod(x[i], z)


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def operands(dtype):
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.array([5, most, least, 3, 7, least, most], dtype)
    return x, np.array([WRAPS[dtype], 3, 1, WRAPS[dtype], 2, 0, 0], dtype)


def check(found, expected):
    for one, reference in zip(found, expected, strict=True):
        assert one.dtype == reference.dtype
        np.testing.assert_array_equal(xdev.to_numpy(one), reference)


@pytest.mark.parametrize("dtype", WRAPS if DEEP else ["i8", "u1"])
def test_quotients_by_what_wraps_to_zero(device, dtype):
    x, y = operands(dtype)
    dx, dy = (xdev.asarray(each, device=device) for each in (x, y))
    z = y * y
    numpys = x // z, x % z
    check(operators(dx, dy), numpys * 2)
    check(in_place(dx, dy), numpys)
    check(functions(dx, dy), (*numpys * 2, np.fmod(x, z)))
    check([nested(dx, dy)], [x % z + y % (x * x)])


@pytest.mark.parametrize("dtype", ["i8", "u8"] if DEEP else ["i8"])
def test_quotients_in_loops_of_ones_own(device, dtype):
    x, y = operands(dtype)
    dx, dy = (xdev.asarray(each, device=device) for each in (x, y))
    z = y * y
    check([of_arrays(dx, dy)], [x // z + x % z])
    check([by_functions(dx, dy)], [x // z + x % z + np.fmod(x, z)])
    out = xdev.full(x.shape, 9, dtype=dtype, device=device)
    at_points[x.size](dx, dy, out)
    check([out], [x // z + x % z + np.fmod(x, z)])


@xdev.vectorize
def plain(x, y):
    q, r = divmod(x, y)
    return x // y, x % y, q, r, np.fmod(x, y), np.floor_divide(x, y)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8"] if DEEP else ["i2", "i8"])
def test_the_least_integer_by_minus_one(device, dtype):
    least = np.iinfo(dtype).min
    x, y = (
        np.array([least, least, least + 1, -7], dtype),
        np.array([-1, 1, -1, 2], dtype),
    )
    dx, dy = (xdev.asarray(each, device=device) for each in (x, y))
    check(plain(dx, dy), (x // y, x % y, x // y, x % y, np.fmod(x, y), x // y))


@xdev.vectorize
def larger(x):
    return x + 1 > x, x - 1 < x, x * 2 // 2 == x


def test_sums_and_products_of_int64_wrap(device):
    x = np.array([2**63 - 1, -(2**63), 2**62, 5])
    found = larger(xdev.asarray(x, device=device))
    check(found, (x + 1 > x, x - 1 < x, x * 2 // 2 == x))


def told(call, *arguments):
    """Return the errors that a call warns of."""
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
        warnings.simplefilter("always")
        call(*arguments)
    return {str(w.message).partition(" encountered")[0] for w in caught}


@xdev.vectorize
def named_quotient(x, y):
    return np.floor_divide(x, y)


@xdev.vectorize
def quotient(x, y):
    return x // y


@xdev.vectorize
def remainder(x, y):
    return np.fmod(x, y)


@xdev.vectorize
def both(x, y):
    q, r = divmod(x, y)
    return q, r


QUOTIENTS = {
    quotient: np.floor_divide,
    named_quotient: np.floor_divide,
    xdev.vectorize(lambda x, y: x % y): np.remainder,
    both: np.divmod,
    remainder: np.fmod,
}
DIVISORS = [2, 3, 4, 5], [1, 1, 0, 2], [1, -1, 2, 3], [1, 1, 1, 0]


@pytest.mark.parametrize("function", QUOTIENTS)
def test_they_are_told_of_as_numpy_does(function):
    x = np.array([5, -(2**63), 7, -(2**63)])
    for y in map(np.array, DIVISORS):
        assert told(function, x, y) == told(QUOTIENTS[function], x, y)


@xdev.vectorize
def guarded(x, y):
    return x // y if y != 0 else -1


def test_a_quotient_not_taken_is_not_told_of():
    x, y = np.array([5, 6]), np.array([0, 3])
    assert told(guarded, x, y) == set()
    np.testing.assert_array_equal(guarded(x, y), [-1, 2])


@xdev.vectorize
def shifted(x, n):
    return x << n, x >> n, np.left_shift(x, n), np.right_shift(x, n)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_by_all_bits_and_more(device, dtype):
    info = np.iinfo(dtype)
    x = np.array([info.max, info.min, 5, 1], dtype)[:, None]
    n = np.array([0, 1, info.bits - 1, info.bits, info.bits + 1, 100], dtype)
    dx, dn = (xdev.asarray(each, device=device) for each in (x, n))
    check(shifted(dx, dn), (x << n, x >> n) * 2)


@xdev.vectorize
def powers(x, n):
    return x**n, np.power(x, n)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_powers_are_exact_and_wrap(device, dtype):
    x = np.array([0, 1, 2, 3, 7, 10, np.iinfo(dtype).max], dtype)[:, None]
    n = np.array([0, 1, 2, 13, 39, 64, 100, np.iinfo(dtype).max], dtype)
    dx, dn = (xdev.asarray(each, device=device) for each in (x, n))
    check(powers(dx, dn), (x**n,) * 2)
