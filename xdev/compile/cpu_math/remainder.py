"""fmod: the dividend less a multiple of the divisor, rounded once.

The multiple is among the two that are next to the dividend. So the difference is exact:
it is smaller than the divisor, and has no bit below the divisor's last. Where it is
negative the divisor is added, which is exact likewise. float32 is computed in float64,
so that quotients may be as large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdev.compile.cpu_math.lanes import FLOAT32

if TYPE_CHECKING:
    from xdev.compile.cpu_math.lanes import Lanes

APART = 51  # the quotient is below two to this power, where ``rounding`` rounds it


def not_near(x: Lanes, y: Lanes) -> Lanes:
    """Say where the divisor is zero, subnormal, infinite or nan, or x far beyond it.

    Not where x is infinite or nan, of which the remainder is nan.
    """
    kind, size, divisor = x.kind, x.magnitude.bits, y.magnitude.bits
    least = 1 << kind.mantissa
    far = (size >= divisor + (APART << kind.mantissa)) & (size < kind.infinity)
    return far | (divisor - least >= kind.infinity - least)


def fmod(x: Lanes, y: Lanes) -> Lanes:
    """Return the remainder, with the sign of x."""
    if x.kind is FLOAT32:
        return fmod(x.widened(), y.widened()).narrowed()
    kind, size, divisor = x.kind, x.magnitude, y.magnitude
    # A quotient of numbers far below the divisor could underflow.
    quotient = size.unless(size.bits < divisor.bits, 0.0) / divisor
    whole = (quotient + kind.rounding) - kind.rounding
    rest = whole.fma(0.0 - divisor, size)
    rest += divisor.unless(rest.bits < kind.sign, 0.0)
    return (rest.bits | x.sign).number
