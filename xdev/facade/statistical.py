# ruff: noqa: A001 - the standard names functions as Python does
"""Sums, extremes, means and moments along axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.facade.cpu import FLOAT32, FLOAT64
from xdev.facade.dispatch import direct, library_of, refuse
from xdev.ufunc.complaints import misplaced

if TYPE_CHECKING:
    from typing import Never

    from xdev.facade.protocols import Array, Axes, DType

__all__ = [
    "all",
    "any",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]

ndarray = np.ndarray


# NumPy's functions spend more time on their arguments than these on a small array.
_and: Any = np.logical_and.reduce


_or: Any = np.logical_or.reduce


_add: Any = np.add.reduce


_multiply: Any = np.multiply.reduce


_maximum: Any = np.maximum.reduce


_minimum: Any = np.minimum.reduce


def all(
    x: Array,
    /,
    axis: Axes = None,
    *more: Never,
    keepdims: bool = False,
    **unknown: Never,
) -> Array:
    """Whether all elements along the axes are true.

    Parameters
    ----------
    x : array
        Any shape; NaN counts as true.
    axis : int or tuple of ints, optional
        The axes to reduce; all of them unless given.
    keepdims : bool
        Keep the reduced axes, with size 1.

    Returns
    -------
    array
        bool; 0-d where all axes are reduced.

    Examples
    --------
    >>> import xdev
    >>> xdev.all(xdev.asarray([[True, False], [True, True]]), axis=0)
    array([ True, False])
    """
    if more or unknown:
        raise misplaced(all, more, unknown)
    if type(x) is ndarray:
        try:
            return _and(x, axis, None, None, keepdims)
        except TypeError:
            refuse("all", x=x)
            raise
    return direct[type(x)]["all"](x, axis=axis, keepdims=keepdims)


def any(
    x: Array,
    /,
    axis: Axes = None,
    *more: Never,
    keepdims: bool = False,
    **unknown: Never,
) -> Array:
    """Whether any element along the axes is true.

    Parameters
    ----------
    x : array
        Any shape; NaN counts as true.
    axis : int or tuple of ints, optional
        The axes to reduce; all of them unless given.
    keepdims : bool
        Keep the reduced axes, with size 1.

    Returns
    -------
    array
        bool; 0-d where all axes are reduced.

    Examples
    --------
    >>> import xdev
    >>> xdev.any(xdev.asarray([[True, False], [False, False]]), axis=1)
    array([ True, False])
    """
    if more or unknown:
        raise misplaced(any, more, unknown)
    if type(x) is ndarray:
        try:
            return _or(x, axis, None, None, keepdims)
        except TypeError:
            refuse("any", x=x)
            raise
    return direct[type(x)]["any"](x, axis=axis, keepdims=keepdims)


def max(
    x: Array,
    /,
    axis: Axes = None,
    *more: Never,
    keepdims: bool = False,
    **unknown: Never,
) -> Array:
    """Largest element along the axes; NaN if there is one.

    Parameters
    ----------
    x : array
        Real numbers; the reduced axes are not empty.
    axis : int or tuple of ints, optional
        The axes to reduce; all of them unless given.
    keepdims : bool
        Keep the reduced axes, with size 1.

    Returns
    -------
    array
        Of ``x``'s data type; 0-d where all axes are reduced.

    Raises
    ------
    ValueError
        There is no element.

    Examples
    --------
    >>> import xdev
    >>> xdev.max(xdev.asarray([[1, 5], [7, 2]]), axis=1)
    array([5, 7])
    """
    if more or unknown:
        raise misplaced(max, more, unknown)
    if type(x) is ndarray:
        try:
            return _maximum(x, axis, None, None, keepdims)
        except TypeError:
            refuse("max", x=x)
            raise
    return direct[type(x)]["max"](x, axis=axis, keepdims=keepdims)


def min(
    x: Array,
    /,
    axis: Axes = None,
    *more: Never,
    keepdims: bool = False,
    **unknown: Never,
) -> Array:
    """Smallest element along the axes; NaN if there is one.

    Parameters
    ----------
    x : array
        Real numbers; the reduced axes are not empty.
    axis : int or tuple of ints, optional
        The axes to reduce; all of them unless given.
    keepdims : bool
        Keep the reduced axes, with size 1.

    Returns
    -------
    array
        Of ``x``'s data type; 0-d where all axes are reduced.

    Raises
    ------
    ValueError
        There is no element.

    Examples
    --------
    >>> import xdev
    >>> xdev.min(xdev.asarray([[1, 5], [7, 2]]), axis=1)
    array([1, 2])
    """
    if more or unknown:
        raise misplaced(min, more, unknown)
    if type(x) is ndarray:
        try:
            return _minimum(x, axis, None, None, keepdims)
        except TypeError:
            refuse("min", x=x)
            raise
    return direct[type(x)]["min"](x, axis=axis, keepdims=keepdims)


def prod(
    x: Array,
    /,
    axis: Axes = None,
    dtype: DType = None,
    *more: Never,
    keepdims: bool = False,
    **unknown: Never,
) -> Array:
    """Product along the axes.

    Parameters
    ----------
    x : array
        Numbers.
    axis : int or tuple of ints, optional
        The axes to reduce; all of them unless given.
    dtype : dtype, optional
        ``x``'s unless given; small integers widen to the default integer.
    keepdims : bool
        Keep the reduced axes, with size 1.

    Returns
    -------
    array
        0-d where all axes are reduced; 1 where there is no element.

    Examples
    --------
    >>> import xdev
    >>> xdev.prod(xdev.asarray([[1, 2], [3, 4]]), axis=1)
    array([ 2, 12])
    """
    if more or unknown:
        raise misplaced(prod, more, unknown)
    if type(x) is ndarray and dtype is None:
        try:
            return _multiply(x, axis, None, None, keepdims)
        except TypeError:
            refuse("prod", x=x)
            raise
    if dtype is not None:
        dtype = library_of(x, "prod").dtype(dtype)
    return direct[type(x)]["prod"](x, axis=axis, dtype=dtype, keepdims=keepdims)


def sum(
    x: Array,
    /,
    axis: Axes = None,
    dtype: DType = None,
    *more: Never,
    keepdims: bool = False,
    **unknown: Never,
) -> Array:
    """Sum along the axes.

    Parameters
    ----------
    x : array
        Numbers.
    axis : int or tuple of ints, optional
        The axes to reduce; all of them unless given.
    dtype : dtype, optional
        ``x``'s unless given; small integers widen to the default integer.
    keepdims : bool
        Keep the reduced axes, with size 1.

    Returns
    -------
    array
        0-d where all axes are reduced; 0 where there is no element.

    Examples
    --------
    >>> import xdev
    >>> xdev.sum(xdev.asarray([[1, 2], [3, 4]]), axis=0)
    array([4, 6])
    """
    if more or unknown:
        raise misplaced(sum, more, unknown)
    if type(x) is ndarray and dtype is None:
        try:
            return _add(x, axis, None, None, keepdims)
        except TypeError:
            refuse("sum", x=x)
            raise
    if dtype is not None:
        dtype = library_of(x, "sum").dtype(dtype)
    return direct[type(x)]["sum"](x, axis=axis, dtype=dtype, keepdims=keepdims)


#: The data types that NumPy sums as they are; found by identity, in this order.
_DOUBLE_OR_SINGLE = (FLOAT64, FLOAT32)


def mean(
    x: Array,
    /,
    axis: Axes = None,
    *more: Never,
    keepdims: bool = False,
    **unknown: Never,
) -> Array:
    """Arithmetic mean along the axes.

    Parameters
    ----------
    x : array
        Floating-point numbers.
    axis : int or tuple of ints, optional
        The axes to reduce; all of them unless given.
    keepdims : bool
        Keep the reduced axes, with size 1.

    Returns
    -------
    array
        Of ``x``'s data type; NaN where there is no element.

    Examples
    --------
    >>> import xdev
    >>> xdev.mean(xdev.asarray([[1.0, 2.0], [3.0, 5.0]]), axis=0)
    array([2. , 3.5])
    """
    if more or unknown:
        raise misplaced(mean, more, unknown)
    if type(x) is ndarray:
        count = _count(x, axis)
        if count:
            return _add(x, axis, None, None, keepdims) / count
    return direct[type(x)]["mean"](x, axis=axis, keepdims=keepdims)


def std(
    x: Array,
    /,
    axis: Axes = None,
    *more: Never,
    correction: float = 0.0,
    keepdims: bool = False,
    **unknown: Never,
) -> Array:
    """Standard deviation along the axes.

    Parameters
    ----------
    x : array
        Floating-point numbers.
    axis : int or tuple of ints, optional
        The axes to reduce; all of them unless given.
    correction : number
        Degrees of freedom taken off the count: 1 for a sample's.
    keepdims : bool
        Keep the reduced axes, with size 1.

    Returns
    -------
    array
        Of ``x``'s data type.

    Examples
    --------
    >>> import xdev
    >>> xdev.std(xdev.asarray([[1.0, 3.0], [2.0, 2.0]]), axis=1)
    array([1., 0.])
    """
    if more or unknown:
        raise misplaced(std, more, unknown)
    if type(x) is ndarray:
        found = _variance(x, axis, correction, keepdims)
        if found is not None:
            return np.sqrt(found)
    return direct[type(x)]["std"](
        x, axis=axis, correction=correction, keepdims=keepdims
    )


def var(
    x: Array,
    /,
    axis: Axes = None,
    *more: Never,
    correction: float = 0.0,
    keepdims: bool = False,
    **unknown: Never,
) -> Array:
    """Variance along the axes.

    Parameters
    ----------
    x : array
        Floating-point numbers.
    axis : int or tuple of ints, optional
        The axes to reduce; all of them unless given.
    correction : number
        Degrees of freedom taken off the count: 1 for a sample's.
    keepdims : bool
        Keep the reduced axes, with size 1.

    Returns
    -------
    array
        Of ``x``'s data type.

    Examples
    --------
    >>> import xdev
    >>> xdev.var(xdev.asarray([[1.0, 3.0], [2.0, 2.0]]), axis=1, correction=1)
    array([2., 0.])
    """
    if more or unknown:
        raise misplaced(var, more, unknown)
    if type(x) is ndarray:
        found = _variance(x, axis, correction, keepdims)
        if found is not None:
            return found
    return direct[type(x)]["var"](
        x, axis=axis, correction=correction, keepdims=keepdims
    )


def _count(x: Any, axis: Axes) -> int:
    """Return how many elements are reduced to one; 0 where the library must look."""
    if x.dtype not in _DOUBLE_OR_SINGLE:
        return 0
    if axis is None:
        return x.size
    if type(axis) is int and -x.ndim <= axis < x.ndim:
        return x.shape[axis]
    return 0


def _variance(x: Any, axis: Axes, correction: float, keepdims: bool) -> Any:
    """Return the variance, as NumPy takes it; None where the library must look."""
    count = _count(x, axis)
    if not count or count <= correction:
        return None
    distances = x - _add(x, axis, None, None, True) / count
    distances *= distances
    return _add(distances, axis, None, None, keepdims) / (count - correction)
