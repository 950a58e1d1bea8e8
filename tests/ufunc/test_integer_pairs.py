"""Integers of every two dtypes, at the ends of their ranges, as NumPy has them.

Each pair is compiled twice, which takes a second: a quick run has those of which
compilers have rules of their own, each function every other; all functions have all
pairs by ``HYPOTHESIS_PROFILE=deep``.
"""

import itertools
import math
import os

import numpy as np
import pytest

import xdev

KINDS = "?bBhHiIlL"
PAIRS = ["lL", "Ll", "bL", "Lb", "?L", "L?", "bB", "Il"]
DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
if DEEP:
    PAIRS = list(map("".join, itertools.product(KINDS, KINDS)))
NUMPYS = [
    np.add,
    np.multiply,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
    np.equal,
    np.not_equal,
]


@xdev.vectorize
def meet(x, y):
    return (
        x + y,
        x * y,
        x < y,
        x <= y,
        x > y,
        x >= y,
        x == y,
        x != y,
    )


@xdev.vectorize
def ends(x, y):
    return min(x, y), max(x, y)


@xdev.vectorize
def part(x, y):
    return x - y, x // y, x % y


def extremes(kind):
    """Return values at which products, sums and comparisons go wrong."""
    if kind == "?":
        return np.array([False, True])
    info = np.iinfo(kind)
    low, high = int(info.min), int(info.max)
    near = {low, low + 1, 0, 1, 3, high // 2, high // 2 + 1, high - 1, high}
    return np.array(sorted(near | ({-1, -5} if low else set())), kind)


def pairs(one, other):
    return (x.ravel() for x in np.meshgrid(extremes(one), extremes(other)))


def same(found, expected):
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(xdev.to_numpy(found), expected)


@pytest.mark.parametrize("pair", PAIRS if DEEP else PAIRS[::2])
def test_integers_of_any_two_dtypes_meet_as_numpys(device, pair):
    x, y = pairs(*pair)
    there = [xdev.asarray(each, device=device) for each in (x, y)]

    for found, numpys in zip(meet(*there), NUMPYS, strict=True):
        same(found, numpys(x, y))


@pytest.mark.parametrize("pair", PAIRS if DEEP else PAIRS[1::2])
def test_the_smaller_and_the_larger_of_any_two_dtypes(device, pair):
    x, y = pairs(*pair)
    there = [xdev.asarray(each, device=device) for each in (x, y)]

    for found, numpys in zip(ends(*there), (np.minimum, np.maximum), strict=True):
        same(found, numpys(x, y))


@pytest.mark.parametrize("pair", PAIRS if DEEP else PAIRS[1::2])
def test_differences_and_quotients_of_any_two_dtypes(device, pair):
    if pair == "??":
        pytest.skip("NumPy has no difference of bools, and int8 for their quotient")
    x, y = pairs(*pair)
    told = (y == 0) | (
        (x == extremes(pair[0])[0]) & (y == -1)
    )  # of which the docs tell
    if np.result_type(x, y).kind != "f":
        x, y = x[~told], y[~told]
    there = [xdev.asarray(each, device=device) for each in (x, y)]

    with np.errstate(divide="ignore", invalid="ignore"):
        if device.type == "cuda" and np.result_type(x, y).kind == "f":
            near = ~(abs(x.astype("d") / y) >= 2**53)  # beyond, it rounds quotients
            x, y = x[near], y[near]
            there = [xdev.asarray(each, device=device) for each in (x, y)]
        found = part(*there)
        for each, numpys in zip(
            found, (np.subtract, np.floor_divide, np.remainder), strict=True
        ):
            same(each, numpys(x, y))


@pytest.fixture
def unsigned(device):
    return xdev.asarray(np.array([2**63 + 2**12, 3], "u8"), device=device)


@pytest.fixture
def signed(device):
    return xdev.asarray(np.array([-5, 2**40]), device=device)


def test_each_operator_has_its_own_operands_dtype(unsigned, signed):
    @xdev.vectorize
    def sum_of_products(x, y, n):
        total = y * 0
        for k in range(n):
            total += x * y - k
        return total

    x, y = xdev.to_numpy(unsigned), xdev.to_numpy(signed)

    same(sum_of_products(unsigned, signed, 2), (x * y - 0) + (x * y - 1))


def test_ufuncs_inside_have_them_too(unsigned, signed):
    outer = xdev.vectorize(lambda x, y: -total(x, y))

    same(outer(unsigned, signed), -(xdev.to_numpy(unsigned) + xdev.to_numpy(signed)))


@xdev.vectorize
def total(x, y):
    return x + y


def test_a_signature_of_integers_means_them(unsigned, signed):
    wrapped = xdev.vectorize(["uint64(uint64, int64)"])(lambda x, y: x + y)
    x, y = xdev.to_numpy(unsigned), xdev.to_numpy(signed)

    same(wrapped(unsigned, signed), x + y.astype("u8"))


def test_without_source_the_mix_is_refused(unsigned, signed):
    scope = {}
    exec("def f(x, y):\n    return x + y", scope)  # noqa: S102

    with pytest.raises(TypeError, match=r"f\(uint64, int\d+\): no source .* cast"):
        xdev.vectorize(scope["f"])(unsigned, signed)


LARGE = 2**70


@xdev.vectorize
def compared(x):
    return x > -1, x == -1, x < 300, x >= -129, x < LARGE, x <= -LARGE


@pytest.mark.parametrize("kind", "bBL")
def test_literals_out_of_bounds_are_compared_as_numpys(device, kind):
    x = extremes(kind)
    found = compared(xdev.asarray(x, device=device))

    for each, expected in zip(found, compared.definition.function(x), strict=True):
        same(each, expected)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x / 256,
        lambda x: x / 2 + 300,
        lambda x: x * 0.5 + 300,
        lambda x: 1.0 * x / 1000,
        lambda x: float(x) * 1000,
        lambda x: math.sqrt(x) + 300,
        lambda x: (x > 1) * 1000.0,
    ],
)
def test_literals_beside_other_values_than_inputs_are_no_matter(device, function):
    x = np.array([0, 4, 9], "B")
    found = xdev.vectorize(function)(xdev.asarray(x, device=device))
    expected = [float(function(int(each))) for each in x]
    np.testing.assert_allclose(xdev.to_numpy(found), expected, rtol=1e-6)


@xdev.vectorize
def mixed_bits(x, y):
    return (x * 3) & 255, y + x % 10


def test_literals_beside_uint64_are_weak(device):
    x, y = np.array([3, 5], "u8"), np.array([-1, 7])
    bits, total = mixed_bits(*(xdev.asarray(each, device=device) for each in (x, y)))
    assert xdev.to_numpy(bits).tolist() == ((x * 3) & 255).tolist()
    assert xdev.to_numpy(total).tolist() == (y + x % 10).tolist()


def test_a_signature_takes_literals_of_any_size(device):
    x = xdev.asarray(np.array([5, 200], "B"), device=device)
    f = xdev.vectorize(["int64(uint8)"])(lambda x: max(x + 300, -5) if x > 9 else -1)

    same(f(x), np.array([-1, 500]))


@xdev.kernel
def grown(i, x, sums, thirds):
    sums[i] = x[i] + 1
    thirds[i] = x[i] // np.uint64(3)


def test_kernels_sums_of_uint64_are_right_modulo_its_range(device, unsigned):
    sums, thirds = (xdev.asarray(np.zeros(2, "u8"), device=device) for _ in range(2))

    grown[2](unsigned, sums, thirds)

    same(sums, xdev.to_numpy(unsigned) + 1)
    same(thirds, xdev.to_numpy(unsigned) // 3)
