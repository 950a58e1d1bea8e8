"""Operators inside a function have NumPy's dtypes, by which integers wrap.

The reference is the Python function itself, called with NumPy's scalars. Each pair of
dtypes is compiled, which takes time: each function has one of four pairs, and all of
more by ``HYPOTHESIS_PROFILE=deep``.
"""

import math
import operator
import os

import numpy as np
import pytest

import xdev

PAIRS = ["BB", "bB", "Il", "Hf"]
DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
if DEEP:
    PAIRS += ["hh", "HI", "iB", "LL", "hf", "if", "Bd"]
OFFSET, TABLE, LARGE = 5, (3, 70, 101), 2**70


def values(kind, seed):
    """Return the ends of a dtype's range, and values between them."""
    dtype = np.dtype(kind)
    if dtype.kind == "f":
        return np.array([-3.5, 0.25, 1, 2, 3, 100, 1e5], dtype)
    info = np.iinfo(dtype)
    far = 64 if kind == "l" else 1  # int64 itself may not overflow
    low, high = info.min // far, info.max // far
    ends = [low, high, high - 3, 0, 1, 7, high // 2]
    drawn = np.random.default_rng(seed).integers(low, high, 9, dtype, endpoint=True)
    return np.append(np.array(ends, dtype), drawn)


def grid(pair):
    """Return values of two dtypes, each with each."""
    return [x.ravel() for x in np.meshgrid(values(pair[0], 1), values(pair[1], 2))]


def mean(x, y):
    return (x + y) // 2


def ring(x, y):
    return -(x * y + x * 3 - y) / 2 + 1


def divided(x, y):
    return (x * 3) // (y + 7), (x - y) % (x + 7), (x + y) / (y + 7)


def compared(x, y):
    return x + y > 100, x - y < x, 3 * x == y * 3, x < y + 1 < 100, -x <= y


def first_alone(x, y):
    return x * 3 + y, (x + 100) / 3 + y, x**2 + y


def chosen(x, y):
    larger = x + y if x > y else x * y
    smaller = (x + 9 if x < y else x) / 2
    return larger // 3, smaller, (x + y if x > 5 else 1) * 2


def summed(x, y):
    total, count = 0, 0
    for k in range(4):
        total += x * k
        count += 1
        if count > 2:
            total = total - OFFSET
        else:
            continue
    return total + y, total / 2, x * count + k


def until(x, y):
    n, last = 0, x
    while True:
        n = n + 100
        last = last + last
        if n > 700:
            break
    return last + y, last / 4, n


def swapped(x, y):
    a, b = x, x + x
    for _ in range(5):
        a, b = b, a + b
    low = min(a, b)
    return low + y, max(a, b) / 2, abs(a - b)


def cast(x, y):
    wide = np.int64(x) + 1000
    small = np.int8(7) * 30
    return wide // 3 + y, small + x, int(x) + int(x), float(x) + y


def weak(x, y):
    seven = 7
    sevens = seven * 3 + int(True)
    entry = TABLE[1] + TABLE[2] // 2
    return x + seven, y * sevens, x + entry, (x > 5) + x, 255 % seven * y


def mathematics(x, y):
    return (math.floor(x / 3) + x) / 2, math.sqrt(abs(x / 2)), round(y / 4) // 3


@xdev.vectorize
def inner(x, y=3):
    if x > y:
        return x * y
    return x + y


@xdev.vectorize
def pair(x):
    total = x + x
    return total, total > x


def calling(x, y):
    doubled, above = pair(x)
    return inner(x, y) / 2, inner(x + x, 2) / 2, inner(x) + y, doubled + above


def inplace(x, y):
    x += x
    x *= 3
    y -= x
    return x, y


def bits(x, y):
    return (x << 3) >> 2, (x + y) >> 1, ~x & y, (x | 64) ^ (y + y), ~(x + 1) / 2


def called(x, y):
    small = np.where(x > 100, x, 7) // 2
    quotient, rest = divmod(x + y, 7)
    return small, quotient, rest / 2, np.greater(x, 300), np.not_equal(x, y * 2)


def from_bools(x, y):
    return ((x > y) * 200 + y) // 2, ((x > y) | (y > 3)) * 300 // 7


def powers(x, y):
    return x**2 % 7, x**3 // 2, (x & 3) ** (y & 3) / 2


def named(x, y):
    tripled = operator.mul(x, 3)
    return tripled // 2, pow(x, 2) // 2, operator.gt(x * 3, 200), len((x, y)) * x // 2


FUNCTIONS = [
    mean,
    ring,
    divided,
    compared,
    first_alone,
    chosen,
    summed,
    until,
    swapped,
    cast,
    weak,
    mathematics,
    calling,
    inplace,
    called,
    from_bools,
    bits,
    powers,
    named,
]


def divisors(x, y):
    return math.gcd(x, 12) // 2, math.gcd(abs(y // 2), 6) / 4


def wider(x, y):
    return np.maximum(x, y) + x, np.add(x, 200) / 2


ALONE = wider, divisors
UFUNCS = {function: xdev.vectorize(function) for function in (*FUNCTIONS, *ALONE)}


def results(function, *args):
    """Return what a function gives, in a tuple."""
    found = function(*args)
    return found if isinstance(found, tuple) else (found,)


def check(function, x, y, device):
    """Compare with NumPy's scalars, each result cast to the ufunc's own dtype."""
    there = [xdev.asarray(each, device=device) for each in (x, y)]
    with np.errstate(all="ignore"):
        rows = [results(function, *each) for each in zip(x, y, strict=True)]
        ours = results(UFUNCS[function], *there)
    working = np.result_type(x, y)
    columns = zip(*rows, strict=True)
    for found, expected in zip(map(xdev.to_numpy, ours), columns, strict=True):
        if found.dtype.kind == "f":
            limit = 1e-6 if np.float32 in {working, found.dtype} else 1e-13
            wide = np.array([float(each) for each in expected])
            np.testing.assert_allclose(found, wide.astype(found.dtype), limit)
            continue
        assert found.dtype in {working, np.dtype(bool), np.result_type(*expected)}
        modulus = 2 ** (8 * found.dtype.itemsize)
        for one, other in zip(found, expected, strict=True):
            assert (int(one) - int(other)) % modulus == 0, (one, other)


def cases():
    """Return functions, each with pairs of dtypes."""
    for k, function in enumerate(FUNCTIONS):
        for pair in PAIRS if DEEP else PAIRS[k % 4 :: 4]:
            whole = not set(pair) & set("fd")
            if whole or function not in {bits, powers}:  # floats have no bits
                yield pytest.param(function, pair, id=f"{function.__name__}-{pair}")


@pytest.mark.parametrize(("function", "pair"), [*cases()])
def test_operators_have_numpys_dtypes(device, function, pair):
    check(function, *grid(pair), device)


def under_a_name(x):
    most = 300
    return x + most


def of_an_expression(x):
    return (x * 2 + 1) * 300


def of_a_local_name(x):
    doubled = x + x
    return doubled - 300


def of_numbers(x):
    return x & (7 - 12)


def of_a_calls_argument(x):
    return inner(x, 300)


def beside_in_max(x):
    return max(x, -5)


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (under_a_name, 300),
        (of_an_expression, 300),
        (of_a_local_name, 300),
        (of_numbers, -5),
        (of_a_calls_argument, 300),
        (lambda x: x**300, 300),
        (lambda x: x << 300, 300),
        (lambda x: 300 * x % 7, 300),
        (lambda x: -5 - x, -5),
        (lambda x: LARGE + x, LARGE),
        (lambda x: x + LARGE, LARGE),
        (beside_in_max, -5),
    ],
)
def test_numbers_that_do_not_fit_are_refused_as_numpys(device, function, value):
    message = f"Python integer {value} out of bounds for uint8"
    # A ufunc's is NumPy's own error there; and Python's max compares alone.
    if function not in {of_a_calls_argument, beside_in_max}:
        words = "too large" if value == LARGE else message
        with pytest.raises(OverflowError, match=words):
            function(np.uint8(5))

    words = rf"(?s){message} in .*int64\(uint8.*\.py:\d+:"
    with pytest.raises(OverflowError, match=words):
        xdev.vectorize(function)(xdev.asarray(np.zeros(2, "B"), device=device))


