"""Logarithm, sine and cosine in steps that every device rounds alike.

Sums, products, one quotient, integer operations: IEEE 754 leaves no choice in any of
them, and no compiler contracts them here. So results are equal, bit for bit, where the
C library's and CUDA's own functions differ in the last places. Without branches, so
that CPUs compute several at a time.

The float64 formulas are fdlibm's (Sun Microsystems, 1993, e_log.c, k_sin.c, k_cos.c),
the float32 ones Cephes' (S. L. Moshier, logf.c, sinf.c). All are within 1 ulp or so.
"""

from __future__ import annotations

import numpy as np

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
ONE, HALF, HALF_PI = np.float32(1), np.float32(0.5), np.float32(np.pi / 2)
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
    f = np.float32(np.uint32((bits & FRACTION32) + ROOT32).view(np.float32) - ONE)
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
    y = y - HALF * z
    return np.float32((f + y) + exponent * LN2_HIGH32)


def sincos32(turn: np.float32) -> tuple[np.float32, np.float32]:
    """Return sine and cosine of ``turn`` right angles, ``|turn| <= 1/2``."""
    x = turn * HALF_PI
    z = x * x
    sine = x + x * (z * ((S0 * z + S1) * z + S2))
    cosine = ONE - (HALF * z - z * (z * ((C0 * z + C1) * z + C2)))
    return np.float32(sine), np.float32(cosine)
