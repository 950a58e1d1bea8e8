"""Variances, of whole arrays in CuPy's quick sums.

What CuPy has of its own reads an array with one block of threads for each number that
it makes: 0.2 s for 1 GiB, of which one number is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xdev.facade.protocols import Axes

LARGE = 1 << 16  # elements, from which on two more launches are worth it
AT_ONCE = 1 << 24  # elements whose deviations take memory together


def std(x: Any, *, axis: Axes, correction: float, keepdims: bool) -> Any:
    """Return the standard deviation."""
    if axis is None and x.size >= LARGE:
        whole = _of_all(x, correction, keepdims)
        if whole is not None:
            return whole**0.5
    return x.std(axis, None, None, correction, keepdims)


def var(x: Any, *, axis: Axes, correction: float, keepdims: bool) -> Any:
    """Return the variance."""
    if axis is None and x.size >= LARGE:
        whole = _of_all(x, correction, keepdims)
        if whole is not None:
            return whole
    return x.var(axis, None, None, correction, keepdims)


def _of_all(x: Any, correction: float, keepdims: bool) -> Any:
    """Return the variance of all elements in two passes; None where CuPy's will do."""
    freedom = x.size - correction
    if x.dtype.char not in "fd" or freedom <= 0 or not x.flags.forc:
        return None
    flat = x.ravel("K")
    mean, total = flat.mean(), 0
    for start in range(0, flat.size, AT_ONCE):
        deviation = flat[start : start + AT_ONCE] - mean
        deviation *= deviation
        total = total + deviation.sum()
    found = total / x.dtype.type(freedom)
    return found.reshape((1,) * x.ndim) if keepdims else found
