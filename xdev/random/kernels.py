"""Distributions as functions of an index: plain Python on scalars, for every device.

Each takes ``(index, key, call, *parameters)`` and returns neighbouring elements. Their
words are those of Philox-4x32-10, by which a counter and a key become four random words
without any state: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
1, 2, 3", SC'11, https://doi.org/10.1145/2063384.2063405. Words of 32 bits travel in
uint64.

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
Words = tuple[Word, Word, Word, Word]
ROUNDS = 10
MULTIPLIER_0, MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL_0, WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def philox(c0: Word, c1: Word, c2: Word, c3: Word, k0: Word, k1: Word) -> Words:
    """Return the four words of a counter under a key."""
    for _ in range(ROUNDS):
        # What is above 32 bits is left where it is: no product looks at it.
        p0 = MULTIPLIER_0 * (c0 & LOW)
        p1 = MULTIPLIER_1 * (c2 & LOW)
        c0, c1 = (p1 >> HALF) ^ c1 ^ k0, p1
        c2, c3 = (p0 >> HALF) ^ c3 ^ k1, p0
        k0 = k0 + WEYL_0
        k1 = k1 + WEYL_1
    return c0 & LOW, c1 & LOW, c2 & LOW, c3 & LOW


def words32(index: Word, key: Word, call: Word) -> Words:
    """Return the four words of 32 bits that an index of a call has."""
    return philox(
        index & LOW, index >> HALF, call & LOW, call >> HALF, key & LOW, key >> HALF
    )


def words64(index: Word, key: Word, call: Word) -> tuple[Word, Word]:
    """Return the two words of 64 bits that an index of a call has."""
    a, b, c, d = words32(index, key, call)
    return (a << HALF) | b, (c << HALF) | d


WORD64, WORD32 = np.uint64, np.uint32
FRACTION64, SHIFT64 = np.uint64(0x000FFFFFFFFFFFFF), np.uint64(52)
ROOT64 = np.uint64(0x3FE6A09E00000000)  # sqrt(1/2), rounded down
UP64 = np.uint64(0x3FF0000000000000 - 0x3FE6A09E00000000)
WHOLE64 = np.uint64(0x4330000000000000)  # 2^52: what is or-ed to it is its fraction
LN2_HIGH64, LN2_LOW64 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
FRACTION32, SHIFT32 = np.uint32(0x007FFFFF), np.uint32(23)
ROOT32 = np.uint32(0x3F3504F3)
UP32 = np.uint32(0x3F800000 - 0x3F3504F3)
BIAS32 = np.int32(127)
ONE_32, HALF_32, HALF_PI = np.float32(1), np.float32(0.5), np.float32(np.pi / 2)
LN2_HIGH32, LN2_LOW32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
L0, L1, L2 = map(np.float32, (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1))
L3, L4, L5 = map(np.float32, (-1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1))
L6, L7, L8 = map(np.float32, (2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1))
S0, S1, S2 = map(np.float32, (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1))
C0, C1 = np.float32(2.443315711809948e-5), np.float32(-1.388731625493765e-3)
C2 = np.float32(4.166664568298827e-2)


def log64(x: np.float64) -> np.float64:
    """Return the natural logarithm of a positive normal float64."""
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
    return exponent * LN2_HIGH64 - ((square - small) - f)


def sincos64(turn: np.float64) -> tuple[np.float64, np.float64]:
    """Return sine and cosine of ``turn`` right angles, ``|turn| <= 1/2``."""
    x = turn * 1.5707963267948966
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


def log32(x: np.float32) -> np.float32:
    """Return the natural logarithm of a positive normal float32."""
    bits = np.uint32(np.float32(x).view(WORD32) + UP32)
    exponent = np.float32(np.int32(bits >> SHIFT32) - BIAS32)
    f = np.float32(np.uint32((bits & FRACTION32) + ROOT32).view(np.float32) - ONE_32)
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
    y = f * (z * y) + exponent * LN2_LOW32
    y = y - HALF_32 * z
    return np.float32((f + y) + exponent * LN2_HIGH32)


def sincos32(turn: np.float32) -> tuple[np.float32, np.float32]:
    """Return sine and cosine of ``turn`` right angles, ``|turn| <= 1/2``."""
    x = turn * HALF_PI
    z = x * x
    sine = x + x * (z * ((S0 * z + S1) * z + S2))
    cosine = ONE_32 - (HALF_32 * z - z * (z * ((C0 * z + C1) * z + C2)))
    return np.float32(sine), np.float32(cosine)


TO_53, UNIT_53 = np.uint64(11), 2.0**-53
TO_24, UNIT_24 = np.uint64(8), np.float32(2.0**-24)
UNIT_31 = np.float32(2.0**-31)
ZERO, ONE = np.uint64(0), np.uint64(1)
QUADRANT_64, FRACTION_64, REST_64 = np.uint64(62), np.uint64(9), np.uint64(2**53 - 1)
QUADRANT_32, FRACTION_32, REST_32 = np.uint64(30), np.uint64(6), np.uint64(2**24 - 1)
ZERO_32, TWO_32 = np.float32(0), np.float32(2)


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
    r = math.sqrt(np.float32(ZERO_32 - TWO_32 * log32(open32(radius))))
    part = np.float32(np.int32((angle >> FRACTION_32) & REST_32))
    sine, cosine = sincos32(np.float32(part * UNIT_24 - HALF_32))
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
        ZERO_32 - log32(open32(a)),
        ZERO_32 - log32(open32(b)),
        ZERO_32 - log32(open32(c)),
        ZERO_32 - log32(open32(d)),
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
