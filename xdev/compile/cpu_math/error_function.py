"""erf: an odd polynomial near zero, beyond it one less the exponential of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdev.compile.cpu_math import coefficients
from xdev.compile.cpu_math.exponential import exp

if TYPE_CHECKING:
    from xdev.compile.cpu_math.lanes import Lanes

ONE = {32: 4.0, 64: 6.0}  # erf of it is 1


def erf(x: Lanes) -> Lanes:
    """Return the error function."""
    width = x.kind.width
    size = x.magnitude
    size = size.unless(size.beyond(ONE[width]), ONE[width])
    near = size.fma((size * size).polynomial(coefficients.ERF[width]), size)
    shifted = size - 1.0
    far = 1.0 - exp(shifted.polynomial(coefficients.ERFC[width]))
    return near.unless(size.beyond(coefficients.ERF_LIMIT[width]), far).signed(x.sign)
