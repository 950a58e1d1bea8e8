"""Functions on the set of an array's values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np

from xdev._freed import FREED
from xdev.facade.cpu import bare
from xdev.facade.dispatch import direct, mixed
from xdev.facade.host_sorting import HALF, NUMBERS, QUICK, argsort, sort
from xdev.ufunc.complaints import misplaced

if TYPE_CHECKING:
    from typing import Never

    from xdev.facade.protocols import Array, UniqueAll, UniqueCounts, UniqueInverse

__all__ = ["isin", "unique_all", "unique_counts", "unique_inverse", "unique_values"]

ndarray = np.ndarray
_isin = bare("isin")
_unique: Any = bare("unique")
_UniqueAll, _UniqueCounts, _UniqueInverse = (
    type(bare(name)(np.empty(0)))
    for name in ("unique_all", "unique_counts", "unique_inverse")
)

MANY = 2048  # elements from which the order found here pays


@overload
def isin(x1: complex, x2: Array, /, *, invert: bool = False) -> Array: ...


@overload
def isin(x1: Array, x2: Any, /, *, invert: bool = False) -> Array: ...


def isin(x1: Any, x2: Any, /, *more: Never, invert: bool = False) -> Any:
    """Whether each element of ``x1`` is among those of ``x2``.

    Parameters
    ----------
    x1, x2 : array or int
        At least one is an array.
    invert : bool
        Whether it is not.

    Returns
    -------
    array
        bool, of ``x1``'s shape.

    Raises
    ------
    DeviceMismatchError
        The arrays are of two devices or libraries.

    Examples
    --------
    >>> import xdev
    >>> xdev.isin(xdev.asarray([1, 2, 3]), xdev.asarray([2, 5]))
    array([False,  True, False])
    """
    if more:
        raise misplaced(isin, more)
    if (
        type(x1) is type(x2) is ndarray
        and x1.dtype not in FREED
        and x2.dtype not in FREED
    ):
        return _isin(x1, x2, False, invert)
    kind = type(x1)
    if kind is type(x2) and kind in direct:
        return direct[kind]["isin"](x1, x2, invert=invert)
    function, values = mixed("isin", x1=x1, x2=x2)
    return function(*values, invert=invert)


def unique_all(x: Array, /) -> UniqueAll[Array]:
    """Distinct values, where each is first, how to rebuild ``x``, and how often.

    Parameters
    ----------
    x : array
        Any shape; NaN are all distinct.

    Returns
    -------
    namedtuple of arrays
        ``values``, ``indices``, ``inverse_indices`` (of ``x``'s shape), ``counts``.

    Examples
    --------
    >>> import xdev
    >>> xdev.unique_all(xdev.asarray([5, 3, 5])).indices
    array([1, 0])
    """
    if type(x) is ndarray and x.dtype not in FREED:
        if x.size < MANY or x.dtype.char not in QUICK:
            return _UniqueAll(*_unique(x, True, True, True, equal_nan=False))
        return _sorted_all(x)
    return direct[type(x)]["unique_all"](x)


def unique_counts(x: Array, /) -> UniqueCounts[Array]:
    """Distinct values, and how often each is there.

    Parameters
    ----------
    x : array
        Any shape; NaN are all distinct.

    Returns
    -------
    namedtuple of arrays
        ``values``, ``counts``.

    Examples
    --------
    >>> import xdev
    >>> xdev.unique_counts(xdev.asarray([5, 3, 5])).counts
    array([1, 2])
    """
    if type(x) is ndarray and x.dtype not in FREED:
        if x.dtype.char == HALF:
            found = _sorted_all(x)
            return _UniqueCounts(found.values, found.counts)
        return _UniqueCounts(*_unique(x, False, False, True, equal_nan=False))
    return direct[type(x)]["unique_counts"](x)


def unique_inverse(x: Array, /) -> UniqueInverse[Array]:
    """Distinct values, and the indices that rebuild ``x`` from them.

    Parameters
    ----------
    x : array
        Any shape; NaN are all distinct.

    Returns
    -------
    namedtuple of arrays
        ``values``, ``inverse_indices`` (of ``x``'s shape).

    Examples
    --------
    >>> import xdev
    >>> xdev.unique_inverse(xdev.asarray([5, 3, 5])).inverse_indices
    array([1, 0, 1])
    """
    if type(x) is ndarray and x.dtype not in FREED:
        if x.dtype.char == HALF:
            found = _sorted_all(x)
            return _UniqueInverse(found.values, found.inverse_indices)
        return _UniqueInverse(*_unique(x, False, True, equal_nan=False))
    return direct[type(x)]["unique_inverse"](x)


def unique_values(x: Array, /) -> Array:
    """Distinct values; of NumPy's and CuPy's arrays in ascending order.

    Parameters
    ----------
    x : array
        Any shape; NaN are all distinct.

    Returns
    -------
    array
        1-D.

    Examples
    --------
    >>> import xdev
    >>> xdev.unique_values(xdev.asarray([5, 3, 5]))
    array([3, 5])
    """
    if type(x) is ndarray and x.dtype not in FREED:
        if x.dtype.char not in NUMBERS:
            return _unique(x, equal_nan=False)
        # NumPy puts some into a hash table, which takes up to 300 times as long.
        ordered = sort(x.ravel(), 0, stable=False)
        return ordered[_changes(ordered)]
    return direct[type(x)]["unique_values"](x)


def _sorted_all(x: Any) -> Any:
    """Return what NumPy's ``unique_all`` does, by the order found here."""
    flat = x.ravel()
    order = argsort(flat, 0, stable=True)
    ordered = flat[order]
    changes = _changes(ordered)
    inverse = np.empty(flat.size, np.intp)
    inverse[order] = np.cumsum(changes) - 1
    starts = changes.nonzero()[0]
    counts = np.diff(starts, append=flat.size)
    return _UniqueAll(ordered[starts], order[starts], inverse.reshape(x.shape), counts)


def _changes(ordered: Any) -> Any:
    """Return where an element differs from the one before it."""
    found = np.ones(ordered.shape, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=found[1:])
    return found
