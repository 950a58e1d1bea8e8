"""Functions that are a few calls of the methods and operators of CuPy's arrays.

Those are compiled. CuPy and array_api_compat have most of these functions too, in more
frames of Python, and each frame takes some hundred nanoseconds in a call that is not in
a tight loop.
"""

from __future__ import annotations

from typing import Any

from xdev import _optional


def sort(x: Any, *, axis: int, descending: bool, stable: bool) -> Any:  # noqa: ARG001 - it always is
    """Sort, equal elements in their order."""
    made = x.copy()
    made.sort(axis)
    return _optional.cupy().flip(made, axis) if descending else made


def argsort(x: Any, *, axis: int, descending: bool, stable: bool) -> Any:  # noqa: ARG001 - likewise
    """Return the order, of equal elements their own."""
    if not descending:
        return x.argsort(axis)
    # Flipped before and after, so that equal elements keep their order.
    flip = _optional.cupy().flip
    return x.shape[axis] - 1 - flip(flip(x, axis).argsort(axis), axis)


def nonzero(x: Any) -> Any:
    """Return the indices of what is not zero."""
    if not x.ndim:
        message = "xdev.nonzero: x is zero-dimensional: xdev.reshape(x, (1,)) is not"
        raise ValueError(message)
    return x.nonzero()


def diagonal(x: Any, *, offset: int) -> Any:
    """Return the diagonals of matrices."""
    return x.diagonal(offset, -2, -1)


def trace(x: Any, *, offset: int, dtype: Any) -> Any:
    """Return the sums of the diagonals of matrices."""
    return x.trace(offset, -2, -1, dtype)


def diff(x: Any, *, axis: int, n: int, **ends: Any) -> Any:
    """Return the differences of neighbours; of the last axis with no ado."""
    if n != 1 or axis != -1 or ends or not x.ndim:
        return _optional.cupy().diff(x, n, axis, **ends)
    after, before = x[..., 1:], x[..., :-1]
    return after != before if x.dtype.kind == "b" else after - before
