"""Whether values are of the distributions: fixed seeds, bounds of five sigma or so."""

import math

import numpy as np
import pytest
from model import chi_squared

import xdev

N = 200_000
#: A Kolmogorov-Smirnov distance times sqrt(N) exceeds it once in 2e6 times.
KOLMOGOROV = 2.75
NORMAL = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)))
EXPONENTIAL = lambda x: -np.expm1(-x)  # noqa: E731
#: How values are drawn, and their distribution function.
CASES = {
    "random": (lambda r: r.random(N), lambda x: x),
    "random, float32": (lambda r: r.random(N, "float32"), lambda x: x),
    "uniform": (lambda r: r.uniform(-2, 6, N), lambda x: (x + 2) / 8),
    "normal": (lambda r: r.standard_normal(N), NORMAL),
    "normal, float32": (lambda r: r.standard_normal(N, "float32"), NORMAL),
    "of parameters": (lambda r: r.normal(3, 2, N), lambda x: NORMAL((x - 3) / 2)),
    "exponential": (lambda r: r.standard_exponential(N), EXPONENTIAL),
    "exponential, f4": (lambda r: r.standard_exponential(N, "f4"), EXPONENTIAL),
    "of a scale": (lambda r: r.exponential(4, N), lambda x: EXPONENTIAL(x / 4)),
}


def host(x):
    return xdev.to_numpy(x).astype(np.float64)


def distance(values, distribution):
    """Return Kolmogorov's distance to a distribution function, times sqrt(N)."""
    x = distribution(np.sort(values))
    steps = np.arange(len(x) + 1) / len(x)
    return math.sqrt(len(x)) * max((steps[1:] - x).max(), (x - steps[:-1]).max())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_distribution_functions(rng, case):
    draw, distribution = case

    assert distance(host(draw(rng)), distribution) < KOLMOGOROV


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_uniform_numbers_fill_their_grid(rng, dtype):
    values = rng.random(N, dtype)
    bits = 53 if dtype == "float64" else 24
    grid = host(values) * 2**bits

    assert np.array_equal(grid, np.floor(grid))
    assert 0 <= grid.min() <= grid.max() < 2**bits
    for bit in range(bits):  # each is set half of the time
        ones = ((grid.astype(np.int64) >> bit) & 1).sum()
        assert abs(ones - N / 2) < 5 * math.sqrt(N / 4)


@pytest.mark.parametrize("count", [2, 3, 7, 100, 1000])
@pytest.mark.parametrize("ends", ["numbers", "arrays"])
def test_integers_are_equally_likely(rng, device, count, ends):
    low = -3 if ends == "numbers" else xdev.asarray([-3], device=device)
    values = xdev.to_numpy(rng.integers(low, count - 3, N)) + 3

    assert chi_squared(np.bincount(values, minlength=count), N / count) < 5


@pytest.mark.parametrize("count", [2**31 + 1, 2**32, 2**32 + 1, 3 * 2**61, 2**64 - 1])
@pytest.mark.parametrize("ends", ["numbers", "arrays"])
def test_integers_of_wide_ranges_fill_them_evenly(rng, device, count, ends):
    low = 0 if ends == "numbers" else xdev.zeros(1, dtype="uint64", device=device)
    values = xdev.to_numpy(rng.integers(low, count, N, dtype="uint64"))

    assert int(values.max()) < count
    assert distance(values.astype(np.float64) / count, lambda x: x) < KOLMOGOROV
    assert chi_squared(np.bincount(values % 16, minlength=16), N / 16) < 5
