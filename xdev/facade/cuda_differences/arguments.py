"""Functions whose arguments have other names than the standard's.

array_api_compat has them too, in more frames of Python.
"""

from __future__ import annotations

from typing import Any


def sort(cupy: Any, x: Any, *, axis: int, descending: bool, stable: bool) -> Any:  # noqa: ARG001 - it always is
    """Sort, equal elements in their order."""
    made = cupy.sort(x, axis)
    return cupy.flip(made, axis) if descending else made


def argsort(cupy: Any, x: Any, *, axis: int, descending: bool, stable: bool) -> Any:  # noqa: ARG001 - likewise
    """Return the order, of equal elements their own."""
    if not descending:
        return x.argsort(axis)
    # Flipped before and after, so that equal elements keep their order.
    order = cupy.flip(x, axis).argsort(axis)
    return x.shape[axis] - 1 - cupy.flip(order, axis)
