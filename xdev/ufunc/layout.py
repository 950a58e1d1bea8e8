"""Results as NumPy lays them out; on the CPU large ones come from xdev's pool."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from xdev.memory.arrays import host_array, transposed

if TYPE_CHECKING:
    from collections.abc import Sequence


# ``order="K"``: in the memory order of the inputs.


def stretch(
    shape: tuple[int, ...], strides: tuple[int, ...], to: tuple[int, ...]
) -> tuple[int, ...]:
    """Return an array's strides once it has a shape, 0 along a repeated axis [B].

    Examples
    --------
    >>> stretch((2, 1), (8, 8), (4, 2, 3))
    (0, 8, 0)
    """
    kept = [step if n != 1 else 0 for n, step in zip(shape, strides, strict=True)]
    return (*(0,) * (len(to) - len(shape)), *kept)


def axes(strides: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the axes from the one with the largest steps to the smallest.

    Each input's strides are those after broadcasting, 0 along a repeated axis [B].

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
    steps = [(abs(s[axis]), abs(s[other])) for s in strides if s[axis] and s[other]]
    return all(one < two for one, two in steps) if steps else None


# On the CPU.

POOLED = 64 * 1024  # results of so many bytes come from xdev's pool


def bound(operands: Sequence[Any]) -> int:
    """Return a number of elements that the result does not exceed.

    It is the result's own where all arrays have one shape.
    """
    return prod({x.shape: x.size for x in operands if type(x) is ndarray}.values())


def pooled(
    operands: Sequence[Any],
    outputs: Sequence[np.dtype[Any]],
    *,
    where: Any = True,
    order: str = "K",
    least: int = POOLED,
    **_: Any,
) -> tuple[Any, ...] | None:
    """Return large results from xdev's pool, in the layout that NumPy would choose.

    Results of less than ``least`` bytes are left to NumPy: None in the tuple, or in its
    place where all are.
    """
    shape, straight = None, order == "K"
    arrays = []
    for x in operands if where is True else (*operands, where):
        if type(x) is not ndarray:
            if isinstance(x, ndarray):
                return None  # a subclass, which decides on its results
            continue
        straight = straight and x.flags.c_contiguous
        if shape is None:
            shape = x.shape
        elif x.shape != shape:
            try:
                shape = np.broadcast_shapes(shape, x.shape)
            except ValueError:
                return None  # NumPy words the refusal
        arrays.append(x)
    if not shape:
        return None  # of NumPy scalars, or numbers
    order = "C" if straight else order
    return tuple([_like(arrays, shape, d, order, least) for d in outputs])


def _like(
    arrays: Sequence[Any],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    order: str,
    least: int,
) -> ndarray[Any, Any] | None:
    """Return an array of a shape in the memory order that inputs have, or a given one.

    An array that may be freed by hand is its own, no view of another one.
    """
    if prod(shape) * dtype.itemsize < least:
        return None
    if order == "K":
        steps = [stretch(x.shape, x.strides, shape) for x in arrays]
        return ordered(axes(steps), shape, dtype)
    fortran = order == "F" or (order == "A" and all(x.flags.fnc for x in arrays))
    return host_array(shape, dtype, "F" if fortran else "C")


def ordered(
    places: Sequence[int], shape: Sequence[int], dtype: np.dtype[Any]
) -> ndarray[Any, Any]:
    """Return a new array of a shape whose axes lie in memory in an order."""
    straight = host_array(tuple(shape[axis] for axis in places), dtype)
    return transposed(straight, sorted(range(len(places)), key=places.__getitem__))