def largest(x):
    best = -1
    for k in range(3):
        best = max(best, x * k)
    return best


def beside_a_cast(x):
    return (np.int16(x) * 300) // 300


def beside_a_count(x):
    n = 0
    while n < 300:
        n += 60
    return x if n == 300 else x - x


@pytest.mark.parametrize("function", [largest, beside_a_cast, beside_a_count])
def test_numbers_beside_others_than_narrow_integers_are_taken(device, function):
    x = np.array([1, 5, 90], "B")
    found = xdev.vectorize(function)(xdev.asarray(x, device=device))

    with np.errstate(all="ignore"):
        expected = [int(function(each)) % 256 for each in x]
    assert xdev.to_numpy(found).tolist() == expected


def test_a_signature_means_64_bits(device):
    x = xdev.asarray(np.array([200, 100], "B"), device=device)
    f = xdev.vectorize(["uint8(uint8, uint8)"])(mean)

    assert xdev.to_numpy(f(x, x)).tolist() == [200, 100]
    assert xdev.to_numpy(xdev.vectorize(mean)(x, x)).tolist() == [72, 100]


def negated(x, y):
    return -int(x), (9 - int(y % 8)) * y, ~int(x) // 2, abs(-round(y))


def tenths(x, y):
    total = 0.1
    for k in range(3):
        total += k * 0.1
    return total, float(x) * 0.1, k * 0.1 < 0.2, (k * 0.1) * y


