"""Filling that keeps the sign of zero: CuPy clears the memory for -0.0."""

from __future__ import annotations

from functools import cache
from typing import Any

from xdev import _optional


def fill(out: Any, value: Any) -> None:
    """Fill an array of CuPy's with a NumPy scalar of its data type.

    One launch or one clearing of memory, nothing is uploaded.

    Parameters
    ----------
    out : cupy.ndarray
        Any shape.
    value : numpy scalar
        Of ``out``'s data type; -0.0 and complex numbers with such parts stay so.
    """
    if value == 0 and any(value.tobytes()):
        _kernel()(value, out)
    else:
        out.fill(value)


@cache
def _kernel() -> Any:
    make = _optional.cupy().ElementwiseKernel
    return make("T value", "T out", "out = value", "xdev_fill")
