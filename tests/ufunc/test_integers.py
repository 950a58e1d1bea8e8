"""Operators of integers inside a function have NumPy's dtypes, by which they wrap.

The reference is the Python function itself, called with NumPy's scalars or arrays. Each
pair of dtypes is compiled, which takes time: each function has a few, and all have more
by ``HYPOTHESIS_PROFILE=deep``.
"""

import itertools
import math
import operator
import os

import numpy as np
import pytest
from running import called, same, there

import xdev

PAIRS = ["BB", "bB", "Il", "Hf"]
MEETING = ["lL", "Ll", "bL", "Lb", "?L", "L?", "bB", "Il"]
DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
if DEEP:
    PAIRS += ["hh", "HI", "iB", "LL", "hf", "if", "Bd"]
    MEETING = list(map("".join, itertools.product("?bBhHiIlL", repeat=2)))
TABLE, LARGE = (3, 70, 101), 2**70


def extremes(kind):
    """Return values at which products, sums and comparisons go wrong."""
    if kind == "?":
        return np.array([False, True])
    low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    near = [low, low + 1, 0, 1, 3, high // 2, high // 2 + 1, high - 1, high]
    return np.array(near + [-1, -5] * (low < 0), kind)


def meet(x, y):
    return x + y, x * y, x < y, x <= y, x > y, x >= y, x == y, x != y


def ends(x, y):
    return min(x, y), max(x, y)


def part(x, y):
    return x - y, x // y, x % y


def smaller_and_larger(x, y):
    return np.minimum(x, y), np.maximum(x, y)


MEET, ENDS, PART = map(xdev.vectorize, (meet, ends, part))


@pytest.mark.parametrize(
    ("ufunc", "numpys", "pair"),
    [
        *((MEET, meet, pair) for pair in (MEETING if DEEP else MEETING[::2])),
        *((ENDS, smaller_and_larger, p) for p in (MEETING if DEEP else MEETING[1::2])),
        # NumPy has no difference of bools, and int8 for their quotient.
        *((PART, part, p) for p in (MEETING if DEEP else MEETING[1::2]) if p != "??"),
    ],
)
def test_integers_of_any_two_dtypes_meet_as_numpys(device, ufunc, numpys, pair):
    x, y = (x.ravel() for x in np.meshgrid(*map(extremes, pair)))
    if ufunc is PART:
        if np.result_type(x, y).kind != "f":  # the docs tell of what is left out
            kept = (y != 0) & ~((x == extremes(pair[0])[0]) & (y == -1))
            x, y = x[kept], y[kept]
        elif device.type == "cuda":
            with np.errstate(divide="ignore", invalid="ignore"):
                near = ~(abs(x.astype("d") / y) >= 2**53)  # beyond, it rounds quotients
            x, y = x[near], y[near]
    with np.errstate(divide="ignore", invalid="ignore"):
        same(ufunc(*there(device, x, y)), numpys(x, y))


@xdev.vectorize
def bounded(x):
    return x > -1, x == -1, x < 300, x >= -129, x < LARGE, x <= -LARGE


@pytest.mark.parametrize("kind", "bBL")
def test_literals_out_of_bounds_are_compared_as_numpys(device, kind):
    x = extremes(kind)
    same(called(device, bounded, x), bounded.__wrapped__(x))


def test_literals_beside_uint64_are_weak_and_a_signature_takes_any(device):
    mixed = xdev.vectorize(lambda x, y: ((x * 3) & 255, y + x % 10, x > y > -5))
    x, y = np.array([3, 5], "u8"), np.array([-1, 7])
    bits, total, above = called(device, mixed, x, y)
    assert above.tolist() == [True, False]
    assert bits.tolist() == ((x * 3) & 255).tolist()
    assert total.tolist() == (y + x % 10).tolist()
    wrapped = xdev.vectorize(["uint64(uint64, int64)"])(lambda x, y: x + y)
    same(called(device, wrapped, x, y), x + y.astype("u8"))
    f = xdev.vectorize(["int64(uint8)"])(lambda x: max(x + 300, -5) if x > 9 else -1)
    same(called(device, f, np.array([5, 200], "B")), np.array([-1, 500]))


# The functions' results, element by element.


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


def means(x, y):
    return (x + y) // 2, mean(x, y)


def cast(x, y):
    wide = np.int64(x) + 1000
    small = np.int8(7) * 30
    return wide // 3 + y, small + x, int(x) + int(x), float(x) + y


def weak(x, y):
    seven = 7
    sevens = seven * 3 + int(True)
    entry = TABLE[1] + TABLE[2] // 2
    square = x ** (2 if y > 3 else 1)
    return x + seven, y * sevens, x + entry, (x > 5) + x, 255 % seven * y, square


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


def named(x, y):
    tripled = operator.mul(x, 3)
    quotient, rest = divmod(x + y, 7)
    x += np.clip(y, 0, 9)
    return tripled // 2, operator.gt(x * 3, 200), np.greater(x, 300), quotient, rest / 2


FUNCTIONS = [means, cast, weak, mathematics, calling, named]


def divisors(x, y):
    found = math.gcd(x, 12) // 2, math.gcd(abs(y // 2), 6) / 4
    return *found, np.maximum(x, y) + x, np.add(x, 200) / 2


UFUNCS = {function: xdev.vectorize(function) for function in (*FUNCTIONS, divisors)}


def check(function, x, y, device):
    """Compare with NumPy's scalars, each result cast to the ufunc's own dtype."""
    with np.errstate(all="ignore"):
        rows = [function(*each) for each in zip(x, y, strict=True)]
        ours = called(device, UFUNCS[function], x, y)
    working = np.result_type(x, y)
    for found, expected in zip(ours, zip(*rows, strict=True), strict=True):
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
            yield pytest.param(function, pair, id=f"{function.__name__}-{pair}")


@pytest.mark.parametrize(("function", "pair"), [*cases()])
def test_operators_have_numpys_dtypes(device, function, pair):
    check(function, *grid(pair), device)


def under_a_name(x):
    most = 300
    doubled = x + x
    return doubled - most


@pytest.mark.parametrize(
    ("function", "value", "in_numpy"),
    [
        (under_a_name, 300, "out of bounds for uint8"),
        (lambda x: x & (7 - 12), -5, "out of bounds for uint8"),
        (lambda x: x**300, 300, "out of bounds for uint8"),
        (lambda x: x + LARGE, LARGE, "too large"),
        (lambda x: inner(x, 300), 300, None),  # a ufunc's is NumPy's own error there
        (lambda x: max(x, -5), -5, None),  # Python's compares alone
    ],
)
def test_numbers_that_do_not_fit_are_refused_as_numpys(
    device, function, value, in_numpy
):
    message = f"Python integer {value} out of bounds for uint8"
    if in_numpy:
        with pytest.raises(OverflowError, match=in_numpy):
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
    with np.errstate(all="ignore"):
        expected = [int(function(each)) % 256 for each in x]
    assert called(device, xdev.vectorize(function), x).tolist() == expected


signed = xdev.vectorize(["int64(int64)"])(lambda x: x)  # what it gives is Numba's


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (xdev.vectorize(["uint8(uint8, uint8)"])(mean), [200, 100]),
        (xdev.vectorize(mean), [72, 100]),
        (xdev.vectorize(lambda x, _: (signed(x) + x) // 2), [200, 100]),
    ],
)
def test_a_signature_and_what_cannot_be_known_mean_64_bits(device, function, expected):
    x = np.array([200, 100], "B")
    assert called(device, function, x, x).tolist() == expected


def casts_of_bools(x, y):
    return np.int64(x) + y, np.int8(x), np.uint16(x) * np.uint16(y), ~np.int64(x)


def operators_of_bools(x, y):
    return x + y, x * y, x & y, ~x, x / y, x + 1, x & 3, x << 1, (x | y) * 2.5


def functions_of_bools(x, y):
    return np.divide(x, y), np.maximum(x, y), np.square(x), np.float_power(x, y)


def turned_in_a_loop(x, y):
    for _ in range(2):
        x = y
    return -x, ~x, x * x, x >> 1, x & x, x + x


BOOLS = np.array([[True, True, False, False], [True, False, True, False]])
TURNED = [(np.array([0, 200, 3], a), np.iinfo(b)) for a, b in ("Bl", "Hi")]
ON_ARRAYS = [
    *((f, BOOLS) for f in (casts_of_bools, operators_of_bools, functions_of_bools)),
    *(
        (turned_in_a_loop, (x, np.array([i.max, i.min + 5, i.max // 3], i.dtype)))
        for x, i in TURNED
    ),
]


COUNTS = xdev.vectorize(lambda x, y: (x > 0) + (y > 0) + (x > y) - True)


def test_comparisons_count(device):
    x, y = grid("bB")
    expected = np.sum([x > 0, y > 0, x > y], axis=0) - 1
    assert called(device, COUNTS, x, y).tolist() == expected.tolist()


@pytest.mark.parametrize(("function", "args"), ON_ARRAYS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_functions_of_bools_and_of_what_turns_signed_are_numpys(device, function, args):
    same(called(device, xdev.vectorize(function), *args), function(*args))


@pytest.mark.parametrize("pair", ["BB", "BH"])
def test_functions_that_cuda_lacks_have_numpys_dtypes(pair):
    check(divisors, *grid(pair), "cpu")
