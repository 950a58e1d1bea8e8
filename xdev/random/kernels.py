"""Distributions as functions of an index: plain Python on scalars, for every device.

Each takes ``(index, key, call, *parameters)`` and returns neighbouring elements.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.compile.indexed import Indexed
from xdev.random.elementary import log32, log64, sincos32, sincos64
from xdev.random.philox import HALF, LOW, words32, words64

if TYPE_CHECKING:
    from collections.abc import Callable

    Word = np.uint64
    Floats = tuple[np.floating[Any], ...]

TO_53, UNIT_53 = np.uint64(11), 2.0**-53
TO_24, UNIT_24 = np.uint64(8), np.float32(2.0**-24)
UNIT_31 = np.float32(2.0**-31)
ZERO, ONE = np.uint64(0), np.uint64(1)
QUADRANT_64, FRACTION_64, REST_64 = np.uint64(62), np.uint64(9), np.uint64(2**53 - 1)
QUADRANT_32, FRACTION_32, REST_32 = np.uint64(30), np.uint64(6), np.uint64(2**24 - 1)
FLOAT_0, FLOAT_HALF, FLOAT_2 = np.float32(0), np.float32(0.5), np.float32(2)


def unit64(word: Word) -> np.float64:
    """Return a multiple of 2^-53 in [0, 1)."""
    return np.float64(word >> TO_53) * UNIT_53


def open64(word: Word) -> np.float64:
    """Return a multiple of 2^-53 in (0, 1]."""
    return np.float64((word >> TO_53) + ONE) * UNIT_53


def unit32(word: Word) -> np.float32:
    """Return a multiple of 2^-24 in [0, 1)."""
    return np.float32(np.int32(word >> TO_24)) * UNIT_24


def open32(word: Word) -> np.float32:
    """Return a float32 in (0, 1]; all 24 bits of it are random, also near 0."""
    return np.float32(np.int32((word >> ONE) | ONE)) * UNIT_31


def pair64(radius: Word, angle: Word) -> tuple[np.float64, np.float64]:
    """Return two normal numbers: Box and Muller, 1958."""
    r = math.sqrt(0.0 - 2.0 * log64(open64(radius)))
    turn = np.float64((angle >> FRACTION_64) & REST_64) * UNIT_53 - 0.5
    sine, cosine = sincos64(turn)
    quadrant = angle >> QUADRANT_64
    r = -r if quadrant > ONE else r
    x = sine if quadrant & ONE else cosine
    y = cosine if quadrant & ONE else -sine
    return r * x, r * y


def pair32(radius: Word, angle: Word) -> tuple[np.float32, np.float32]:
    """Return two normal numbers, as :func:`pair64` does."""
    r = math.sqrt(np.float32(FLOAT_0 - FLOAT_2 * log32(open32(radius))))
    part = np.float32(np.int32((angle >> FRACTION_32) & REST_32))
    sine, cosine = sincos32(np.float32(part * UNIT_24 - FLOAT_HALF))
    quadrant = angle >> QUADRANT_32
    r = -r if quadrant > ONE else r
    x = sine if quadrant & ONE else cosine
    y = cosine if quadrant & ONE else -sine
    return np.float32(r) * x, np.float32(r) * y


def uniform64(index: Word, key: Word, call: Word, low: float, width: float) -> Floats:
    """Uniform numbers of [low, low + width)."""
    a, b = words64(index, key, call)
    return low + width * unit64(a), low + width * unit64(b)


def uniform32(index: Word, key: Word, call: Word) -> Floats:
    """Uniform numbers of [0, 1)."""
    a, b, c, d = words32(index, key, call)
    return unit32(a), unit32(b), unit32(c), unit32(d)


def normal64(index: Word, key: Word, call: Word, loc: float, scale: float) -> Floats:
    """Normal numbers."""
    a, b = words64(index, key, call)
    x, y = pair64(a, b)
    return loc + scale * x, loc + scale * y


def normal32(index: Word, key: Word, call: Word) -> Floats:
    """Standard normal numbers."""
    a, b, c, d = words32(index, key, call)
    x, y = pair32(a, b)
    z, w = pair32(c, d)
    return x, y, z, w


def exponential64(index: Word, key: Word, call: Word, scale: float) -> Floats:
    """Exponential numbers: minus the logarithm of a uniform one."""
    a, b = words64(index, key, call)
    return scale * (0.0 - log64(open64(a))), scale * (0.0 - log64(open64(b)))


def exponential32(index: Word, key: Word, call: Word) -> Floats:
    """Standard exponential numbers."""
    a, b, c, d = words32(index, key, call)
    return (
        FLOAT_0 - log32(open32(a)),
        FLOAT_0 - log32(open32(b)),
        FLOAT_0 - log32(open32(c)),
        FLOAT_0 - log32(open32(d)),
    )


def below(a: Word, b: Word, c: Word, d: Word, count: Word) -> Word:
    """Return ``floor(count * w)`` of the fraction w whose 128 bits are four words."""
    n0, n1 = count & LOW, count >> HALF
    # Long multiplication from the lowest words up: ``first`` runs along n0's row,
    # ``second`` along the sum of both rows; neither exceeds 64 bits.
    first = ((d * n0) >> HALF) + c * n0
    second = d * n1 + (first & LOW)
    first = (first >> HALF) + b * n0
    second = (second >> HALF) + c * n1 + (first & LOW)
    first = (first >> HALF) + a * n0
    second = (second >> HALF) + b * n1 + (first & LOW)
    return (first >> HALF) + (second >> HALF) + a * n1


def between(high: Word, low: Word, start: Word, count: Word) -> Word:
    """Return an integer of [start, start + count) of 128 bits; 0 counts as 2^64."""
    offset = below(high >> HALF, high & LOW, low >> HALF, low & LOW, count)
    return start + (offset if count > ZERO else high)


def few(index: Word, key: Word, call: Word, low: Word, count: Word) -> tuple[Word, ...]:
    """Integers of [low, low + count), count at most 2^32, of 64 random bits each."""
    a, b, c, d = words32(index, key, call)
    x = (a * count + ((b * count) >> HALF)) >> HALF
    y = (c * count + ((d * count) >> HALF)) >> HALF
    return low + x, low + y


def many(index: Word, key: Word, call: Word, low: Word, count: Word) -> Word:
    """Integers of [low, low + count), of 128 random bits each."""
    a, b, c, d = words32(index, key, call)
    return low + below(a, b, c, d, count)


KINDS = {"Q": np.dtype(np.uint64), "d": np.dtype(np.float64)}
SHAPES: dict[Callable[..., Any], tuple[str, int]] = {  # parameters, lanes
    uniform64: ("dd", 2),
    uniform32: ("", 4),
    normal64: ("dd", 2),
    normal32: ("", 4),
    exponential64: ("d", 2),
    exponential32: ("", 4),
    few: ("QQ", 2),
    many: ("QQ", 1),
    words64: ("", 2),
}


@cache
def kernel(function: Callable[..., Any], result: np.dtype[Any]) -> Indexed:
    """Return a distribution's kernel for a dtype of its results."""
    parameters, lanes = SHAPES[function]
    dtypes = tuple(KINDS[char] for char in f"QQ{parameters}")
    return Indexed(function, dtypes, result, lanes)
