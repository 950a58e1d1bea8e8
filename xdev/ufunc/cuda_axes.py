"""Axes of CUDA arrays: integers, and nothing that only equals one, as in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

_WHOLE = frozenset({int, np.intp})


def axes_of(axis: Any, rank: int) -> tuple[int, ...]:
    """Return the axes that are meant, counted from the first; None means all.

    Raises
    ------
    TypeError
        They are in something else than a tuple, or one of them is no integer.
    AxisError, ValueError
        There are not so many, or one of them is given twice.

    Examples
    --------
    >>> axes_of((0, -1), 3), axes_of(None, 2), axes_of(0, 0)
    ((0, 2), (0, 1), ())
    """
    if axis is None:
        return tuple(range(rank))
    given = axis if isinstance(axis, tuple) else (axis,)
    if given is not axis and not rank:
        axis_of(axis, 1)  # the one element of no dimensions has one
        return ()
    return normalize_axis_tuple([axis_of(each, rank) for each in given], rank)


def axis_of(axis: Any, rank: int) -> int:
    """Return an axis counted from the first; a truth value is none.

    Raises
    ------
    TypeError
        It is no integer.
    AxisError
        There are not so many.
    """
    if isinstance(axis, bool | np.bool_):
        message = f"the axis is {axis}, which is not an integer"
        raise TypeError(message)
    return normalize_axis_index(axis, rank)


def surely_whole(axis: Any) -> bool:
    """Say whether axes are integers at a glance: ``1.0`` and ``True`` equal 1 too."""
    return _WHOLE.issuperset(map(type, axis if type(axis) is tuple else (axis,)))
