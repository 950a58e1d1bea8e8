"""Remainders and whole quotients of floats are NumPy's, to the last bit."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numba import float64, types

import xdev

SIZE = 2_000
WORDS = {"f4": np.uint32, "f8": np.uint64}
LIKE_NUMPYS = {
    np.fmod: xdev.vectorize(lambda x, y: np.fmod(x, y)),  # noqa: PLW0108 - has a source
    np.remainder: xdev.vectorize(lambda x, y: x % y),
    np.floor_divide: xdev.vectorize(lambda x, y: x // y),
    np.divmod: xdev.vectorize(lambda x, y: divmod(x, y)),  # noqa: PLW0108 - likewise
}
both = pytest.mark.parametrize("dtype", WORDS)


def check(x, y):
    """Compare the bits of all results but NaN, each with its neighbours and alone."""
    word = WORDS[x.dtype.str[1:]]
    with np.errstate(all="ignore"):
        for numpys, ours in LIKE_NUMPYS.items():
            expected, found = np.array([numpys(x, y), ours(x, y)])
            right = (expected.view(word) == found.view(word)) | (
                np.isnan(expected) & np.isnan(found)
            )
            wrong = ~right.reshape(-1, x.size).all(0)
            assert not wrong.any(), (numpys, x[wrong][0], y[wrong][0])
            alone = np.array([ours(*pair) for pair in zip(x[:9], y[:9], strict=True)])
            np.testing.assert_array_equal(alone.T, found[..., :9])


def of_any_bits(rng, dtype):
    word = WORDS[dtype]
    bits = rng.integers(0, np.iinfo(word).max, (2, SIZE), word, endpoint=True)
    return bits.view(dtype)


def of_near_exponents(rng, dtype):
    word, (y, _) = WORDS[dtype], of_any_bits(rng, dtype)
    few = rng.integers(0, 1 << (np.finfo(dtype).nmant + 6), SIZE, word)
    return (y.view(word) ^ few).view(dtype), y


def beside_multiples(rng, dtype):
    """Return products of as many digits, of divisors, and their neighbours."""
    digits, less = rng.integers(1, 60), rng.choice([0, 0.5, 1, 2])
    sign = rng.choice([-1, 1], (2, SIZE))
    y = sign[0] * np.ldexp(1 + rng.random(SIZE), rng.integers(-60, 40, SIZE))
    y = y.astype(dtype)
    count = np.floor(rng.random(SIZE) * 2.0**digits)
    count[::5] = 2.0**digits - less
    x = (sign[1] * count * y).astype(dtype)
    return np.concatenate([x, np.nextafter(x, y), np.nextafter(x, -y)]), np.tile(y, 3)


def of_whole_numbers(rng, dtype):
    x, y = rng.integers(0, 2**53, SIZE), rng.integers(1, 2**24, SIZE)
    return x.astype(dtype), y.astype(dtype)


def of_subnormal_numbers(rng, dtype):
    """Return them, and numbers up to two to the power of 80 times as large, and any."""
    least = rng.integers(1, 1 << np.finfo(dtype).nmant, SIZE, WORDS[dtype]).view(dtype)
    large = np.ldexp(least, rng.integers(0, 80, SIZE, np.int32))[::-1]
    other, _ = of_any_bits(rng, dtype)
    x = np.concatenate([least, large, large, least, other])
    return x, np.concatenate([large, least, large[::-1], other, least])


@both
@pytest.mark.parametrize(
    "pairs",
    [
        *(of_any_bits, of_near_exponents, beside_multiples),
        *(of_whole_numbers, of_subnormal_numbers),
    ],
)
@given(seed=st.integers(0, 2**32))
def test_all_results_are_numpys(dtype, pairs, seed):
    check(*pairs(np.random.default_rng(seed), dtype))


@both
def test_no_quotient_underflows(dtype):
    x, y = np.array([[np.finfo(dtype).tiny], [np.finfo(dtype).max]]).repeat(64, 1)
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(LIKE_NUMPYS[np.fmod](x, y), x)


@both
def test_a_rare_divisor_changes_no_other_lane(dtype):
    x, y = np.random.default_rng(0).uniform(1, 9, (2, 64)).astype(dtype)
    for k in range(x.size):
        changed = y.copy()
        changed[k] = np.inf
        check(x, changed)


@both
def test_beside_the_librarys_own(dtype):
    kind = {"f4": types.float32, "f8": float64}[dtype]
    name = {"f4": "fmodf", "f8": "fmod"}[dtype]
    own = types.ExternalFunction(name, kind(kind, kind))
    f = xdev.vectorize(lambda x, y: own(x, y) + x % y)
    x, y = np.random.default_rng(0).uniform(1, 9, (2, 64)).astype(dtype)

    np.testing.assert_array_equal(f(x, y), np.fmod(x, y) + x % y)
