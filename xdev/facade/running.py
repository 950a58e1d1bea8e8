"""Running sums and products, and differences, along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.facade.dispatch import direct, library_of, of_all, refuse
from xdev.ufunc.complaints import misplaced

if TYPE_CHECKING:
    from typing import Never

    from xdev.facade.protocols import Array, DType

__all__ = ["cumulative_prod", "cumulative_sum", "diff"]

ndarray = np.ndarray
_add: Any = np.add.accumulate
_multiply: Any = np.multiply.accumulate


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

    Examples
    --------
    >>> import xdev
    >>> xdev.cumulative_prod(xdev.asarray([1, 2, 3, 4]))
    array([ 1,  2,  6, 24])
    """
    if more:
        raise misplaced(cumulative_prod, more)
    if type(x) is ndarray and dtype is None and not include_initial:
        ndim = x.ndim
        if ndim == 1 or (ndim and axis is not None):
            try:
                return _multiply(x, 0 if axis is None else axis)
            except TypeError:
                refuse("cumulative_prod", x=x)
                raise
    if dtype is not None:
        dtype = library_of(x, "cumulative_prod").dtype(dtype)
    return direct[type(x)]["cumulative_prod"](
        x, axis=axis, dtype=dtype, include_initial=include_initial
    )


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

    Examples
    --------
    >>> import xdev
    >>> xdev.cumulative_sum(xdev.asarray([1, 2, 3]), include_initial=True)
    array([0, 1, 3, 6])
    """
    if more:
        raise misplaced(cumulative_sum, more)
    if type(x) is ndarray and dtype is None and not include_initial:
        ndim = x.ndim
        if ndim == 1 or (ndim and axis is not None):
            try:
                return _add(x, 0 if axis is None else axis)
            except TypeError:
                refuse("cumulative_sum", x=x)
                raise
    if dtype is not None:
        dtype = library_of(x, "cumulative_sum").dtype(dtype)
    return direct[type(x)]["cumulative_sum"](
        x, axis=axis, dtype=dtype, include_initial=include_initial
    )


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
    if more:
        raise misplaced(diff, more)
    plain = type(x) is ndarray and prepend is append is None
    if plain and n == 1 and axis == -1 and x.ndim:
        difference = np.not_equal if x.dtype.kind == "b" else np.subtract
        try:
            return difference(x[..., 1:], x[..., :-1])
        except TypeError:
            refuse("diff", x=x)
            raise
    if prepend is append is None:
        return direct[type(x)]["diff"](x, axis=axis, n=n)
    given = {"prepend": prepend, "append": append}
    ends = {label: end for label, end in given.items() if end is not None}
    return of_all("diff", x=x, **ends)(x, axis=axis, n=n, **ends)
