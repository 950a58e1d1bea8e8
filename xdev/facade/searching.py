"""Where elements are, in which order, and which there are."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Literal, overload

from xdev.facade.backends import gives_indices
from xdev.facade.dispatch import (
    dispatch,
    dispatch_alike,
    dispatch_mixed,
    dispatch_two,
    launches,
    relaunch,
)

if TYPE_CHECKING:
    from typing import Never, TypeVar

    import numpy as np
    from numpy.typing import NDArray

    from xdev.facade.backends import (
        Array,
        Axes,
        Beside,
        HasDtype,
        Number,
        Operand,
        UniqueAll,
        UniqueCounts,
        UniqueInverse,
    )

    Numpys = TypeVar("Numpys", bound=NDArray[Any])

__all__ = [
    "argmax", "argmin", "argsort", "count_nonzero", "isin", "nonzero",
    "searchsorted", "sort", "take", "take_along_axis", "unique_all",
    "unique_counts", "unique_inverse", "unique_values", "where",
]  # fmt: skip

#: A parameter's default that is none, to ``inspect`` too: the refusal says more.
REQUIRED: Any = inspect.Parameter.empty


@gives_indices
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
    return dispatch("argmax", x, more)(x, axis=axis, keepdims=keepdims)


@gives_indices
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
    return dispatch("argmin", x, more)(x, axis=axis, keepdims=keepdims)


@gives_indices
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

    Raises
    ------
    ValueError
        ``x`` has no such axis.

    Examples
    --------
    >>> import xdev
    >>> xdev.count_nonzero(xdev.asarray([[0, 5], [7, 2]]), axis=1)
    array([1, 2])
    """
    return dispatch("count_nonzero", x, more)(x, axis=axis, keepdims=keepdims)


@overload
def nonzero(x: NDArray[Any], /) -> tuple[NDArray[np.intp], ...]: ...


@overload
def nonzero(x: Array, /) -> tuple[Array, ...]: ...


def nonzero(x: Any, /) -> tuple[Any, ...]:
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
    return dispatch("nonzero", x)(x)


@gives_indices
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
    if type(x1) is type(x2) and sorter is None:
        if (out := relaunch("find", side, x1, x2)) is not None:
            return out
        return dispatch_two("searchsorted", x1, x2)(x1, x2, side=side)
    function, (x, values, order) = dispatch_mixed(
        "searchsorted", x1=x1, x2=x2, sorter=sorter
    )
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
    if (out := relaunch("take", axis, x, indices)) is not None:
        return out
    return dispatch_two("take", x, indices, ("x", "indices"))(x, indices, axis=axis)


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
    function = dispatch_two("take_along_axis", x, indices, ("x", "indices"))
    return function(x, indices, axis=axis)


@overload
def where(condition: Operand, x1: Number, x2: Number, /) -> Operand: ...


@overload
def where(condition: HasDtype | bool, x1: Number, x2: Operand, /) -> Operand: ...


@overload
def where(condition: HasDtype | bool, x1: Operand, x2: Beside, /) -> Operand: ...


def where(condition: Any, x1: Any = REQUIRED, x2: Any = REQUIRED, /) -> Any:
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
    if x2 is REQUIRED:
        raise TypeError(
            "xdev.where takes condition, x1 and x2: xdev.nonzero(condition) has the "
            "indices of what is true"
        )
    if type(condition) in launches:
        result = launches[type(condition)]["where"](condition, x1, x2)
        if result is not NotImplemented:
            return result
    if type(condition) is type(x1) is type(x2):
        function = dispatch_alike("where", (condition, x1, x2))
        if function is not None:
            return function(condition, x1, x2)
    function, values = dispatch_mixed("where", condition=condition, x1=x1, x2=x2)
    return function(*values)


