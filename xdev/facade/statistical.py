# ruff: noqa: A001 - the standard names functions as Python does
"""Reductions along axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xdev._freed import FREED
from xdev.facade.dispatch import of
from xdev.facade.libraries import library_of

if TYPE_CHECKING:
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
_add: Any = np.add.reduce
_multiply: Any = np.multiply.reduce
_maximum: Any = np.maximum.reduce
_minimum: Any = np.minimum.reduce


def all(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
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
    result: Array = of(x, "all")(x, axis=axis, keepdims=keepdims)
    return result


def any(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
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
    result: Array = of(x, "any")(x, axis=axis, keepdims=keepdims)
    return result


def max(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
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
    result: Array
    if type(x) is ndarray and x.dtype is not FREED:  # type: ignore[attr-defined]
        result = _maximum(x, axis, None, None, keepdims)
    else:
        result = of(x, "max")(x, axis=axis, keepdims=keepdims)
    return result


def mean(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
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
    result: Array = of(x, "mean")(x, axis=axis, keepdims=keepdims)
    return result


def min(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
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
    result: Array
    if type(x) is ndarray and x.dtype is not FREED:  # type: ignore[attr-defined]
        result = _minimum(x, axis, None, None, keepdims)
    else:
        result = of(x, "min")(x, axis=axis, keepdims=keepdims)
    return result


def prod(
    x: Array, /, *, axis: Axes = None, dtype: DType = None, keepdims: bool = False
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
    result: Array
    plain = type(x) is ndarray and x.dtype is not FREED  # type: ignore[attr-defined]
    if plain and dtype is None:
        result = _multiply(x, axis, None, None, keepdims)
    else:
        kind = library_of(x, "prod").dtype(dtype)
        result = of(x, "prod")(x, axis=axis, dtype=kind, keepdims=keepdims)
    return result


def std(
    x: Array,
    /,
    *,
    axis: Axes = None,
    correction: float = 0.0,
    keepdims: bool = False,
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
    result: Array = of(x, "std")(x, axis=axis, correction=correction, keepdims=keepdims)
    return result


def sum(
    x: Array, /, *, axis: Axes = None, dtype: DType = None, keepdims: bool = False
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
    result: Array
    plain = type(x) is ndarray and x.dtype is not FREED  # type: ignore[attr-defined]
    if plain and dtype is None:
        result = _add(x, axis, None, None, keepdims)
    else:
        kind = library_of(x, "sum").dtype(dtype)
        result = of(x, "sum")(x, axis=axis, dtype=kind, keepdims=keepdims)
    return result


def var(
    x: Array,
    /,
    *,
    axis: Axes = None,
    correction: float = 0.0,
    keepdims: bool = False,
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
    result: Array = of(x, "var")(x, axis=axis, correction=correction, keepdims=keepdims)
    return result
