"""Functions of complex and real numbers in Python, compiled for every device."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# Functions of complex numbers, which are NumPy's at zeros and infinities, too.
#
# Those in Python are compiled for every device; the C library's, from which NumPy has
# them, serve the CPU, and what has no entry there is Numba's on CUDA.

INFINITY, NAN = math.inf, math.nan
#: Where squares overflow and underflow in float64, and what brings them back.
LARGE, SMALL, DOWN, UP = 2.0**500, 2.0**-500, 2.0**-600, 2.0**600
PRODUCT = 100.0  # larger exponents are none of a product
SHORT = 3  # exponents of products that do not begin with 1
LIBRARY = {
    name: "c" + name.replace("arc", "a").replace("power", "pow")
    for name in (
        *("arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cos", "cosh"),
        *("exp", "log", "power", "sin", "sinh", "sqrt", "tan", "tanh"),
    )
}
SCALED = {  # the function; the factors of its argument and of its result
    "exp2": ("exp", math.log(2), 1.0),
    "log2": ("log", 1.0, 1 / math.log(2)),
    "log10": ("log", 1.0, 1 / math.log(10)),
}


def absolute(z: Any) -> Any:
    """Return the distance from zero, which no square on the way to it spoils."""
    x, y = abs(z.real), abs(z.imag)
    larger = max(x, y)
    factor = DOWN if larger > LARGE else (UP if larger < SMALL else 1.0)
    back = UP if larger > LARGE else (DOWN if larger < SMALL else 1.0)
    a, b = x * factor, y * factor
    found = math.sqrt(a * a + b * b) * back
    return INFINITY if (x == INFINITY) | (y == INFINITY) else found


def narrow_absolute(z: Any) -> Any:
    """Return that of a complex64, of which float64 has the squares."""
    x, y = np.float64(z.real), np.float64(z.imag)
    found = math.sqrt(x * x + y * y)
    return INFINITY if (abs(x) == INFINITY) | (abs(y) == INFINITY) else found


def sign(z: Any) -> Any:
    """Return the number of the same direction at distance 1."""
    x, y = z.real, z.imag
    size = math.hypot(x, y)
    if size == 0:
        return complex(0.0, 0.0)
    if size == INFINITY and (abs(x) != INFINITY or abs(y) != INFINITY):
        x = math.copysign(1.0, x) if abs(x) == INFINITY else 0.0
        y = math.copysign(1.0, y) if abs(y) == INFINITY else 0.0
        return complex(x, y)
    return complex(x / size, y / size)


def unsigned_sign(x: Any) -> Any:
    """Return 1 of an unsigned integer, or 0 of 0."""
    return x != 0


def rint(z: Any) -> Any:
    """Return the number whose parts are whole, the nearest ones."""
    return complex(np.rint(z.real), np.rint(z.imag))


def expm1(z: Any) -> Any:
    """Return exp(z) - 1, also where that is small."""
    half = math.sin(z.imag / 2)
    real = math.expm1(z.real) * math.cos(z.imag) - 2 * half * half
    return complex(real, math.exp(z.real) * math.sin(z.imag))


def log1p(z: Any) -> Any:
    """Return log(1 + z)."""
    x = z.real + 1
    return complex(math.log(math.hypot(x, z.imag)), math.atan2(z.imag, x))


def exp(z: Any) -> Any:
    """Return the exponential."""
    size = math.exp(z.real)
    if z.imag == 0:
        return complex(size, z.imag)
    if size == 0 and not math.isfinite(z.imag):
        return complex(0.0, 0.0)
    return complex(size * math.cos(z.imag), size * math.sin(z.imag))


def log(z: Any) -> Any:
    """Return the logarithm, also near a distance of 1."""
    x, y = abs(z.real), abs(z.imag)
    larger, smaller = max(x, y), min(x, y)
    angle = math.atan2(z.imag, z.real)
    if 0.5 < larger < 1.5:  # noqa: PLR2004 - the distance may be near 1
        square = (larger - 1) * (larger + 1) + smaller * smaller
        return complex(math.log1p(square) / 2, angle)
    size = math.hypot(x, y)
    if size == INFINITY and larger < INFINITY:
        return complex(math.log(math.hypot(x / 2, y / 2)) + math.log(2.0), angle)
    return complex(math.log(size), angle)


def power(z: Any, w: Any) -> Any:
    """Return z to the power of w, by the logarithm."""
    size, angle = math.hypot(z.real, z.imag), math.atan2(z.imag, z.real)
    distance = size**w.real * math.exp(-w.imag * angle)
    angle = w.real * angle + w.imag * math.log(size)
    return complex(distance * math.cos(angle), distance * math.sin(angle))


def is_product(z: Any, w: Any) -> Any:
    """Say whether a power is a product, or one of zero."""
    exponent = w.real
    whole = (
        (w.imag == 0) & (abs(exponent) < PRODUCT) & (math.floor(exponent) == exponent)
    )
    return whole | ((z.real == 0) & (z.imag == 0))


def product(z: Any, w: Any) -> Any:
    """Return such a power; products are in NumPy's order, which NaN depends on."""
    x, y, n = z.real, z.imag, abs(w.real)
    if n == 0 and w.imag == 0:
        return complex(1.0, 0.0)
    if x == 0 and y == 0:
        return complex(0.0, 0.0) if w.real > 0 else complex(NAN, NAN)
    a, b, left = x, y, int(n)
    p, q, first = 1.0, 0.0, 0 < w.real <= SHORT
    while left != 0:
        if left & 1:
            p, q = (a, b) if first else (p * a - q * b, p * b + q * a)
            first = False
        a, b, left = a * a - b * b, 2 * a * b, left >> 1
    if w.real > 0:
        return complex(p, q)
    return 1.0 / complex(p, q)


# Functions of real numbers as NumPy has them, compiled where compilers lack them.

LOG2 = math.log(2)


def logaddexp(x: Any, y: Any) -> Any:
    """Return log(exp(x) + exp(y)), of equal infinities too."""
    if x == y:
        return x + LOG2
    rest = x - y
    larger = x if rest > 0 else y
    return larger + math.log1p(math.exp(-abs(rest)))  # NaN, if the difference is


def logaddexp2(x: Any, y: Any) -> Any:
    """Return the logarithm to the base of 2 of the sum of two powers of it."""
    if x == y:
        return x + 1
    rest = x - y
    larger = x if rest > 0 else y
    return larger + math.log1p(2.0 ** -abs(rest)) / LOG2


def complex_div(a: Any, b: Any) -> Any:
    """Return CPython's quotient of complex numbers, and NumPy's where that raises."""
    areal, aimag, breal, bimag = a.real, a.imag, b.real, b.imag
    abs_breal, abs_bimag = abs(breal), abs(bimag)
    if abs_breal >= abs_bimag:
        if abs_breal == 0:
            return complex(areal / abs_breal, aimag / abs_breal)
        ratio = bimag / breal
        denom = breal + bimag * ratio
        return complex((areal + aimag * ratio) / denom, (aimag - areal * ratio) / denom)
    if abs_bimag >= abs_breal:
        ratio = breal / bimag
        denom = breal * ratio + bimag
        return complex((areal * ratio + aimag) / denom, (aimag * ratio - areal) / denom)
    return complex(NAN, NAN)
