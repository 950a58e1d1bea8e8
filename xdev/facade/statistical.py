# ruff: noqa: A001 - the standard names functions as Python does
"""Sums, extremes, means and moments along axes; running ones, and differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdev.facade.backends import gives_bools, gives_real
from xdev.facade.dispatch import dispatch, dispatch_all, library_of
from xdev.ufunc.argument_errors import misplaced

if TYPE_CHECKING:
    from typing import Never

    from xdev.facade.backends import Array, Axes, DType

__all__ = [
    "all", "any", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min",
    "prod", "std", "sum", "var",
]  # fmt: skip


@gives_bools
def all(
    x: Array, /, axis: Axes = None, *more: Never, keepdims: bool = False, **rest: Never
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

    Raises
    ------
    ValueError
        ``x`` has no such axis.

    Examples
    --------
    >>> import xdev
    >>> xdev.all(xdev.asarray([[True, False], [True, True]]), axis=0)
    array([ True, False])
    """
    return dispatch("all", x, more, rest)(x, axis=axis, keepdims=keepdims)


@gives_bools
def any(
    x: Array, /, axis: Axes = None, *more: Never, keepdims: bool = False, **rest: Never
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

    Raises
    ------
    ValueError
        ``x`` has no such axis.

    Examples
    --------
    >>> import xdev
    >>> xdev.any(xdev.asarray([[True, False], [False, False]]), axis=1)
    array([ True, False])
    """
    return dispatch("any", x, more, rest)(x, axis=axis, keepdims=keepdims)


def max(
    x: Array, /, axis: Axes = None, *more: Never, keepdims: bool = False, **rest: Never
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
    return dispatch("max", x, more, rest)(x, axis=axis, keepdims=keepdims)


def min(
    x: Array, /, axis: Axes = None, *more: Never, keepdims: bool = False, **rest: Never
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
    return dispatch("min", x, more, rest)(x, axis=axis, keepdims=keepdims)


def prod(
    x: Array,
    /,
    axis: Axes = None,
    dtype: DType = None,
    *more: Never,
    keepdims: bool = False,
    **rest: Never,
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

    Raises
    ------
    ValueError
        ``x`` has no such axis.

    Examples
    --------
    >>> import xdev
    >>> xdev.prod(xdev.asarray([[1, 2], [3, 4]]), axis=1)
    array([ 2, 12])
    """
    function = dispatch("prod", x, more, rest)
    dtype = None if dtype is None else library_of(x, "prod").dtype(dtype)
    return function(x, axis=axis, dtype=dtype, keepdims=keepdims)


def sum(
    x: Array,
    /,
    axis: Axes = None,
    dtype: DType = None,
    *more: Never,
    keepdims: bool = False,
    **rest: Never,
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

    Raises
    ------
    ValueError
        ``x`` has no such axis.

    Examples
    --------
    >>> import xdev
    >>> xdev.sum(xdev.asarray([[1, 2], [3, 4]]), axis=0)
    array([4, 6])
    """
    function = dispatch("sum", x, more, rest)
    dtype = None if dtype is None else library_of(x, "sum").dtype(dtype)
    return function(x, axis=axis, dtype=dtype, keepdims=keepdims)


def mean(
    x: Array, /, axis: Axes = None, *more: Never, keepdims: bool = False, **rest: Never
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

    Raises
    ------
    ValueError
        ``x`` has no such axis.

    Examples
    --------
    >>> import xdev
    >>> xdev.mean(xdev.asarray([[1.0, 2.0], [3.0, 5.0]]), axis=0)
    array([2. , 3.5])
    """
    return dispatch("mean", x, more, rest)(x, axis=axis, keepdims=keepdims)


@gives_real
def std(
    x: Array,
    /,
    axis: Axes = None,
    *more: Never,
    correction: float = 0.0,
    keepdims: bool = False,
    **rest: Never,
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

    Raises
    ------
    ValueError
        ``x`` has no such axis.

    Examples
    --------
    >>> import xdev
    >>> xdev.std(xdev.asarray([[1.0, 3.0], [2.0, 2.0]]), axis=1)
    array([1., 0.])
    """
    function = dispatch("std", x, more, rest)
    return function(x, axis=axis, correction=correction, keepdims=keepdims)


@gives_real
def var(
    x: Array,
    /,
    axis: Axes = None,
    *more: Never,
    correction: float = 0.0,
    keepdims: bool = False,
    **rest: Never,
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

    Raises
    ------
    ValueError
        ``x`` has no such axis.

    Examples
    --------
    >>> import xdev
    >>> xdev.var(xdev.asarray([[1.0, 3.0], [2.0, 2.0]]), axis=1, correction=1)
    array([2., 0.])
    """
    function = dispatch("var", x, more, rest)
    return function(x, axis=axis, correction=correction, keepdims=keepdims)


def cumulative_prod(
    x: Array,
    /,
    *more: Never,
    axis: int | None = None,
    dtype: DType = None,
    include_initial: bool = False,
) -> Array:
    """Products of all elements up to each one.

    Parameters
    ----------
    x : array
        Numbers, at least 1-D.
    axis : int, optional
        Needed where ``x`` has more than one.
    dtype : dtype, optional
        ``x``'s unless given; small integers widen to the default integer.
    include_initial : bool
        Start with 1, one element more.

    Returns
    -------
    array
        Of ``x``'s shape, or one longer along ``axis``.

    Raises
    ------
    ValueError
        ``axis`` is needed, or there is no such axis.

    Examples
    --------
    >>> import xdev
    >>> xdev.cumulative_prod(xdev.asarray([1, 2, 3, 4]))
    array([ 1,  2,  6, 24])
    """
    function = dispatch("cumulative_prod", x, more)
    dtype = None if dtype is None else library_of(x, "cumulative_prod").dtype(dtype)
    return function(x, axis=axis, dtype=dtype, include_initial=include_initial)


def cumulative_sum(
    x: Array,
    /,
    *more: Never,
    axis: int | None = None,
    dtype: DType = None,
    include_initial: bool = False,
) -> Array:
    """Sums of all elements up to each one.

    Parameters
    ----------
    x : array
        Numbers, at least 1-D.
    axis : int, optional
        Needed where ``x`` has more than one.
    dtype : dtype, optional
        ``x``'s unless given; small integers widen to the default integer.
    include_initial : bool
        Start with 0, one element more.

    Returns
    -------
    array
        Of ``x``'s shape, or one longer along ``axis``.

    Raises
    ------
    ValueError
        ``axis`` is needed, or there is no such axis.

    Examples
    --------
    >>> import xdev
    >>> xdev.cumulative_sum(xdev.asarray([1, 2, 3]), include_initial=True)
    array([0, 1, 3, 6])
    """
    function = dispatch("cumulative_sum", x, more)
    dtype = None if dtype is None else library_of(x, "cumulative_sum").dtype(dtype)
    return function(x, axis=axis, dtype=dtype, include_initial=include_initial)


def diff(
    x: Array,
    /,
    *more: Never,
    axis: int = -1,
    n: int = 1,
    prepend: Array | None = None,
    append: Array | None = None,
) -> Array:
    """Differences of neighbours along an axis.

    Parameters
    ----------
    x : array
        Numbers, at least 1-D.
    axis : int
        Along which.
    n : int
        How many times over.
    prepend, append : array, optional
        Put before and after ``x`` along ``axis`` first.

    Returns
    -------
    array
        ``n`` shorter along ``axis``.

    Raises
    ------
    DeviceMismatchError
        The arrays are of two devices or libraries.

    Examples
    --------
    >>> import xdev
    >>> xdev.diff(xdev.asarray([1, 4, 9, 16]))
    array([3, 5, 7])
    """
    if prepend is append is None:
        return dispatch("diff", x, more)(x, axis=axis, n=n)
    if more:
        raise misplaced(diff, more)
    pair = {"prepend": prepend, "append": append}
    ends = {label: end for label, end in pair.items() if end is not None}
    return dispatch_all("diff", x=x, **ends)(x, axis=axis, n=n, **ends)
