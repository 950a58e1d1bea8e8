# ruff: noqa: A001 - the standard names functions as Python does
"""Elementwise arithmetic, rounding, signs and parts of complex numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.facade.arity import binary, unary
from xdev.facade.clipping import NUMBERS
from xdev.facade.cpu import NUMPY
from xdev.facade.dispatch import apply, refuse
from xdev.facade.libraries import PYTHON_SCALARS, direct
from xdev.ufunc.complaints import misplaced, no_array

if TYPE_CHECKING:
    from typing import Never

    from xdev.facade.protocols import Array

__all__ = [
    "abs",
    "add",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "divide",
    "floor",
    "floor_divide",
    "imag",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "square",
    "subtract",
    "trunc",
]

abs = unary(
    "abs",
    "Absolute value; the magnitude of a complex number.",
    "xdev.asarray([-1.5, 2.0])",
    "array([1.5, 2. ])",
)
ceil = unary(
    "ceil",
    "Smallest whole number that is not less.",
    "xdev.asarray([-1.5, 1.5])",
    "array([-1.,  2.])",
)
conj = unary(
    "conj",
    "Complex conjugate.",
    "xdev.asarray([1 + 2j, 3 - 4j])",
    "array([1.-2.j, 3.+4.j])",
)
floor = unary(
    "floor",
    "Largest whole number that is not greater.",
    "xdev.asarray([-1.5, 1.5])",
    "array([-2.,  1.])",
)
imag = unary(
    "imag",
    "Imaginary part.",
    "xdev.asarray([1 + 2j, 3 - 4j])",
    "array([ 2., -4.])",
)
negative = unary(
    "negative",
    "The number of opposite sign.",
    "xdev.asarray([1.0, -2.0])",
    "array([-1.,  2.])",
)
positive = unary(
    "positive",
    "The number itself, copied.",
    "xdev.asarray([1.0, -2.0])",
    "array([ 1., -2.])",
)
real = unary(
    "real",
    "Real part; of a NumPy array, a view.",
    "xdev.asarray([1 + 2j, 3 - 4j])",
    "array([1., 3.])",
)
reciprocal = unary(
    "reciprocal",
    "One divided by each element.",
    "xdev.asarray([2.0, 4.0])",
    "array([0.5 , 0.25])",
)
round = unary(
    "round",
    "Nearest whole number; halves go to the even one.",
    "xdev.asarray([0.5, 1.5, 2.6])",
    "array([0., 2., 3.])",
)
sign = unary(
    "sign",
    "Sign: -1, 0 or 1; x / abs(x) of a complex number.",
    "xdev.asarray([-2.5, 0.0, 3.0])",
    "array([-1.,  0.,  1.])",
)
square = unary(
    "square",
    "Square.",
    "xdev.asarray([1.5, -2.0])",
    "array([2.25, 4.  ])",
)
trunc = unary(
    "trunc",
    "Whole number nearest to 0 of the two around.",
    "xdev.asarray([-1.5, 1.5])",
    "array([-1.,  1.])",
)
add = binary(
    "add",
    "Sum.",
    "xdev.asarray([1.0, 2.0]), 10",
    "array([11., 12.])",
)
copysign = binary(
    "copysign",
    "Magnitude of x1 with the sign of x2.",
    "xdev.asarray([1.0, -2.0]), -1.0",
    "array([-1., -2.])",
)
divide = binary(
    "divide",
    "Quotient, a floating-point number.",
    "xdev.asarray([1.0, 2.0]), 4",
    "array([0.25, 0.5 ])",
)
floor_divide = binary(
    "floor_divide",
    "Quotient rounded towards minus infinity.",
    "xdev.asarray([-7, 7]), 2",
    "array([-4,  3])",
)
maximum = binary(
    "maximum",
    "The larger of the two; NaN if either is.",
    "xdev.asarray([1.0, 3.0]), 2.0",
    "array([2., 3.])",
)
minimum = binary(
    "minimum",
    "The smaller of the two; NaN if either is.",
    "xdev.asarray([1.0, 3.0]), 2.0",
    "array([1., 2.])",
)
multiply = binary(
    "multiply",
    "Product.",
    "xdev.asarray([1.5, 2.0]), 2",
    "array([3., 4.])",
)
nextafter = binary(
    "nextafter",
    "Next number after x1 in the direction of x2.",
    "xdev.asarray([0.0, 1.0]), 2.0",
    "array([5.e-324, 1.e+000])",
)
pow = binary(
    "pow",
    "x1 to the power of x2.",
    "xdev.asarray([2.0, 3.0]), 3",
    "array([ 8., 27.])",
)
remainder = binary(
    "remainder",
    "Remainder of the division, with the sign of x2.",
    "xdev.asarray([-7, 7]), 3",
    "array([2, 1])",
)
subtract = binary(
    "subtract",
    "Difference.",
    "xdev.asarray([1.0, 2.0]), 10",
    "array([-9., -8.])",
)

_numpy_clip = NUMPY.bound("clip", None)
ndarray = np.ndarray
_PLAIN = PYTHON_SCALARS | {ndarray, type(None)}


def clip(
    x: Array,
    /,
    min: Any = None,
    max: Any = None,
    out: Array | None = None,
    **unknown: Never,
) -> Array:
    """Limit each element to the range from ``min`` to ``max``.

    Parameters
    ----------
    x : array
        Real numbers, any shape.
    min, max : array or number, optional
        Ends of the range, of shapes that broadcast with ``x``. Where ``x`` has
        integers, what is beyond the range of their data type means its ends, and 0.5 is
        1 as ``min`` and 0 as ``max``. None: no limit on that side.
    out : array, optional
        Where to write: an array of the result's shape, on the same device, that can
        hold its data type.

    Returns
    -------
    array
        Of ``x``'s data type; ``out`` if given. NaN stays NaN.

    Raises
    ------
    DeviceMismatchError
        The arrays are of two devices or libraries.
    ValueError, TypeError
        ``out`` has another shape or is read-only; it cannot hold the data type. A
        number that limits integers is NaN.

    Examples
    --------
    >>> import xdev
    >>> xdev.clip(xdev.asarray([-1.0, 0.5, 7.0]), 0, 1)
    array([0. , 0.5, 1. ])
    """
    if unknown:
        raise misplaced(clip, (), unknown)
    if out is None:
        kind = type(x)
        if kind is ndarray:
            if type(min) in _PLAIN and type(max) in _PLAIN:
                try:
                    return _numpy_clip(x, min, max)
                except (TypeError, ValueError):
                    refuse("clip", x=x, min=min, max=max)
                    raise
        elif type(min) in NUMBERS and type(max) in NUMBERS:
            theirs = direct.get(kind)
            if theirs is not None:
                return theirs["clip"](x, min, max)
    if type(x) in PYTHON_SCALARS:  # whose data type would be the result's
        raise no_array("clip", "x", x)
    done: Array = apply("clip", out, x=x, min=min, max=max)
    return done
