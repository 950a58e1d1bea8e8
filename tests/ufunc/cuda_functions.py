"""Functions for a real GPU, and values for them."""

import math

import numpy as np

from xdev.ufunc import vectorize


@vectorize
def add(x, y):
    return x + y


@vectorize
def chain(a, x, y):
    return a * x + y * 3 - x * x


@vectorize
def sine(x):
    return math.sin(x)


@vectorize
def above(x, y):
    return x > y


def sample(shape, char, seed=0):
    """Return random values that no sum or product of three overflows."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(char)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind == "c":
        return (rng.random(shape) - 0.5j * rng.random(shape)).astype(dtype)
    if dtype.kind == "f":
        return (rng.random(shape) * 4 - 2).astype(dtype)
    return rng.integers(0, 5, shape).astype(dtype)
