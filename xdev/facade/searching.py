"""Where elements are, and in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy._core.multiarray import count_nonzero as _count_nonzero

from xdev._freed import FREED
from xdev.facade import host_sorting
from xdev.facade.cpu import bare
from xdev.facade.dispatch import direct, mixed, of_all
from xdev.facade.host_sorting import FEW, FEW_ORDERED
from xdev.ufunc.complaints import misplaced

if TYPE_CHECKING:
    from typing import Never

    from xdev.facade.protocols import Array, Axes, Number, Operand, Typed

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "count_nonzero",
    "nonzero",
    "searchsorted",
    "sort",
    "take",
    "take_along_axis",
    "where",
]

ndarray = np.ndarray


_zero: Any = np.intp(0)


_take_along_axis = bare("take_along_axis")


_where = bare("where")


def argmax(
    x: Array, /, axis: int | None = None, *more: Never, keepdims: bool = False
) -> Array:
    """Index of the largest element along an axis, the first of equal ones.

    Parameters
    ----------
    x : array
        Real numbers; the axis is not empty.
    axis : int, optional
        Flattened first unless given.
    keepdims : bool
        Keep the reduced axes, with size 1.

    Returns
    -------
    array
        Integers.

    Raises
    ------
    ValueError
        There is no element.

    Examples
    --------
    >>> import xdev
    >>> xdev.argmax(xdev.asarray([[1, 5], [7, 2]]), axis=1)
    array([1, 0])
    """
    if more:
        raise misplaced(argmax, more)
    if type(x) is ndarray and x.dtype not in FREED and not keepdims:
        return x.argmax(axis)
    return direct[type(x)]["argmax"](x, axis=axis, keepdims=keepdims)


def argmin(
    x: Array, /, axis: int | None = None, *more: Never, keepdims: bool = False
) -> Array:
    """Index of the smallest element along an axis, the first of equal ones.

    Parameters
    ----------
    x : array
        Real numbers; the axis is not empty.
    axis : int, optional
        Flattened first unless given.
    keepdims : bool
        Keep the reduced axes, with size 1.

    Returns
    -------
    array
        Integers.

    Raises
    ------
    ValueError
        There is no element.

    Examples
    --------
    >>> import xdev
    >>> xdev.argmin(xdev.asarray([[1, 5], [7, 2]]), axis=1)
    array([0, 1])
    """
    if more:
        raise misplaced(argmin, more)
    if type(x) is ndarray and x.dtype not in FREED and not keepdims:
        return x.argmin(axis)
    return direct[type(x)]["argmin"](x, axis=axis, keepdims=keepdims)


def count_nonzero(
    x: Array, /, axis: Axes = None, *more: Never, keepdims: bool = False
) -> Array:
    """Number of elements along the axes that are not zero.

    Parameters
    ----------
    x : array
        Any shape.
    axis : int or tuple of ints, optional
        The axes to reduce; all of them unless given.
    keepdims : bool
        Keep the reduced axes, with size 1.

    Returns
    -------
    array
        Integers; 0-d where all axes are reduced.

    Examples
    --------
    >>> import xdev
    >>> xdev.count_nonzero(xdev.asarray([[0, 5], [7, 2]]), axis=1)
    array([1, 2])
    """
    if more:
        raise misplaced(count_nonzero, more)
    everywhere = axis is None and not keepdims
    if everywhere and type(x) is ndarray and x.dtype not in FREED:
        return _zero + _count_nonzero(x)  # the sum is 0-d, and quicker made than cast
    return direct[type(x)]["count_nonzero"](x, axis=axis, keepdims=keepdims)


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Indices of the elements that are not zero.

    Parameters
    ----------
    x : array
        At least 1-D.

    Returns
    -------
    tuple of arrays
        One an axis, each as long as there are such elements.

    Raises
    ------
    ValueError
        ``x`` is 0-d.

    Examples
    --------
    >>> import xdev
    >>> xdev.nonzero(xdev.asarray([0, 5, 7]))
    (array([1, 2]),)
    """
    if type(x) is ndarray and x.dtype not in FREED:
        return x.nonzero()
    return direct[type(x)]["nonzero"](x)


def searchsorted(
    x1: Array, x2: Any, /, side: Literal["left", "right"] = "left", sorter: Any = None
) -> Array:
    """Where to insert values so that a sorted array stays sorted.

    Parameters
    ----------
    x1 : array
        Sorted upwards, 1-D, or ordered by ``sorter``.
    x2 : array or number
        The values, any shape.
    side : {"left", "right"}
        Before or after equal elements.
    sorter : array, optional
        Indices that sort ``x1``.

    Returns
    -------
    array
        Integers, of ``x2``'s shape.

    Raises
    ------
    DeviceMismatchError
        The arrays are of two devices or libraries.

    Examples
    --------
    >>> import xdev
    >>> xdev.searchsorted(xdev.asarray([1, 3, 5]), xdev.asarray([3, 4]))
    array([1, 2])
    """
    if (
        type(x1) is type(x2) is ndarray
        and x1.dtype not in FREED
        and x2.dtype not in FREED
        and sorter is None
    ):
        return x1.searchsorted(x2, side)
    kind = type(x1)
    if kind is type(x2) and kind in direct and sorter is None:
        return direct[kind]["searchsorted"](x1, x2, side=side)
    function, (x, values, order) = mixed("searchsorted", x1=x1, x2=x2, sorter=sorter)
    return function(x, values, side=side, sorter=order)


