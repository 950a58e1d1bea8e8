"""Functions that broadcast, join, repeat and split arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdev.facade.dispatch import mixed, of, of_each

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    rank = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    result: list[int | None] = []
    for sizes in zip(*padded, strict=True):
        known = {size for size in sizes if size not in (1, None)}
        if len(known) > 1:
            message = (
                f"xdev.broadcast_shapes: shapes {', '.join(map(str, shapes))} do not "
                f"broadcast: sizes along an axis must be equal or 1"
            )
            raise ValueError(message)
        unknown = None if None in sizes else 1
        result.append(known.pop() if known else unknown)
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
    result: Array = of(x, "broadcast_to")(x, shape)
    return result


def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> Array:
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
    result: Array = of_each("concat", "arrays", arrays)(arrays, axis=axis)
    return result


def repeat(x: Array, repeats: Any, /, *, axis: int | None = None) -> Array:
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
    function, values = mixed("repeat", x=x, repeats=repeats)
    result: Array = function(*values, axis=axis)
    return result


def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
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
    result: Array = of_each("stack", "arrays", arrays)(arrays, axis=axis)
    return result


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
    result: Array = of(x, "tile")(x, repetitions)
    return result


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
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
    result: tuple[Array, ...] = of(x, "unstack")(x, axis=axis)
    return result
