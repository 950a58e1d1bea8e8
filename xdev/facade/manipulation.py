"""Functions that shape, order, join, repeat and split arrays; grids and triangles."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from xdev.facade.dispatch import dispatch, dispatch_mixed, dispatch_sequence, relaunch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Never

    from xdev.facade.backends import Array, Axes

__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims",
    "flip", "meshgrid", "moveaxis", "permute_dims", "repeat", "reshape", "roll",
    "squeeze", "stack", "tile", "tril", "triu", "unstack",
]  # fmt: skip


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
    return dispatch("expand_dims", x)(x, axis)


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

    Raises
    ------
    ValueError
        ``x`` has no such axis.

    Examples
    --------
    >>> import xdev
    >>> xdev.flip(xdev.asarray([1, 2, 3]))
    array([3, 2, 1])
    """
    return dispatch("flip", x)(x, axis=axis)


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

    Raises
    ------
    ValueError
        There is no such axis, or not as many go as come.

    Examples
    --------
    >>> import xdev
    >>> xdev.moveaxis(xdev.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    return dispatch("moveaxis", x)(x, source, destination)


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
    return dispatch("permute_dims", x)(x, axes)


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
    if copy is None:
        return dispatch("reshape", x, more)(x, shape)
    return dispatch("reshape", x, more)(x, shape, copy=copy)


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

    Raises
    ------
    ValueError
        ``x`` has no such axis.

    Examples
    --------
    >>> import xdev
    >>> xdev.roll(xdev.asarray([1, 2, 3]), 1)
    array([3, 1, 2])
    """
    return dispatch("roll", x)(x, shift, axis=axis)


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
    return dispatch("squeeze", x)(x, axis)


def broadcast_arrays(*arrays: Array) -> tuple[Array, ...]:
    """Views of arrays, all of the shape they broadcast to.

    Parameters
    ----------
    *arrays : array
        Shapes that broadcast.

    Returns
    -------
    tuple of arrays
        As many as arguments; not to be written to.

    Raises
    ------
    ValueError, DeviceMismatchError
        They do not broadcast; they are of two devices or libraries.

    Examples
    --------
    >>> import xdev
    >>> [x.shape for x in xdev.broadcast_arrays(xdev.ones((3, 1)), xdev.ones(2))]
    [(3, 2), (3, 2)]
    """
    if not arrays:
        return ()
    return tuple(dispatch_sequence("broadcast_arrays", arrays)(*arrays))


def broadcast_shapes(*shapes: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """Shape that shapes broadcast to.

    Parameters
    ----------
    *shapes : tuple of ints
        An unknown size is None.

    Returns
    -------
    tuple of ints
        None where a size cannot be known.

    Raises
    ------
    ValueError
        They do not broadcast.

    Examples
    --------
    >>> import xdev
    >>> xdev.broadcast_shapes((3, 1), (2,))
    (3, 2)
    """
    ndim = max(map(len, shapes), default=0)
    result: list[int | None] = []
    for sizes in zip(*((*(1,) * (ndim - len(x)), *x) for x in shapes), strict=True):
        known = set(sizes) - {1, None}
        if len(known) > 1:
            listed = ", ".join(map(str, shapes))
            raise ValueError(
                f"xdev.broadcast_shapes: shapes {listed} do not broadcast: sizes along "
                f"an axis must be equal or 1"
            )
        result.append(known.pop() if known else None if None in sizes else 1)
    return tuple(result)


def broadcast_to(x: Array, /, shape: tuple[int, ...]) -> Array:
    """View of an array in a larger shape.

    Parameters
    ----------
    x : array
        Of a shape that broadcasts to ``shape``.
    shape : tuple of ints
        The view's.

    Returns
    -------
    array
        Not to be written to.

    Raises
    ------
    ValueError
        It does not broadcast to that.

    Examples
    --------
    >>> import xdev
    >>> xdev.broadcast_to(xdev.asarray([1, 2]), (2, 2))
    array([[1, 2],
           [1, 2]])
    """
    return dispatch("broadcast_to", x)(x, shape)


def concat(arrays: Sequence[Array], /, axis: int | None = 0) -> Array:
    """Arrays one after the other along an axis.

    Parameters
    ----------
    arrays : sequence of arrays
        Of one shape, but for ``axis``.
    axis : int or None
        Along which; None: flattened first.

    Returns
    -------
    array
        Of the type that the arrays promote to.

    Raises
    ------
    ValueError, DeviceMismatchError
        The shapes do not fit; they are of two devices or libraries.

    Examples
    --------
    >>> import xdev
    >>> xdev.concat([xdev.asarray([1, 2]), xdev.asarray([3])])
    array([1, 2, 3])
    """
    if type(arrays) is list and arrays and type(arrays[0]) is not np.ndarray:
        out = relaunch("concat", axis, *arrays)
        if out is not None:
            return out
    return dispatch_sequence("concat", arrays, axis)(arrays, axis=axis)


def repeat(x: Array, repeats: Any, /, axis: int | None = None) -> Array:
    """Each element several times.

    Parameters
    ----------
    x : array
        Any shape.
    repeats : int or array of ints
        How often, for all or for each along ``axis``.
    axis : int, optional
        Flattened first unless given.

    Returns
    -------
    array
        Of ``x``'s data type.

    Raises
    ------
    DeviceMismatchError
        ``x`` and ``repeats`` are of two devices or libraries.
    ValueError
        A count is negative, or makes more elements than memory could ever hold.

    Examples
    --------
    >>> import xdev
    >>> xdev.repeat(xdev.asarray([1, 2]), xdev.asarray([2, 3]))
    array([1, 1, 2, 2, 2])
    """
    count = 0
    if type(repeats) is int:
        function, count = dispatch("repeat", x), repeats
    else:
        function, (x, repeats) = dispatch_mixed("repeat", x=x, repeats=repeats)
        # To read counts on a device would wait.
        if isinstance(repeats, np.ndarray | np.integer) and repeats.dtype.kind in "iu":
            count = int(np.maximum.reduce(repeats, None)) if repeats.size else 0
    size = math.prod(getattr(x, "shape", ()))
    if abs(count) * size > sys.maxsize:  # which ends NumPy's process
        raise ValueError(
            f"xdev.repeat: a count of {count:,} makes more elements than memory could "
            f"ever hold, or is negative: repeat less often"
        )
    return function(x, repeats, axis=axis)


def stack(arrays: Sequence[Array], /, axis: int = 0) -> Array:
    """Arrays of one shape along a new axis.

    Parameters
    ----------
    arrays : sequence of arrays
        Of one shape.
    axis : int
        Where the new axis is in the result.

    Returns
    -------
    array
        Of the type that the arrays promote to.

    Raises
    ------
    ValueError, DeviceMismatchError
        The shapes differ; they are of two devices or libraries.

    Examples
    --------
    >>> import xdev
    >>> xdev.stack([xdev.asarray([1, 2]), xdev.asarray([3, 4])])
    array([[1, 2],
           [3, 4]])
    """
    if type(arrays) is list and arrays and type(arrays[0]) is not np.ndarray:
        out = relaunch("stack", axis, *arrays)
        if out is not None:
            return out
    return dispatch_sequence("stack", arrays, axis)(arrays, axis=axis)


def tile(x: Array, repetitions: tuple[int, ...], /) -> Array:
    """Array repeated as a whole.

    Parameters
    ----------
    x : array
        Any shape.
    repetitions : tuple of ints
        How often along each axis.

    Returns
    -------
    array
        Of ``x``'s data type.

    Raises
    ------
    ValueError
        A number of repetitions is negative.

    Examples
    --------
    >>> import xdev
    >>> xdev.tile(xdev.asarray([1, 2]), (2,))
    array([1, 2, 1, 2])
    """
    return dispatch("tile", x)(x, repetitions)


def unstack(x: Array, /, *more: Never, axis: int = 0) -> tuple[Array, ...]:
    """Arrays that lie along an axis, apart.

    Parameters
    ----------
    x : array
        At least 1-D.
    axis : int
        The one that goes.

    Returns
    -------
    tuple of arrays
        As many as the axis is long.

    Raises
    ------
    ValueError
        ``x`` is 0-d, or has no such axis.

    Examples
    --------
    >>> import xdev
    >>> xdev.unstack(xdev.asarray([[1, 2], [3, 4]]))
    (array([1, 2]), array([3, 4]))
    """
    return dispatch("unstack", x, more)(x, axis=axis)


def meshgrid(*arrays: Array, indexing: Literal["xy", "ij"] = "xy") -> tuple[Array, ...]:
    """Coordinate arrays of a grid.

    Parameters
    ----------
    *arrays : array
        Coordinates along each axis, 1-D.
    indexing : {"xy", "ij"}
        ``"xy"``: the first coordinate runs along the second axis.

    Returns
    -------
    tuple of arrays
        As many as arguments, each of the grid's shape.

    Raises
    ------
    DeviceMismatchError
        The arrays are of two devices or libraries.

    Examples
    --------
    >>> import xdev
    >>> x, y = xdev.meshgrid(xdev.arange(3), xdev.arange(2))
    >>> y
    array([[0, 0, 0],
           [1, 1, 1]])
    """
    if not arrays:
        return ()
    return tuple(dispatch_sequence("meshgrid", arrays)(*arrays, indexing=indexing))


def tril(x: Array, /, k: int = 0) -> Array:
    """Lower triangle of matrices; the rest is zero.

    Parameters
    ----------
    x : array
        Shape (..., M, N).
    k : int
        The highest diagonal kept.

    Returns
    -------
    array
        Of ``x``'s shape.

    Examples
    --------
    >>> import xdev
    >>> xdev.tril(xdev.ones((2, 2)))
    array([[1., 0.],
           [1., 1.]])
    """
    if type(x) is not np.ndarray and (out := relaunch("tril", k, x)) is not None:
        return out
    return dispatch("tril", x)(x, k=k)


def triu(x: Array, /, k: int = 0) -> Array:
    """Upper triangle of matrices; the rest is zero.

    Parameters
    ----------
    x : array
        Shape (..., M, N).
    k : int
        The lowest diagonal kept.

    Returns
    -------
    array
        Of ``x``'s shape.

    Examples
    --------
    >>> import xdev
    >>> xdev.triu(xdev.ones((2, 2)))
    array([[1., 1.],
           [0., 1.]])
    """
    if type(x) is not np.ndarray and (out := relaunch("triu", k, x)) is not None:
        return out
    return dispatch("triu", x)(x, k=k)
