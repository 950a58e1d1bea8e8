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
seeds = given(seed=st.integers(0, 2**32))


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


def any_bits(rng, dtype):
    word = WORDS[dtype]
    bits = rng.integers(0, np.iinfo(word).max, (2, SIZE), word, endpoint=True)
    return bits.view(dtype)


def subnormal(rng, dtype):
    """Return them, and numbers that are up to two to the power of 80 times as large."""
    word = WORDS[dtype]
    least = rng.integers(1, 1 << np.finfo(dtype).nmant, SIZE, word).view(dtype)
    return least, np.ldexp(least, rng.integers(0, 80, SIZE, np.int32))[::-1].copy()


@both
@seeds
def test_of_any_bits(dtype, seed):
    x, y = any_bits(np.random.default_rng(seed), dtype)
    check(x, y)


@both
@seeds
def test_of_numbers_whose_exponents_are_near(dtype, seed):
    rng, word = np.random.default_rng(seed), WORDS[dtype]
    y, _ = any_bits(rng, dtype)
    x = y.view(word) ^ rng.integers(0, 1 << (np.finfo(dtype).nmant + 6), SIZE, word)
    check(x.view(dtype), y)


@both
@given(
    seed=st.integers(0, 2**32),
    digits=st.integers(1, 60),
    less=st.sampled_from([0, 0.5, 1, 2]),
)
def test_beside_multiples(dtype, seed, digits, less):
    rng = np.random.default_rng(seed)
    sign = rng.choice([-1, 1], (2, SIZE))
    y = sign[0] * np.ldexp(1 + rng.random(SIZE), rng.integers(-60, 40, SIZE))
    y = y.astype(dtype)
    count = np.floor(rng.random(SIZE) * 2.0**digits)
    count[::5] = 2.0**digits - less
    x = (sign[1] * count * y).astype(dtype)
    for beside in (x, np.nextafter(x, y), np.nextafter(x, -y)):
        check(beside, y)


@both
@seeds
def test_of_whole_numbers(dtype, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 2**53, SIZE), rng.integers(1, 2**24, SIZE)
    check(x.astype(dtype), y.astype(dtype))


@both
@seeds
def test_of_subnormal_numbers(dtype, seed):
    rng = np.random.default_rng(seed)
    least, larger = subnormal(rng, dtype)
    other, _ = any_bits(rng, dtype)
    for x, y in (least, larger), (larger, least), (larger, larger[::-1].copy()):
        check(x, y)
    check(least, other)
    check(other, least)


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
