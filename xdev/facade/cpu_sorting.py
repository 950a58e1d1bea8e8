"""Stable sorting in host memory: NumPy's quick kind, mended where that is not stable.

NumPy's stable kind is a radix sort for integers of up to 16 bits, and Timsort for all
else: some ten times slower than its quick kind, which is made of SIMD instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

FEW = 512  # elements, which the stable kind sorts as quickly
SHORT = 64  # elements of a line that are too few for SIMD
MOST = 2**31  # elements: of fewer a run's number and an index fit in 64 bits
QUICK = frozenset("ilqILQfd")  # data types whose quick kind is worth it
NUMBERS = QUICK | frozenset("?bBhHe")
UINT64 = np.dtype(np.uint64)
_unique: Any = getattr(np.unique, "__wrapped__", np.unique)
_UniqueAll: Any = type(np.unique_all(np.empty(0)))


def _is_quick(x: Any, axis: Any) -> bool:
    """Say whether the quick kind pays; NumPy refuses what is no axis."""
    right = type(x) is np.ndarray and type(axis) is int and -x.ndim <= axis < x.ndim
    large = FEW <= x.size < MOST and x.dtype.char in QUICK
    return right and large and x.shape[axis] >= SHORT


def sort(x: Any, *, axis: Any, descending: bool, stable: bool) -> Any:
    """Return a sorted copy, bit for bit as NumPy's stable kind makes it.

    Parameters
    ----------
    x : numpy.ndarray
        Of any data type; those of derived classes are left to their own ways.
    axis : int
        Along which.
    descending : bool
        Largest first; equal elements keep their order.
    stable : bool
        Unless it is asked for, zeros and NaN may change their sign.

    Raises
    ------
    numpy.exceptions.AxisError
        There is no such axis.
    """
    if descending:  # flipped before and after
        flipped = np.flip(x, axis)
        return np.flip(sort(flipped, axis=axis, descending=False, stable=stable), axis)
    result, quick = x.copy("K"), _is_quick(x, axis)
    # The quick kind of halves puts -0.0 before negative numbers on some processors.
    result.sort(axis, stable=not quick)
    if quick and stable and x.dtype.kind == "f":
        _restore(result.swapaxes(axis, -1), x.swapaxes(axis, -1))
    return result


def _restore(ordered: Any, x: Any) -> None:
    """Put those bits back that the quick kind may change: of zeros and of NaN.

    Those that compare equal lie together in a sorted line, stably in their own order.
    """
    zeros = ordered == 0
    if zeros.any():
        ordered[zeros] = x[x == 0]
    if np.isnan(ordered[..., -1]).any():
        ordered[np.isnan(ordered)] = x[np.isnan(x)]


def argsort(x: Any, *, axis: Any, descending: bool, stable: bool) -> Any:
    """Return the indices that NumPy's stable kind gives; without it, some that sort.

    Parameters and errors are those of :func:`sort`.
    """
    if descending:
        flipped = np.flip(x, axis)
        order = argsort(flipped, axis=axis, descending=False, stable=stable)
        return x.shape[axis] - 1 - np.flip(order, axis)
    if not _is_quick(x, axis):
        return x.argsort(axis, stable=True)
    order = x.argsort(axis)
    if stable:
        ordered = x[order] if x.ndim == 1 else np.take_along_axis(x, order, axis)
        _order_ties(order.swapaxes(axis, -1), ordered.swapaxes(axis, -1))
    return order


def _order_ties(order: Any, ordered: Any) -> None:
    """Put the indices of equal elements, which are neighbours, in ascending order."""
    before, after = ordered[..., :-1], ordered[..., 1:]
    tied = before == after
    if ordered.dtype.kind == "f":
        tied |= np.isnan(before)  # then all that come after are NaN, too
    if not tied.any():
        return
    # Sorted by the number of its run, then by itself: an index stays in its run.
    keys = np.zeros(order.shape, UINT64)
    np.cumsum(~tied, axis=-1, out=keys[..., 1:])
    bits = UINT64.type((order.shape[-1] - 1).bit_length())
    keys <<= bits
    keys |= order.view(UINT64)
    keys.sort(-1)
    keys &= (UINT64.type(1) << bits) - UINT64.type(1)
    order[...] = keys.view(np.intp)


def unique_all(x: Any) -> Any:
    """Return what NumPy's function of this name does, by the order found here."""
    flat = x.ravel()
    if not _is_quick(flat, 0):
        return _UniqueAll(*_unique(x, True, True, True, equal_nan=False))
    order = argsort(flat, axis=0, descending=False, stable=True)
    ordered = flat[order]
    changes = _changes(ordered)
    inverse = np.empty(flat.size, np.intp)
    inverse[order] = np.cumsum(changes) - 1
    starts = changes.nonzero()[0]
    counts = np.diff(starts, append=flat.size)
    return _UniqueAll(ordered[starts], order[starts], inverse.reshape(x.shape), counts)


def unique_values(x: Any) -> Any:
    """Return the distinct values, in ascending order."""
    if x.dtype.char not in NUMBERS:
        return _unique(x, equal_nan=False)
    # NumPy puts some into a hash table, which takes up to 300 times as long.
    ordered = sort(x.ravel(), axis=0, descending=False, stable=False)
    return ordered[_changes(ordered)]


def _changes(ordered: Any) -> Any:
    """Return where an element differs from the one before it."""
    changes = np.ones(ordered.shape, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=changes[1:])
    return changes
