"""Operators inside a function have NumPy's dtypes, by which integers wrap.

The reference is the Python function itself, called with NumPy's scalars.
"""

import itertools
import math

import numpy as np
import pytest

import xdev

PAIRS = ["BB", "bB", "hh", "HI", "iB", "Il", "LL", "hf", "Hf", "if", "Bd"]
OFFSET, TABLE = 5, (3, 70, 101)


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
    return math.floor(x / 3) + x, math.sqrt(abs(x / 2)), math.floor(y / 2) * 3


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
]
INTEGERS = [
    lambda x, y: ((x << 3) >> 2, (x + y) >> 1, x << 5 >> 4),
    lambda x, y: (~x & y, (x | 64) ^ (y + y), ~(x + 1) / 2),
    lambda x, y: (x**2 % 7, x**3 // 2, (x & 3) ** (y & 3) / 2),
]


def check(function, x, y, device):
    """Compare with NumPy's scalars, each result cast to the inputs' result type."""
    there = [xdev.asarray(each, device=device) for each in (x, y)]
    results = xdev.vectorize(function)(*there)
    results = results if isinstance(results, tuple) else (results,)
    with np.errstate(all="ignore"):
        rows = [function(*each) for each in zip(x, y, strict=True)]
    rows = [row if isinstance(row, tuple) else (row,) for row in rows]
    working = np.result_type(x, y)
    for found, expected in zip(results, zip(*rows, strict=True), strict=True):
        found = xdev.to_numpy(found)  # noqa: PLW2901 - on the host from here on
        if found.dtype.kind == "f":
            wide = np.array([float(each) for each in expected])
            rounded = wide.astype(found.dtype)
            limit = 1e-6 if np.float32 in {working, found.dtype} else 1e-13
            np.testing.assert_allclose(found, rounded, limit)
        else:
            assert found.dtype in {working, np.dtype(bool)}
            bits = 8 * found.dtype.itemsize
            wrapped = [
                (int(each) - int(own)) % 2**bits
                for each, own in zip(expected, found, strict=True)
            ]
            assert not any(wrapped), (found, expected)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_operators_wrap_as_numpys(device, function, pair):
    x, y = values(pair[0], 1), values(pair[1], 2)
    x, y = (each.ravel() for each in np.meshgrid(x, y))
    if function is divided and np.result_type(x, y).kind in "iu":
        with np.errstate(all="ignore"):
            told = (y + 7 != 0) & (x + 7 != 0)
        x, y = x[told], y[told]

    check(function, x, y, device)
