"""Functions that count elements or look for them."""

from __future__ import annotations

from typing import Any


def repeat(cupy: Any, x: Any, repeats: Any, *, axis: int | None) -> Any:
    """Repeat elements, each as often as its count says; counts may be an array."""
    if not isinstance(repeats, cupy.ndarray):
        return x.repeat(repeats, axis)
    if axis is None:
        x, axis = x.ravel(), 0
    ends = cupy.cumsum(cupy.broadcast_to(repeats, (x.shape[axis],)))
    total = int(ends[-1]) if ends.size else 0  # the result's shape: the host must wait
    source = cupy.searchsorted(ends, cupy.arange(total), side="right")
    return cupy.take(x, source, axis=axis)


def isin(cupy: Any, x1: Any, x2: Any, *, invert: bool = False) -> Any:
    """Say which elements of ``x1`` are among those of ``x2``; either is a number."""
    if type(x1) is not cupy.ndarray:
        x1 = cupy.asarray(x1)
    if type(x2) is not cupy.ndarray:
        x2 = cupy.asarray(x2)
    return cupy.isin(x1, x2, invert=invert)


def searchsorted(
    cupy: Any, x1: Any, x2: Any, *, side: Any = "left", sorter: Any = None
) -> Any:
    """Find where values, or a number, belong among sorted ones."""
    if type(x2) is not cupy.ndarray:
        x2 = cupy.asarray(x2)
    return cupy.searchsorted(x1, x2, side, sorter)