@pytest.mark.parametrize(
    ("function", "char"),
    [*((negated, char) for char in "BL"), *((tenths, char) for char in "Lf")],
)
def test_pythons_numbers_are_computed_as_python_does(device, function, char):
    x, y = (np.array(each, char) for each in ([1, 5, 90], [3, 1, 7]))
    there = [xdev.asarray(each, device=device) for each in (x, y)]

    found = [xdev.to_numpy(each) for each in xdev.vectorize(function)(*there)]

    for column, row in zip(
        zip(*found, strict=True), zip(x, y, strict=True), strict=True
    ):
        expected = function(*row)
        assert [*column] == [*expected]
        kinds = [np.asarray(each).dtype for each in expected]
        assert [each.dtype for each in column] == kinds


def test_what_cannot_be_known_has_64_bits(device):
    signed = xdev.vectorize(["int64(int64)"])(lambda x: x)  # what it gives is Numba's
    f = xdev.vectorize(lambda x: (signed(x) + x) // 2)

    found = f(xdev.asarray(np.array([200, 100], "B"), device=device))

    assert xdev.to_numpy(found).tolist() == [200, 100]


def test_bools_count(device):
    def positive(x, y):
        return (x > 0) + (y > 0) + (x > y) - True

    x, y = grid("bB")
    there = [xdev.asarray(each, device=device) for each in (x, y)]
    found = xdev.vectorize(positive)(*there)

    counts = np.sum([x > 0, y > 0, x > y], axis=0) - 1
    np.testing.assert_array_equal(xdev.to_numpy(found), counts)


def casts_of_bools(x, y):
    return np.int64(x) + y, np.int8(x), np.uint16(x) * np.uint16(y), ~np.int64(x)


def operators_of_bools(x, y):
    return x + y, x * y, x & y, ~x, x / y, x + 1, x & 3, x << 1, (x | y) * 2.5


def functions_of_bools(x, y):
    return np.divide(x, y), np.maximum(x, y), np.square(x), np.float_power(x, y)


@pytest.mark.parametrize(
    "function", [casts_of_bools, operators_of_bools, functions_of_bools]
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_functions_of_bools_alone_have_numpys_dtypes(device, function):
    x, y = np.array([[True, True, False, False], [True, False, True, False]])
    there = [xdev.asarray(each, device=device) for each in (x, y)]

    found = xdev.vectorize(function)(*there)

    for own, expected in zip(found, function(x, y), strict=True):
        assert own.dtype == expected.dtype
        np.testing.assert_array_equal(xdev.to_numpy(own), expected)


@pytest.mark.parametrize("pair", ["BB", "BH"])
@pytest.mark.parametrize("function", ALONE, ids=lambda f: f.__name__)
def test_functions_that_cuda_lacks_have_numpys_dtypes(function, pair):
    check(function, *grid(pair), "cpu")


def turned_in_a_loop(x, y):
    for _ in range(2):
        x = y
    return -x, ~x, x * x, x >> 1, x & x, x + x


@pytest.mark.parametrize("pair", ["Bl", "Hi"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_unsigned_integers_that_turn_signed_in_a_loop_are_exact(device, pair):
    info = np.iinfo(pair[1])
    x = np.array([0, 200, 3], pair[0])
    y = np.array([info.max, info.min + 5, info.max // 3], pair[1])
    there = [xdev.asarray(each, device=device) for each in (x, y)]

    found = xdev.vectorize(turned_in_a_loop)(*there)

    for own, expected in zip(found, turned_in_a_loop(x, y), strict=True):
        np.testing.assert_array_equal(xdev.to_numpy(own), expected, strict=True)


def test_integers_keep_their_dtype_in_cases_of_match(device):
    @xdev.vectorize
    def halved(x):
        match int(x):
            case 2:
                y = x * 100
            case _:
                y = x * 50
        return y // 2

    x = np.array([2, 3], np.int8)
    expected = np.where(x == 2, x * np.int8(100), x * np.int8(50)) // 2

    found = halved(xdev.asarray(x, device=device))

    assert xdev.to_numpy(found).tolist() == expected.tolist() == [-28, -53]
