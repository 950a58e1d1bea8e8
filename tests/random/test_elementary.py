"""The functions made of single roundings, against the C library's."""

import math

import numpy as np
import pytest

from xdev.random.kernels import log32, log64, sincos32, sincos64

N = 4000


def ulps(found, exact, dtype):
    """Return the error in units of the last place of the exact value."""
    return abs(float(found) - exact) / float(np.spacing(dtype(abs(exact))))


def arguments(dtype, bits):
    """Return numbers of (0, 1], near 0 and near 1 too."""
    rng = np.random.default_rng(0)
    exponents = rng.uniform(-bits, 0, N)
    near_one = 1 - rng.uniform(0, 1e-3, N // 4)
    return np.concatenate([2**exponents, near_one, [2.0**-bits, 0.5, 1]]).astype(dtype)


@pytest.mark.parametrize(
    ("log", "dtype", "bits", "bound"),
    [(log64, np.float64, 53, 1.0), (log32, np.float32, 31, 1.0)],
)
def test_logarithms_are_within_an_ulp(log, dtype, bits, bound):
    worst = max(
        ulps(log(x), math.log(x), dtype) for x in arguments(dtype, bits) if x < 1
    )

    assert worst <= bound
    assert log(dtype(1)) == 0


@pytest.mark.parametrize(
    ("sincos", "dtype"), [(sincos64, np.float64), (sincos32, np.float32)]
)
def test_sines_and_cosines_are_within_two_ulps(sincos, dtype):
    turns = np.random.default_rng(1).uniform(-0.5, 0.5, N).astype(dtype)

    for turn in turns:
        sine, cosine = sincos(turn)
        assert ulps(sine, math.sin(float(turn) * math.pi / 2), dtype) <= 2
        assert ulps(cosine, math.cos(float(turn) * math.pi / 2), dtype) <= 2


@pytest.mark.parametrize(
    ("sincos", "dtype"), [(sincos64, np.float64), (sincos32, np.float32)]
)
def test_the_ends_of_a_quadrant(sincos, dtype):
    assert sincos(dtype(0)) == (0, 1)
    sine, cosine = sincos(dtype(-0.5))
    assert sine == pytest.approx(-math.sqrt(0.5), rel=2e-7)
    assert cosine == pytest.approx(math.sqrt(0.5), rel=2e-7)
