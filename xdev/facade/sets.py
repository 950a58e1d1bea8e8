"""Functions on the set of an array's values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdev.facade.dispatch import mixed, of

if TYPE_CHECKING:
    from xdev.facade.protocols import Array

__all__ = ["isin", "unique_all", "unique_counts", "unique_inverse", "unique_values"]


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Any:
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
    function, values = mixed("isin", x1=x1, x2=x2)
    return function(*values, invert=invert)


def unique_all(x: Array, /) -> Any:
    """Distinct values, where each is first, how to rebuild ``x``, and how often.

    Parameters
    ----------
    x : array
        Any shape; NaN are all distinct.

    Returns
    -------
    namedtuple of arrays
        ``values``, ``indices``, ``inverse_indices`` (of ``x``'s shape), ``counts``.

    Examples
    --------
    >>> import xdev
    >>> xdev.unique_all(xdev.asarray([5, 3, 5])).indices
    array([1, 0])
    """
    result: tuple[Array, Array, Array, Array] = of(x, "unique_all")(x)
    return result


def unique_counts(x: Array, /) -> Any:
    """Distinct values, and how often each is there.

    Parameters
    ----------
    x : array
        Any shape; NaN are all distinct.

    Returns
    -------
    namedtuple of arrays
        ``values``, ``counts``.

    Examples
    --------
    >>> import xdev
    >>> xdev.unique_counts(xdev.asarray([5, 3, 5])).counts
    array([1, 2])
    """
    result: tuple[Array, Array] = of(x, "unique_counts")(x)
    return result


def unique_inverse(x: Array, /) -> Any:
    """Distinct values, and the indices that rebuild ``x`` from them.

    Parameters
    ----------
    x : array
        Any shape; NaN are all distinct.

    Returns
    -------
    namedtuple of arrays
        ``values``, ``inverse_indices`` (of ``x``'s shape).

    Examples
    --------
    >>> import xdev
    >>> xdev.unique_inverse(xdev.asarray([5, 3, 5])).inverse_indices
    array([1, 0, 1])
    """
    result: tuple[Array, Array] = of(x, "unique_inverse")(x)
    return result


def unique_values(x: Array, /) -> Array:
    """Distinct values, in no particular order.

    Parameters
    ----------
    x : array
        Any shape; NaN are all distinct.

    Returns
    -------
    array
        1-D.

    Examples
    --------
    >>> import xdev
    >>> xdev.sort(xdev.unique_values(xdev.asarray([5, 3, 5])))
    array([3, 5])
    """
    result: Array = of(x, "unique_values")(x)
    return result
