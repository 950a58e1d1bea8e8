"""Functions that broadcast, join, repeat and split arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xdev._freed import FREED
from xdev.facade.cpu import bare
from xdev.facade.dispatch import direct, mixed, of_each
from xdev.ufunc.complaints import misplaced, no_sequence

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Never

    from xdev.facade.protocols import Array

__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "repeat",
    "stack",
    "tile",
    "unstack",
]

ndarray = np.ndarray
_broadcast_arrays = bare("broadcast_arrays")
_broadcast_to = bare("broadcast_to")
_concat = bare("concat")
_stack = bare("stack")
_tile = bare("tile")
FIRST = 0  # this very object, as small integers are: not even compared


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
    # The look at all arrays stands in each function that takes any number of them, in
    # grids and data_types too: a call of a function that looks takes longer.
    kind = type(arrays[0])
    if kind is ndarray:
        shape = arrays[0].shape
        alike = True
        for x in arrays:
            if type(x) is not ndarray or x.dtype in FREED:
                break
            alike = alike and x.shape == shape
        else:
            return arrays if alike else tuple(_broadcast_arrays(*arrays))
    elif kind in direct:
        for x in arrays:
            if type(x) is not kind:
                break
        else:
            return tuple(direct[kind]["broadcast_arrays"](*arrays))
    return tuple(of_each("broadcast_arrays", "arrays", arrays)(*arrays))


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
    sizes: list[int | None] = []
    for shape in shapes:
        new = len(shape) - len(sizes)
        if new > 0:
            sizes[:0] = shape[:new]
        at = -len(shape) if new <= 0 else new - len(shape)
        for size in shape[max(new, 0) :]:
            held = sizes[at]
            if size not in (held, 1):
                if held == 1 or held is None:
                    sizes[at] = size
                elif size is not None:
                    raise ValueError(_do_not_broadcast(shapes))
            at += 1
    return tuple(sizes)


def _do_not_broadcast(shapes: tuple[tuple[int | None, ...], ...]) -> str:
    return (
        f"xdev.broadcast_shapes: shapes {', '.join(map(str, shapes))} do not "
        f"broadcast: sizes along an axis must be equal or 1"
    )


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
    if type(x) is ndarray and x.dtype not in FREED:
        return _broadcast_to(x, shape)
    return direct[type(x)]["broadcast_to"](x, shape)


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
    if type(arrays) is list or type(arrays) is tuple:
        for x in arrays:
            if type(x) is not ndarray or x.dtype in FREED:
                break
        else:
            try:
                return _concat(arrays) if axis is FIRST else _concat(arrays, axis)
            except (TypeError, ValueError):
                pass  # of_each() says what is wrong, or NumPy again
        kind = type(arrays[0]) if arrays else ndarray
        if kind is not ndarray and kind in direct:
            for x in arrays:
                if type(x) is not kind:
                    break
            else:
                return direct[kind]["concat"](arrays, axis=axis)
    return _join("concat", arrays, axis)


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

    Examples
    --------
    >>> import xdev
    >>> xdev.repeat(xdev.asarray([1, 2]), xdev.asarray([2, 3]))
    array([1, 1, 2, 2, 2])
    """
    if type(repeats) is int:
        if type(x) is ndarray and x.dtype not in FREED:
            return x.repeat(repeats, axis)
        return direct[type(x)]["repeat"](x, repeats, axis=axis)
    function, values = mixed("repeat", x=x, repeats=repeats)
    return function(*values, axis=axis)


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
    if (type(arrays) is list or type(arrays) is tuple) and arrays:
        kind = type(arrays[0])
        if kind is ndarray:
            for x in arrays:
                if type(x) is not ndarray or x.dtype in FREED:
                    break
            else:
                return _stack(arrays, axis)
        elif kind in direct:
            for x in arrays:
                if type(x) is not kind:
                    break
            else:
                return direct[kind]["stack"](arrays, axis=axis)
    return _join("stack", arrays, axis)


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

    Examples
    --------
    >>> import xdev
    >>> xdev.tile(xdev.asarray([1, 2]), (2,))
    array([1, 2, 1, 2])
    """
    if type(x) is ndarray and x.dtype not in FREED:
        return _tile(x, repetitions)
    return direct[type(x)]["tile"](x, repetitions)


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

    Examples
    --------
    >>> import xdev
    >>> xdev.unstack(xdev.asarray([[1, 2], [3, 4]]))
    (array([1, 2]), array([3, 4]))
    """
    if more:
        raise misplaced(unstack, more)
    if type(x) is ndarray and x.dtype not in FREED and axis == 0 and x.ndim:
        return tuple(x)
    return direct[type(x)]["unstack"](x, axis=axis)


def _join(name: str, arrays: Any, axis: Any) -> Any:
    """Join any sequence of arrays of one library and device."""
    if hasattr(arrays, "ndim") and hasattr(axis, "ndim"):  # two arrays, and no list
        raise no_sequence(name, "arrays", arrays)
    return of_each(name, "arrays", arrays)(arrays, axis=axis)
