"""How NumPy lays out a result: in the memory order of the inputs (``order="K"``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


def strides(x: np.ndarray[Any, Any], shape: tuple[int, ...]) -> Sequence[int]:
    """Return an array's strides once it has a shape, 0 along a repeated axis [B].

    Examples
    --------
    >>> strides(np.zeros((2, 1)), (2, 3)), strides(np.zeros((2, 1)), (2, 1))
    ((8, 0), (8, 0))
    """
    if x.shape != shape:
        return np.broadcast_to(x, shape).strides
    return tuple(step if n > 1 else 0 for step, n in zip(x.strides, shape, strict=True))


def axes(strides: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the axes from the one with the largest steps to the smallest.

    Parameters
    ----------
    strides : sequence of sequences of int
        Each input's strides [B] after broadcasting, 0 along a repeated axis.

    Examples
    --------
    >>> axes([(8, 80), (8, 80)])
    (1, 0)
    """
    ordered: list[int] = []
    for axis in reversed(range(len(strides[0]))):  # innermost first, as NumPy sorts
        place = len(ordered)
        for i in reversed(range(len(ordered))):
            smaller = _smaller(axis, ordered[i], strides)
            if smaller is None:
                continue
            if not smaller:
                break
            place = i
        ordered.insert(place, axis)
    return tuple(reversed(ordered))


def _smaller(axis: int, other: int, strides: Sequence[Sequence[int]]) -> bool | None:
    """Say whether an axis has smaller steps; C order wins a conflict, None: unknown."""
    known = [(abs(s[axis]), abs(s[other])) for s in strides if s[axis] and s[other]]
    return all(one < two for one, two in known) if known else None
