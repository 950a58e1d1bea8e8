"""pow: two to the power of y times the logarithm of x to base 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdev.compile.cpu_math import coefficients
from xdev.compile.cpu_math.exponential import scaled
from xdev.compile.cpu_math.lanes import FLOAT32
from xdev.compile.cpu_math.logarithmic import counted, not_positive, split

if TYPE_CHECKING:
    from xdev.compile.cpu_math.lanes import Lanes

ENOUGH = 2.0**66  # a larger exponent makes every power but those of one 0 or infinite
LIMIT = {32: 200.0, 64: 1100.0}  # powers of two beyond the format


def not_plain(x: Lanes, y: Lanes) -> Lanes:
    """Say where the base is not positive, or an operand is infinite or nan."""
    endless = y.magnitude.bits >= y.kind.infinity
    return not_positive(x) | endless


def power(x: Lanes, y: Lanes) -> Lanes:
    """Return x to the power of y."""
    return _power32(x, y) if x.kind is FLOAT32 else _power64(x, y)


def _power32(x: Lanes, y: Lanes) -> Lanes:
    """Compute the logarithm in float64: it leaves no error to care for."""
    exponent, near = split(x)
    near = near.widened()
    ratio = near / (near + 2.0)
    square = ratio * ratio
    series = square.polynomial(coefficients.LOG_POW[32])
    logarithm = (ratio * square).fma(series, ratio + ratio)
    count = counted(exponent).widened()
    power = y.widened() * logarithm.fma(coefficients.LOG2_E[64][0], count)
    power = _bounded(power, LIMIT[32])
    large = power.kind.rounding
    whole = (power + large) - large
    rest = (power - whole).narrowed()
    root = rest.fma(rest.polynomial(coefficients.EXP2[32]), 1.0)
    return scaled(root, whole.narrowed() + x.kind.rounding)


def _power64(x: Lanes, y: Lanes) -> Lanes:
    """Compute with the logarithm as a sum of two numbers."""
    high, low = _log2(x)
    y = _bounded(y, ENOUGH)
    power = y * high
    lost = y.fma(low, y.fma(high, 0.0 - power))
    lost = lost.unless(power.magnitude.beyond(LIMIT[64]), 0.0)
    power = _bounded(power, LIMIT[64])
    far = power + power.kind.rounding
    rest = (power - (far - power.kind.rounding)) + lost
    return scaled(rest.fma(rest.polynomial(coefficients.EXP2[64]), 1.0), far)


def _bounded(x: Lanes, limit: float) -> Lanes:
    return x.unless(x.beyond(limit), limit).unless(x.beyond(-limit), -limit)


def _log2(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return the logarithm to base 2 as the sum of two numbers, to some 68 bits.

    It is 2 artanh(s) of s = f / (2 + f), an odd series: s + s^3 (1/3 + ...).
    """
    exponent, near = split(x)
    below = near + 2.0
    inverse = 1.0 / below
    s = near * inverse
    s_low = (s.fma(0.0 - below, near) - s * (near - (below - 2.0))) * inverse
    square = s * s
    square_low = s.fma(s_low + s_low, s.fma(s, 0.0 - square))
    third, third_low = coefficients.THIRD[64]
    tail = square.fma(square.polynomial(coefficients.LOG_POW[64]), third_low)
    c = tail + third
    c_low = (third - c) + tail
    h = square * c
    h_low = square.fma(c, 0.0 - h) + square.fma(c_low, square_low * c)
    cubic = s * h
    high = s + cubic
    low = s.fma(h, 0.0 - cubic) + s.fma(h_low, s_low.fma(h, s_low))
    low = ((s - high) + cubic) + low
    two, two_low = coefficients.TWO_LOG2_E[64]
    product = high * two
    product_low = high.fma(two, 0.0 - product) + high.fma(two_low, low * two)
    count = counted(exponent)
    total = count + product
    return total, ((count - total) + product) + product_low
