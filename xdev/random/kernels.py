"""Distributions as functions of random words: plain Python, for every device.

Each takes the four words ``(a, b, c, d, *parameters)`` of an index and returns
neighbouring elements. The words, of 32 bits, travel in uint64.

Logarithm, sine and cosine are made of steps that every device rounds alike: sums,
products, one quotient, integer operations. IEEE 754 leaves no choice in any of them,
and no compiler contracts them here. So results are equal, bit for bit, where the C
library's and CUDA's own functions differ in the last places. Without branches, so that
CPUs compute several at a time. The float64 formulas are fdlibm's (Sun Microsystems,
1993, e_log.c, k_sin.c, k_cos.c), the float32 ones Cephes' (S. L. Moshier, logf.c,
sinf.c). All are within 1 ulp or so.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.compile.indexed import Indexed

if TYPE_CHECKING:
    from collections.abc import Callable

    Floats = tuple[np.floating[Any], ...]


Word = np.uint64
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def words64(a: Word, b: Word, c: Word, d: Word) -> tuple[Word, Word]:
    """Return the two words of 64 bits."""
    return (a << HALF) | b, (c << HALF) | d


WORD64, WORD32 = np.uint64, np.uint32
FRACTION64, SHIFT64 = np.uint64(0x000FFFFFFFFFFFFF), np.uint64(52)
ROOT64 = np.uint64(0x3FE6A09E00000000)  # sqrt(1/2), rounded down
UP64 = np.uint64(0x3FF0000000000000 - 0x3FE6A09E00000000)
WHOLE64 = np.uint64(0x4330000000000000)  # 2^52: what is or-ed to it is its fraction
LN2_HIGH64, LN2_LOW64 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
ROOT32 = 0x3F3504F3  # sqrt(1/2)
FRACTION32, WHOLE32 = 0x007FFFFF, np.uint32(0xFF800000)
SCALE32 = np.uint32(32 << 23)  # of words, as fractions of 1
ROOF32 = np.uint32(ROOT32 + (32 << 23) + FRACTION32)
ONE_32, HALF_32, UNIT_23 = np.float32(1), np.float32(0.5), np.float32(2.0**-23)
LN2_HIGH32 = np.float32(0.693359375) * UNIT_23
LN2_LOW32 = np.float32(-2.12194440e-4) * UNIT_23
L0, L1, L2 = map(np.float32, (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1))
L3, L4, L5 = map(np.float32, (-1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1))
L6, L7, L8 = map(np.float32, (2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1))
S0, S1, S2 = map(np.float32, (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1))
C0, C1 = np.float32(2.443315711809948e-5), np.float32(-1.388731625493765e-3)
C2 = np.float32(4.166664568298827e-2)


def nats64(x: np.float64) -> np.float64:
    """Return minus the natural logarithm of a positive normal float64."""
    bits = np.float64(x).view(WORD64) + UP64  # its fraction starts at sqrt(1/2)
    whole = np.uint64((bits >> SHIFT64) | WHOLE64).view(np.float64)
    exponent = whole - 4503599627371519.0  # 2^52 + 1023
    f = np.uint64((bits & FRACTION64) + ROOT64).view(np.float64) - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = 1.479819860511658591e-01
    even = w * even + 1.818357216161805012e-01
    even = w * even + 2.857142874366239149e-01
    even = z * (w * even + 6.666666666666735130e-01)
    odd = 1.531383769920937332e-01
    odd = w * odd + 2.222219843214978396e-01
    odd = w * (w * odd + 3.999999999940941908e-01)
    square = 0.5 * f * f
    small = s * (square + (even + odd)) + exponent * LN2_LOW64
    return ((square - small) - f) - exponent * LN2_HIGH64


def sincos64(x: np.float64) -> tuple[np.float64, np.float64]:
    """Return sine and cosine, ``|x| <= pi/4``."""
    z = x * x
    sine = 1.58969099521155010221e-10
    sine = z * sine - 2.50507602534068634195e-08
    sine = z * sine + 2.75573137070700676789e-06
    sine = z * sine - 1.98412698298579493134e-04
    sine = z * sine + 8.33333333332248946124e-03
    sine = z * sine - 1.66666666666666324348e-01
    cosine = -1.13596475577881948265e-11
    cosine = z * cosine + 2.08757232129817482790e-09
    cosine = z * cosine - 2.75573143513906633035e-07
    cosine = z * cosine + 2.48015872894767294178e-05
    cosine = z * cosine - 1.38888888888741095749e-03
    cosine = z * cosine + 4.16666666666666019037e-02
    return x + x * (z * sine), 1.0 - (0.5 * z - z * (z * cosine))


def nats32(word: Word) -> np.float32:
    """Return minus the natural logarithm of a number in (0, 1].

    All 24 bits of the number are random, also near 0.
    """
    bits = np.float32(np.uint32((word & EVEN) | TWO)).view(WORD32)
    power = np.uint32(np.uint32(ROOF32 - bits) & WHOLE32)  # 2^23 times minus exponent
    f = np.float32(np.uint32(bits + power - SCALE32).view(np.float32) - ONE_32)
    exponent = np.float32(np.int32(power))
    y = L0
    y = np.float32(f * y + L1)
    y = np.float32(f * y + L2)
    y = np.float32(f * y + L3)
    y = np.float32(f * y + L4)
    y = np.float32(f * y + L5)
    y = np.float32(f * y + L6)
    y = np.float32(f * y + L7)
    y = np.float32(f * y + L8)
    z = f * f
    y = f * (z * y) - exponent * LN2_LOW32
    y = y - HALF_32 * z
    return np.float32(exponent * LN2_HIGH32 - (f + y))


def sincos32(x: np.float32) -> tuple[np.float32, np.float32]:
    """Return sine and cosine, ``|x| <= pi/4``."""
    z = x * x
    sine = x + x * (z * ((S0 * z + S1) * z + S2))
    cosine = ONE_32 - (HALF_32 * z - z * (z * ((C0 * z + C1) * z + C2)))
    return np.float32(sine), np.float32(cosine)


ZERO, ONE, TWO, EVEN = map(np.uint64, (0, 1, 2, 0xFFFFFFFE))
TO_52, TO_53, TO_24 = np.uint64(12), np.uint64(11), np.uint64(8)
UNIT_24 = np.float32(2.0**-24)
ONE_64 = np.uint64(0x3FF0000000000000)  # 1.0: what is or-ed to it is its fraction
BELOW_64 = np.uint64(0x3FEFFFFFFFFFFFFF)  # 1 - 2^-53
HALF_64 = np.uint64(0x3FE0000000000000)
ANGLE_64, QUADRANT_64, TOP_64 = np.uint64(9), np.uint64(62), np.uint64(1 << 52)
QUADRANT_32, SIGN_32, SIGN_64 = np.uint64(30), np.uint64(1 << 31), np.uint64(1 << 63)
ANGLE_32, TURN_32 = np.uint64(0x3FFFFFC0), np.float32(1 << 29)
UNIT_ANGLE = np.float32(np.pi / 2) * np.float32(2.0**-30)


def unit64(word: Word) -> np.float64:
    """Return a multiple of 2^-53 in [0, 1)."""
    part = np.uint64((word >> TO_52) | ONE_64).view(np.float64)
    return part - np.uint64(ONE_64 - ((word >> TO_53) & ONE)).view(np.float64)


def open64(word: Word) -> np.float64:
    """Return a multiple of 2^-53 in (0, 1]."""
    part = np.uint64((word >> TO_52) | ONE_64).view(np.float64)
    return part - np.uint64(BELOW_64 - ((word >> TO_53) & ONE)).view(np.float64)


def unit32(word: Word) -> np.float32:
    """Return a multiple of 2^-24 in [0, 1)."""
    return np.float32(np.int32(word >> TO_24)) * UNIT_24


def pair64(radius: Word, angle: Word) -> tuple[np.float64, np.float64]:
    """Return two normal numbers: Box and Muller, 1958."""
    nats = nats64(open64(radius))
    r = np.float64(math.sqrt(nats + nats))
    bits = angle >> ANGLE_64  # of which 53 are a number of right angles in [-1/2, 1/2)
    turn = np.uint64((bits & FRACTION64) | HALF_64).view(np.float64)
    turn = turn - np.uint64(ONE_64 - (bits & TOP_64)).view(np.float64)
    sine, cosine = sincos64(turn * 1.5707963267948966)
    quadrant = angle >> QUADRANT_64
    r = np.uint64(r.view(WORD64) ^ (angle & SIGN_64)).view(np.float64)
    x = sine if quadrant & ONE else cosine
    y = cosine if quadrant & ONE else -sine
    return r * x, r * y


def pair32(radius: Word, angle: Word) -> tuple[np.float32, np.float32]:
    """Return two normal numbers, as :func:`pair64` does."""
    nats = nats32(radius)
    r = np.float32(math.sqrt(np.float32(nats + nats)))
    # 24 bits are a number of right angles in [-1/2, 1/2), times 2^30.
    turn = np.float32(np.int32(angle & ANGLE_32)) - TURN_32
    sine, cosine = sincos32(np.float32(turn * UNIT_ANGLE))
    quadrant = angle >> QUADRANT_32
    r = np.uint32(r.view(WORD32) ^ np.uint32(angle & SIGN_32)).view(np.float32)
    x = sine if quadrant & ONE else cosine
    y = cosine if quadrant & ONE else -sine
    return np.float32(r) * x, np.float32(r) * y


def uniform64(a: Word, b: Word, c: Word, d: Word, low: float, width: float) -> Floats:
    """Uniform numbers of [low, low + width)."""
    a, b = words64(a, b, c, d)
    return low + width * unit64(a), low + width * unit64(b)


def uniform32(a: Word, b: Word, c: Word, d: Word) -> Floats:
    """Uniform numbers of [0, 1)."""
    return unit32(a), unit32(b), unit32(c), unit32(d)


def normal64(a: Word, b: Word, c: Word, d: Word, loc: float, scale: float) -> Floats:
    """Normal numbers."""
    a, b = words64(a, b, c, d)
    x, y = pair64(a, b)
    return loc + scale * x, loc + scale * y


def normal32(a: Word, b: Word, c: Word, d: Word) -> Floats:
    """Standard normal numbers."""
    x, y = pair32(a, b)
    z, w = pair32(c, d)
    return x, y, z, w


def exponential64(a: Word, b: Word, c: Word, d: Word, scale: float) -> Floats:
    """Exponential numbers: minus the logarithm of a uniform one."""
    a, b = words64(a, b, c, d)
    return scale * nats64(open64(a)), scale * nats64(open64(b))


def exponential32(a: Word, b: Word, c: Word, d: Word) -> Floats:
    """Standard exponential numbers."""
    return nats32(a), nats32(b), nats32(c), nats32(d)


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


def few(a: Word, b: Word, c: Word, d: Word, low: Word, count: Word) -> tuple[Word, ...]:
    """Integers of [low, low + count), count at most 2^32, of 64 random bits each."""
    x = (a * count + ((b * count) >> HALF)) >> HALF
    y = (c * count + ((d * count) >> HALF)) >> HALF
    return low + x, low + y


def many(a: Word, b: Word, c: Word, d: Word, low: Word, count: Word) -> Word:
    """Integers of [low, low + count), of 128 random bits each."""
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