@gives_indices
def argsort(
    x: Array,
    /,
    axis: int = -1,
    *more: Never,
    descending: bool = False,
    stable: bool = True,
    **rest: Never,
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

    Raises
    ------
    ValueError
        ``x`` has no such axis.

    Examples
    --------
    >>> import xdev
    >>> xdev.argsort(xdev.asarray([2, 3, 1, 3]), descending=True)
    array([1, 3, 0, 2])
    """
    function = dispatch("argsort", x, more, rest)
    return function(x, axis=axis, descending=descending, stable=stable)


def sort(
    x: Array,
    /,
    axis: int = -1,
    *more: Never,
    descending: bool = False,
    stable: bool = True,
    **rest: Never,
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

    Raises
    ------
    ValueError
        ``x`` has no such axis.

    Examples
    --------
    >>> import xdev
    >>> xdev.sort(xdev.asarray([2, 3, 1]))
    array([1, 2, 3])
    """
    function = dispatch("sort", x, more, rest)
    return function(x, axis=axis, descending=descending, stable=stable)


@overload
def isin(
    x1: NDArray[Any], x2: Any, /, *, invert: bool = False
) -> NDArray[np.bool_]: ...


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
    if more or type(x1) is type(x2):
        return dispatch_two("isin", x1, x2, more=more)(x1, x2, invert=invert)
    function, values = dispatch_mixed("isin", x1=x1, x2=x2)
    return function(*values, invert=invert)


@overload
def unique_all(x: Numpys, /) -> UniqueAll[Numpys, NDArray[np.intp]]: ...
@overload
def unique_all(x: Array, /) -> UniqueAll[Array, Array]: ...
def unique_all(x: Any, /) -> Any:
    """Distinct values, where each is first, how to rebuild ``x``, and how often.

    Parameters
    ----------
    x : array
        Any shape; NaN are all distinct.

    Returns
    -------
    namedtuple of arrays
        ``values``, ``indices``, ``inverse_indices`` (of ``x``'s shape), ``counts``.

    Raises
    ------
    TypeError
        ``x`` is not an array.

    Examples
    --------
    >>> import xdev
    >>> xdev.unique_all(xdev.asarray([5, 3, 5])).indices
    array([1, 0])
    """
    return dispatch("unique_all", x)(x)


@overload
def unique_counts(x: Numpys, /) -> UniqueCounts[Numpys, NDArray[np.intp]]: ...
@overload
def unique_counts(x: Array, /) -> UniqueCounts[Array, Array]: ...
def unique_counts(x: Any, /) -> Any:
    """Distinct values, and how often each is there.

    Parameters
    ----------
    x : array
        Any shape; NaN are all distinct.

    Returns
    -------
    namedtuple of arrays
        ``values``, ``counts``.

    Raises
    ------
    TypeError
        ``x`` is not an array.

    Examples
    --------
    >>> import xdev
    >>> xdev.unique_counts(xdev.asarray([5, 3, 5])).counts
    array([1, 2])
    """
    return dispatch("unique_counts", x)(x)


@overload
def unique_inverse(x: Numpys, /) -> UniqueInverse[Numpys, NDArray[np.intp]]: ...
@overload
def unique_inverse(x: Array, /) -> UniqueInverse[Array, Array]: ...
def unique_inverse(x: Any, /) -> Any:
    """Distinct values, and the indices that rebuild ``x`` from them.

    Parameters
    ----------
    x : array
        Any shape; NaN are all distinct.

    Returns
    -------
    namedtuple of arrays
        ``values``, ``inverse_indices`` (of ``x``'s shape).

    Raises
    ------
    TypeError
        ``x`` is not an array.

    Examples
    --------
    >>> import xdev
    >>> xdev.unique_inverse(xdev.asarray([5, 3, 5])).inverse_indices
    array([1, 0, 1])
    """
    return dispatch("unique_inverse", x)(x)


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

    Raises
    ------
    TypeError
        ``x`` is not an array.

    Examples
    --------
    >>> import xdev
    >>> xdev.unique_values(xdev.asarray([5, 3, 5]))
    array([3, 5])
    """
    return dispatch("unique_values", x)(x)
