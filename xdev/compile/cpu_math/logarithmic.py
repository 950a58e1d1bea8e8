"""log, log2, log10 and log1p: an exponent, and the logarithm of a number near one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdev.compile.cpu_math import coefficients
from xdev.compile.cpu_math.lanes import FLOAT32

if TYPE_CHECKING:
    from xdev.compile.cpu_math.lanes import Lanes

Pair = tuple[float, float]
TINY = 2.0**-60  # log1p of anything smaller is the argument


def not_positive(x: Lanes) -> Lanes:
    """Say which arguments are not positive, or subnormal, infinite, or nan."""
    kind = x.kind
    least = 1 << kind.mantissa
    return x.bits - least >= kind.infinity - least


def not_above_minus_one(x: Lanes) -> Lanes:
    """Say of which arguments log1p is not finite; the largest, and nan, too."""
    kind = x.kind
    largest = kind.infinity - (1 << kind.mantissa)
    return (x + 1.0).bits - 1 >= largest - 1


def log(x: Lanes) -> Lanes:
    """Return the natural logarithm."""
    return _whole(*split(x), coefficients.LN2[x.kind.width])


def log2(x: Lanes) -> Lanes:
    """Return the logarithm to base 2."""
    return _whole(*split(x), (1.0, 0.0), coefficients.LOG2_E[x.kind.width])


def log10(x: Lanes) -> Lanes:
    """Return the logarithm to base 10."""
    two, e = coefficients.LOG10_2, coefficients.LOG10_E
    return _whole(*split(x), two[x.kind.width], e[x.kind.width])


def log1p(x: Lanes) -> Lanes:
    """Return the logarithm of 1 + x; what the sum rounds off is put back."""
    kind = x.kind
    total = x + 1.0
    added = total - 1.0
    lost = (1.0 - (total - added)) + (x - added)
    exponent, near = split(total)
    shrink = (2 * kind.bias - exponent) << kind.mantissa
    near = lost.fma(shrink.number, near)
    result = _whole(exponent, near, coefficients.LN2[kind.width])
    return result.unless(x.smaller(TINY), x)


def split(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return n and f of x = 2^n (1 + f), with 1 + f between the roots of 1/2 and 2.

    n is an integer with the format's bias added; x is positive and normal.
    """
    kind = x.kind
    root = coefficients.SQRT_HALF[kind.width]
    shifted = x.bits + (kind.one - root)
    fraction = (shifted & ((1 << kind.mantissa) - 1)) + root
    return shifted >> kind.mantissa, fraction.number - 1.0


def counted(exponent: Lanes) -> Lanes:
    """Return a biased exponent as a number: the lowest bits of a large one."""
    kind = exponent.kind
    large = 2.0**kind.mantissa
    bits = (kind.bias + kind.mantissa) << kind.mantissa
    return (exponent | bits).number - (large + kind.bias)


def _whole(exponent: Lanes, near: Lanes, two: Pair, e: Pair | None = None) -> Lanes:
    """Return the logarithm of 2^n (1 + f) to some base, from those of 2 and e to it.

    Both are sums of two numbers; that of e is one if left out.
    """
    count, high, low = counted(exponent), near, _rest(near)
    if e is not None:
        high = near * e[0]
        lost = near.fma(e[1], near.fma(e[0], 0.0 - high))
        low = low.fma(e[0], lost)
    return count.fma(two[0], high) + count.fma(two[1], low)


def _rest(near: Lanes) -> Lanes:
    """Return the logarithm of 1 + f less f."""
    series = coefficients.LOG[near.kind.width]
    square = near * near
    if near.kind is FLOAT32:  # a power series is short enough
        return (near * square).fma(near.polynomial(series), square * -0.5)
    ratio = near / (near + 2.0)
    half, root = square * 0.5, ratio * ratio
    return ratio.fma(root.fma(root.polynomial(series), half), 0.0 - half)
