"""sin, cos and tan: multiples of pi taken off in three parts (Cody and Waite).

The first difference is exact, since the quotient times the first part has no bit below
those of the result; the others round relative to a result that, for arguments up to
the limit, does not cancel any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdev.compile.cpu_math import coefficients

if TYPE_CHECKING:
    from xdev.compile.cpu_math.lanes import Lanes

LIMIT = {32: 2.0**17, 64: 2.0**27}  # the quotient stays far from the fraction's length
PI = coefficients.PI
HALF_PI = {width: tuple(part / 2 for part in parts) for width, parts in PI.items()}
INVERSE = 0.3183098861837907  # 1 / pi


def huge(x: Lanes) -> Lanes:
    """Say which arguments the reduction does not take."""
    return x.magnitude.beyond(LIMIT[x.kind.width])


def sin(x: Lanes) -> Lanes:
    """Return the sine."""
    kind = x.kind
    far = x.magnitude.fma(INVERSE, kind.rounding)
    rest = _rest(x.magnitude, far - kind.rounding, PI[kind.width])
    odd = far.bits << (kind.width - 1)
    return _sine(rest).signed(odd ^ x.sign)


def cos(x: Lanes) -> Lanes:
    """Return the cosine: a sine whose argument is off by half a turn."""
    kind = x.kind
    far = x.magnitude.fma(INVERSE, -0.5) + kind.rounding
    quotient = (far - kind.rounding).fma(2.0, 1.0)
    rest = _rest(x.magnitude, quotient, HALF_PI[kind.width])
    even = (far.bits << (kind.width - 1)) ^ kind.sign
    return _sine(rest).signed(even)


def tan(x: Lanes) -> Lanes:
    """Return the tangent; what the reduction rounds off is put back."""
    kind = x.kind
    first, second, third = HALF_PI[kind.width]
    far = x.magnitude.fma(2 * INVERSE, kind.rounding)
    quotient = far - kind.rounding
    start = quotient.fma(-first, x.magnitude)
    taken = quotient * second
    rest = start - taken
    added = rest - start
    lost = (start - (rest - added)) - (taken + added)
    lost = quotient.fma(-third, lost - quotient.fma(second, 0.0 - taken))
    square = rest * rest
    series = square.polynomial(coefficients.TAN[kind.width])
    tangent = rest + (rest * square).fma(series, square.fma(lost, lost))
    odd, even = (far.bits & 1) >= 1, (far.bits & 1) < 1
    # By 2, since LLVM may divide by all lanes first where 1 is chosen: 0 / 0 at zero.
    turned = (tangent + tangent).unless(odd, -1.0) / tangent.unless(even, 2.0)
    return turned.signed(x.sign)


def _rest(x: Lanes, quotient: Lanes, parts: tuple[float, ...]) -> Lanes:
    for part in parts:
        x = quotient.fma(-part, x)
    return x


def _sine(x: Lanes) -> Lanes:
    """Return the sine of at most a quarter turn."""
    square = x * x
    series = square.polynomial(coefficients.SIN[x.kind.width])
    cube = x.fma(x.fma(x, 0.0 - square), x * square)
    return cube.fma(series, x)
