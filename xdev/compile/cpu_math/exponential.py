"""exp, exp2, expm1 and tanh: 2 to the power of an integer times a polynomial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdev.compile.cpu_math import coefficients
from xdev.compile.cpu_math.lanes import FLOAT32

if TYPE_CHECKING:
    from xdev.compile.cpu_math.lanes import Lanes

LOG2_E = 1.4426950408889634
LEAST = {32: -105.0, 64: -746.0}  # exp of it, and of all below, is zero
LEAST_2 = {32: -151.0, 64: -1076.0}  # likewise exp2
GREATEST = {32: 88.0, 64: 709.0}  # from here on exp may be too large
GREATEST_2 = {32: 127.0, 64: 1023.0}  # likewise exp2
MINUS_ONE = {32: -20.0, 64: -40.0}  # expm1 of it is -1
ONE = {32: 10.0, 64: 20.0}  # tanh of it is 1
TINY = 2.0**-60  # expm1 of anything smaller is the argument


def exp_overflows(x: Lanes) -> Lanes:
    """Say which arguments may have too large an exponential."""
    return x.beyond(GREATEST[x.kind.width])


def exp2_overflows(x: Lanes) -> Lanes:
    """Say which arguments may have too large a power of two."""
    return x.beyond(GREATEST_2[x.kind.width])


def exp(x: Lanes) -> Lanes:
    """Return the exponential."""
    width = x.kind.width
    power, rest, _ = _reduced(x.unless(x.beyond(LEAST[width]), LEAST[width]))
    series = rest.polynomial(coefficients.EXP[width])
    return scaled((rest * rest).fma(series, rest) + 1.0, power)


def exp2(x: Lanes) -> Lanes:
    """Return two to the power of x."""
    width = x.kind.width
    x = x.unless(x.beyond(LEAST_2[width]), LEAST_2[width])
    power = x + x.kind.rounding
    rest = x - (power - x.kind.rounding)
    return scaled(rest.fma(rest.polynomial(coefficients.EXP2[width]), 1.0), power)


def expm1(x: Lanes) -> Lanes:
    """Return the exponential less one."""
    least = MINUS_ONE[x.kind.width]
    return _expm1(x.unless(x.beyond(least), least)).unless(x.smaller(TINY), x)


def tanh(x: Lanes) -> Lanes:
    """Return the hyperbolic tangent, by expm1 of twice the argument.

    That is not accurate enough for small numbers in float32.
    """
    kind = x.kind
    size, limit = x.magnitude, ONE[kind.width]
    size = size.unless(size.beyond(limit), limit)
    grown = _expm1(size + size)
    result = grown / (grown + 2.0)
    if kind is FLOAT32:
        square = size * size
        series = square.polynomial(coefficients.TANH[32])
        near = (size * square).fma(series, size)
        result = result.unless(size.smaller(coefficients.TANH_LIMIT), near)
    return result.signed(x.sign)


def scaled(x: Lanes, power: Lanes) -> Lanes:
    """Return x times two to a power, which stands in the lowest bits of a number.

    Two steps: the power alone may be out of the format, and the product subnormal.
    """
    kind = x.kind
    exponent = power.bits - (kind.rounded_zero - 2 * kind.bias)
    half = exponent >> 1
    whole = x * (half << kind.mantissa).number
    return whole * ((exponent - half) << kind.mantissa).number


def _reduced(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Return x as a multiple of log 2, the rest, and what the rest lost in rounding.

    The multiple stands in the lowest bits of the number returned.
    """
    first, second = coefficients.LN2[x.kind.width]
    power = x.fma(LOG2_E, x.kind.rounding)
    count = power - x.kind.rounding
    start = count.fma(-first, x)
    rest = count.fma(-second, start)
    return power, rest, count.fma(-second, start - rest)


def _expm1(x: Lanes) -> Lanes:
    """Return the exponential less one, accurate for small x."""
    kind = x.kind
    power, rest, lost = _reduced(x)
    series = rest.polynomial(coefficients.EXPM1[kind.width])
    small = rest + (rest * rest).fma(series, rest.fma(lost, lost))
    scale = ((power.bits + kind.bias) << kind.mantissa).number
    return scale.fma(small, scale - 1.0)