def take(x: Array, indices: Any, /, axis: int | None = None) -> Array:
    """Elements, rows or slices at indices along an axis.

    Parameters
    ----------
    x : array
        At least 1-D.
    indices : array
        Integers, 1-D.
    axis : int, optional
        Needed where ``x`` has more than one.

    Returns
    -------
    array
        As long as ``indices`` along ``axis``.

    Raises
    ------
    DeviceMismatchError
        The arrays are of two devices or libraries.

    Examples
    --------
    >>> import xdev
    >>> xdev.take(xdev.asarray([10, 20, 30]), xdev.asarray([2, 0]))
    array([30, 10])
    """
    if (
        type(x) is type(indices) is ndarray
        and x.dtype not in FREED
        and indices.dtype not in FREED
    ):
        return x.take(indices, axis)
    kind = type(x)
    if kind is type(indices) and kind in direct:
        return direct[kind]["take"](x, indices, axis=axis)
    return of_all("take", x=x, indices=indices)(x, indices, axis=axis)


def take_along_axis(x: Array, indices: Any, /, axis: int = -1) -> Array:
    """Elements at indices along an axis, matched along all the others.

    Parameters
    ----------
    x : array
        At least 1-D.
    indices : array
        Integers, of as many axes as ``x``.
    axis : int
        Along which.

    Returns
    -------
    array
        Of the shape that ``indices`` and ``x`` broadcast to, but for ``axis``.

    Raises
    ------
    DeviceMismatchError
        The arrays are of two devices or libraries.

    Examples
    --------
    >>> import xdev
    >>> x = xdev.asarray([[3, 1], [5, 9]])
    >>> xdev.take_along_axis(x, xdev.argsort(x))
    array([[1, 3],
           [5, 9]])
    """
    if (
        type(x) is type(indices) is ndarray
        and x.dtype not in FREED
        and indices.dtype not in FREED
    ):
        return _take_along_axis(x, indices, axis)
    kind = type(x)
    if kind is type(indices) and kind in direct:
        return direct[kind]["take_along_axis"](x, indices, axis=axis)
    return of_all("take_along_axis", x=x, indices=indices)(x, indices, axis=axis)


@overload
def where(condition: Operand, x1: Number, x2: Number, /) -> Operand: ...


@overload
def where(condition: Typed | bool, x1: Number, x2: Operand, /) -> Operand: ...


@overload
def where(condition: Typed | bool, x1: Operand, x2: Typed | Number, /) -> Operand: ...


def where(condition: Any, x1: Any, x2: Any, /) -> Any:
    """Elements of one array or the other.

    Parameters
    ----------
    condition : array
        bool: true takes from ``x1``.
    x1, x2 : array or number
        Shapes that broadcast with ``condition``.

    Returns
    -------
    array
        Of the type that ``x1`` and ``x2`` promote to.

    Raises
    ------
    DeviceMismatchError
        The arrays are of two devices or libraries.

    Examples
    --------
    >>> import xdev
    >>> xdev.where(xdev.asarray([True, False]), xdev.asarray([1, 2]), 0)
    array([1, 0])
    """
    if (
        type(condition) is type(x1) is type(x2) is ndarray
        and condition.dtype not in FREED
        and x1.dtype not in FREED
        and x2.dtype not in FREED
    ):
        return _where(condition, x1, x2)
    kind = type(condition)
    if kind is type(x1) and kind is type(x2) and kind in direct:
        return direct[kind]["where"](condition, x1, x2)
    function, values = mixed("where", condition=condition, x1=x1, x2=x2)
    return function(*values)


def argsort(
    x: Array,
    /,
    axis: int = -1,
    *more: Never,
    descending: bool = False,
    stable: bool = True,
) -> Array:
    """Indices that sort along an axis.

    Parameters
    ----------
    x : array
        Real numbers, at least 1-D.
    axis : int
        Along which.
    descending : bool
        Largest first.
    stable : bool
        Equal elements keep their order.

    Returns
    -------
    array
        Integers, of ``x``'s shape.

    Examples
    --------
    >>> import xdev
    >>> xdev.argsort(xdev.asarray([2, 3, 1, 3]), descending=True)
    array([1, 3, 0, 2])
    """
    if more:
        raise misplaced(argsort, more)
    if type(x) is ndarray and x.dtype not in FREED and not descending:
        if x.size < FEW_ORDERED:
            return x.argsort(axis, stable=stable)
        return host_sorting.argsort(x, axis, stable)
    return direct[type(x)]["argsort"](
        x, axis=axis, descending=descending, stable=stable
    )


def sort(
    x: Array,
    /,
    axis: int = -1,
    *more: Never,
    descending: bool = False,
    stable: bool = True,
) -> Array:
    """Sorted copy along an axis.

    Parameters
    ----------
    x : array
        Real numbers, at least 1-D.
    axis : int
        Along which.
    descending : bool
        Largest first.
    stable : bool
        Equal elements keep their order.

    Returns
    -------
    array
        Of ``x``'s shape and data type.

    Examples
    --------
    >>> import xdev
    >>> xdev.sort(xdev.asarray([2, 3, 1]))
    array([1, 2, 3])
    """
    if more:
        raise misplaced(sort, more)
    if type(x) is ndarray and x.dtype not in FREED and not descending:
        if x.size >= FEW:
            return host_sorting.sort(x, axis, stable)
        result = x.copy("K")
        result.sort(axis, stable=stable)
        return result
    return direct[type(x)]["sort"](x, axis=axis, descending=descending, stable=stable)
