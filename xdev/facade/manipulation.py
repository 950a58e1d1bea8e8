"""Functions that give an array another shape, or its elements another order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from xdev._freed import FREED
from xdev.facade.cpu import bare
from xdev.facade.dispatch import direct
from xdev.ufunc.complaints import misplaced

if TYPE_CHECKING:
    from typing import Never

    from xdev.facade.protocols import Array, Axes

__all__ = [
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "reshape",
    "roll",
    "squeeze",
]

ndarray = np.ndarray
_BACKWARDS = slice(None, None, -1)
_roll = bare("roll")


def expand_dims(x: Array, /, axis: int | tuple[int, ...]) -> Array:
    """Array with new axes of size 1.

    Parameters
    ----------
    x : array
        Any shape.
    axis : int or tuple of ints
        Where the new axes are in the result.

    Returns
    -------
    array
        A view where the library has views.

    Raises
    ------
    ValueError, IndexError
        An axis is out of range or there twice.

    Examples
    --------
    >>> import xdev
    >>> xdev.expand_dims(xdev.ones(3), 0).shape
    (1, 3)
    """
    if type(x) is ndarray and x.dtype not in FREED and type(axis) is int:
        rank = x.ndim
        if -rank - 1 <= axis <= rank:
            at = axis if axis >= 0 else axis + rank + 1
            shape = x.shape
            return x.reshape((*shape[:at], 1, *shape[at:]))
    return direct[type(x)]["expand_dims"](x, axis)


def flip(x: Array, /, axis: Axes = None) -> Array:
    """Elements in reverse order along the axes.

    Parameters
    ----------
    x : array
        Any shape.
    axis : int or tuple of ints, optional
        All of them unless given.

    Returns
    -------
    array
        Of ``x``'s shape.

    Examples
    --------
    >>> import xdev
    >>> xdev.flip(xdev.asarray([1, 2, 3]))
    array([3, 2, 1])
    """
    if type(x) is ndarray and x.dtype not in FREED and axis is None:
        return x[(_BACKWARDS,) * x.ndim]
    return direct[type(x)]["flip"](x, axis=axis)


def moveaxis(
    x: Array, source: int | tuple[int, ...], destination: int | tuple[int, ...], /
) -> Array:
    """Array with axes moved to other positions; the others keep their order.

    Parameters
    ----------
    x : array
        Any shape.
    source, destination : int or tuple of ints
        Where they are, and where they go.

    Returns
    -------
    array
        A view where the library has views.

    Examples
    --------
    >>> import xdev
    >>> xdev.moveaxis(xdev.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    if type(source) is int and type(destination) is int and type(x) is ndarray:
        rank = x.ndim
        inside = -rank <= source < rank and -rank <= destination < rank
        if inside and x.dtype not in FREED:
            order = [*range(rank)]
            order.insert(destination % rank, order.pop(source))
            return x.transpose(order)
    return direct[type(x)]["moveaxis"](x, source, destination)


def permute_dims(x: Array, /, axes: tuple[int, ...]) -> Array:
    """Array with its axes in another order.

    Parameters
    ----------
    x : array
        Any shape.
    axes : tuple of ints
        Every axis of ``x``, once.

    Returns
    -------
    array
        A view where the library has views.

    Raises
    ------
    ValueError
        ``axes`` is no permutation.

    Examples
    --------
    >>> import xdev
    >>> xdev.permute_dims(xdev.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    if type(x) is ndarray and x.dtype not in FREED:
        return x.transpose(axes)
    return direct[type(x)]["permute_dims"](x, axes)


def reshape(
    x: Array, /, shape: tuple[int, ...], *more: Never, copy: bool | None = None
) -> Array:
    """Array with the same elements in another shape.

    Parameters
    ----------
    x : array
        Any shape.
    shape : tuple of ints
        Of as many elements; one size may be -1, to be found out.
    copy : bool, optional
        True: always; False: never; None: where it must be.

    Returns
    -------
    array
        Of shape ``shape``.

    Raises
    ------
    ValueError
        The number of elements differs; or ``copy=False``, but it must be copied.

    Examples
    --------
    >>> import xdev
    >>> xdev.reshape(xdev.arange(4), (2, 2))
    array([[0, 1],
           [2, 3]])
    """
    if more:
        raise misplaced(reshape, more)
    if type(x) is ndarray and x.dtype not in FREED and copy is None:
        return x.reshape(shape)
    return direct[type(x)]["reshape"](x, shape, copy=copy)


def roll(x: Array, /, shift: int | tuple[int, ...], axis: Axes = None) -> Array:
    """Elements shifted along the axes; what leaves the end comes in at the start.

    Parameters
    ----------
    x : array
        Any shape.
    shift : int or tuple of ints
        By how many places, for each axis.
    axis : int or tuple of ints, optional
        Flattened first, and shaped back, unless given.

    Returns
    -------
    array
        Of ``x``'s shape.

    Examples
    --------
    >>> import xdev
    >>> xdev.roll(xdev.asarray([1, 2, 3]), 1)
    array([3, 1, 2])
    """
    if type(x) is ndarray and x.dtype not in FREED:
        return _roll(x, shift, axis)
    return direct[type(x)]["roll"](x, shift, axis=axis)


def squeeze(x: Array, /, axis: int | tuple[int, ...]) -> Array:
    """Array without axes of size 1.

    Parameters
    ----------
    x : array
        Any shape.
    axis : int or tuple of ints
        Which to drop.

    Returns
    -------
    array
        A view where the library has views.

    Raises
    ------
    ValueError
        An axis is not of size 1.

    Examples
    --------
    >>> import xdev
    >>> xdev.squeeze(xdev.ones((1, 3)), 0).shape
    (3,)
    """
    if type(x) is ndarray and x.dtype not in FREED:
        return x.squeeze(axis)
    return direct[type(x)]["squeeze"](x, axis)
