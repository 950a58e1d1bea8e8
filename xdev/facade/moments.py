"""Means, variances and standard deviations along axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.facade.cpu import FLOAT32, FLOAT64
from xdev.facade.libraries import direct
from xdev.ufunc.complaints import misplaced

if TYPE_CHECKING:
    from typing import Never

    from xdev.facade.protocols import Array, Axes

__all__ = ["mean", "std", "var"]

ndarray = np.ndarray
_add: Any = np.add.reduce
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
