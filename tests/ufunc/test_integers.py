"""Operators of integers inside a function have NumPy's dtypes, by which they wrap.

The reference is the Python function itself, called with NumPy's scalars or arrays. Each
pair of dtypes is compiled, which takes time: each function has a few, and all have more
by ``HYPOTHESIS_PROFILE=deep``.
"""

import itertools
import math
import os

import numpy as np
import pytest
from running import called, same, there

import xdev

MEETING = ["lL", "Ll", "bL", "Lb", "?L", "L?", "bB", "Il"]
DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
if DEEP:
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


bounded = xdev.vectorize(
    lambda x: (x > -1, x == -1, x < 300, x >= -129, x < LARGE, x <= -LARGE)
)


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


def mean(x, y):
    return (x + y) // 2


@xdev.vectorize
def inner(x, y=3):
    if x > y:
        return x * y
    return x + y


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

    words = rf"(?s){message}: .*int64\(uint8.*\.py:\d+:"
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


def casts_and_entries(x, y):
    entry = TABLE[1] + TABLE[2] // 2
    return np.int64(x) + 1000 + y, np.int8(x) - 30, x + entry, (y > 5) + x, y * 22


def sums_on_ways(x, y):
    z = x * y
    if not x:
        z = y
    chosen = x + y if x else y
    return (
        z,
        chosen,
        np.where(x, x + y, y),
        (x + y) + (x + y),
        abs(x + y),
        max(x + y, y),
    )


BOOLS = np.array([[True, True, False, False], [True, False, True, False]])
TURNED = [(np.array([0, 200, 3], a), np.iinfo(b)) for a, b in ("Bl", "Hi")]
ON_ARRAYS = [
    (casts_and_entries, np.array([[0, 150, 3], [7, 250, 1]], "B")),
    *((f, BOOLS) for f in (casts_of_bools, operators_of_bools, functions_of_bools)),
    *(
        (turned_in_a_loop, (x, np.array([i.max, i.min + 5, i.max // 3], i.dtype)))
        for x, i in TURNED
    ),
]


COUNTS = xdev.vectorize(lambda x, y: (x > 0) + (y > 0) + (x > y) - True)


def test_sums_and_products_of_bools_are_bools_on_every_way(device):
    x, y = BOOLS
    expected = np.where(x, x * y, y), x | y, x | y, x | y, x | y, x | y
    same(called(device, xdev.vectorize(sums_on_ways), x, y), expected)


def bits_of_sums(x, y):
    return ~(x * y), (x + y) & x, (x + y) ^ (x * y), -(x + y)


def test_sums_of_bools_are_pythons_integers_to_other_operators(device):
    x, y = BOOLS
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    expected = zip(*(bits_of_sums(int(a), int(b)) for a, b in pairs), strict=True)
    found = called(device, xdev.vectorize(bits_of_sums), x, y)
    same(found, tuple(np.array(each) for each in expected))


def test_integers_are_not_rounded_to_tens_by_a_keyword():
    with pytest.raises(TypeError):
        xdev.vectorize(lambda x: round(x, ndigits=-1))(np.array([14, 250]))


def wholes(x):
    return round(x), math.floor(x), math.ceil(x), math.trunc(x)


@pytest.mark.parametrize("kind", "blI")
def test_integers_are_rounded_to_themselves(device, kind):
    x = extremes(kind)
    same(called(device, xdev.vectorize(wholes), x), (x.astype("l"),) * 4)


def bytes_and_more(x, y):
    return np.uint8(x) * y, np.int8(x) / y, np.uint16(x) * y, np.int16(x), np.uint32(x)


CASTS = xdev.vectorize(bytes_and_more)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("values", [[-1, -2.5, 300, 40000, -70000.5], [3e9], [np.inf]])
def test_floats_beyond_an_integer_have_one_answer_at_each_place(device, values):
    x = np.resize(np.array(values, "f"), 41)
    alone = [called(device, CASTS, x[k : k + 1], np.float32([1])) for k in range(41)]
    expected = tuple(map(np.concatenate, zip(*alone, strict=True)))
    same(called(device, CASTS, x, np.ones_like(x)), expected)
    if max(values) < 2**31:  # what the low bits of a wider integer are
        wide = x.astype("l")
        kinds = [("B", "f"), ("b", "f"), ("H", "f"), ("h", "h"), ("I", "I")]
        same(expected, tuple(wide.astype(a).astype(b) for a, b in kinds))


FLAG = False


def chosen(x):
    return np.where(FLAG, 0.5, x) * x, (0.5 if FLAG else x) + x, np.where(x < 0, 0.5, x)


def test_what_a_constant_chooses_has_the_dtype_of_both(device):
    x = np.array([100_000], "i")
    same(called(device, xdev.vectorize(chosen), x), (x * 1e5, x + 1e5, x * 1.0))


def test_comparisons_count(device):
    x, y = (x.ravel() for x in np.meshgrid(*map(extremes, "bB")))
    expected = np.sum([x > 0, y > 0, x > y], axis=0) - 1
    assert called(device, COUNTS, x, y).tolist() == expected.tolist()


@pytest.mark.parametrize(("function", "args"), ON_ARRAYS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_functions_of_bools_and_of_what_turns_signed_are_numpys(device, function, args):
    same(called(device, xdev.vectorize(function), *args), function(*args))


@pytest.mark.parametrize("char", "Bh")
def test_common_divisors_which_cuda_lacks_have_numpys_dtypes(char):
    divisors = xdev.vectorize(lambda x, y: (math.gcd(x, 12) // 2, math.gcd(x, y)))
    x, y = (x.ravel() for x in np.meshgrid(*[np.arange(0, 127, 5).astype(char)] * 2))
    same(divisors(x, y), (np.gcd(x, 12) // 2, np.gcd(x, y)))
