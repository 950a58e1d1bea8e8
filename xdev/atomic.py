"""Atomic updates of array elements, inside kernels: ``add``, ``max``, ``min``, ``cas``.

No update is lost, whichever indices of the grid, or threads, meet on an element. Arrays
are of int32, int64, uint32, uint64, float32 or float64; the index is an integer, or a
tuple of one for each axis. All return what the element was before.
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["add", "cas", "max", "min"]
__dir__ = __all__.copy  # what Tab shows


def add(a: Any, index: Any, value: Any) -> Any:  # noqa: ARG001 - compiled code does it
    """Add to an element: ``a[index] += value``.

    Parameters
    ----------
    a : array
        Of the kernel's arguments.
    index : int or tuple of int
        Which element; negative ones count from the end.
    value : number
        What is added, cast to the array's dtype.

    Returns
    -------
    number
        The element as it was.

    Raises
    ------
    TypeError
        Outside a kernel.

    Examples
    --------
    >>> import numpy as np, xdev
    >>> @xdev.kernel
    ... def count(i, x, bins):
    ...     xdev.atomic.add(bins, x[i], 1)
    >>> bins = np.zeros(3, dtype="int64")
    >>> count[5](np.asarray([0, 2, 2, 1, 2]), bins)
    >>> bins
    array([1, 1, 3])
    """
    _refuse("add")


def max(a: Any, index: Any, value: Any) -> Any:  # noqa: A001, ARG001 - as called
    """Raise an element to a value: ``a[index] = np.maximum(a[index], value)``.

    A NaN on either side is what stays, as in NumPy.

    Parameters
    ----------
    a : array
        Of the kernel's arguments.
    index : int or tuple of int
        Which element; negative ones count from the end.
    value : number
        What it is at least, cast to the array's dtype.

    Returns
    -------
    number
        The element as it was.

    Raises
    ------
    TypeError
        Outside a kernel.

    Examples
    --------
    >>> import numpy as np, xdev
    >>> @xdev.kernel
    ... def largest(i, x, out):
    ...     xdev.atomic.max(out, 0, x[i])
    >>> out = np.zeros(1)
    >>> largest[3](np.asarray([2.0, 5.0, 3.0]), out)
    >>> out
    array([5.])
    """
    _refuse("max")


def min(a: Any, index: Any, value: Any) -> Any:  # noqa: A001, ARG001
    """Lower an element to a value: ``a[index] = np.minimum(a[index], value)``.

    A NaN on either side is what stays, as in NumPy.

    Parameters
    ----------
    a : array
        Of the kernel's arguments.
    index : int or tuple of int
        Which element; negative ones count from the end.
    value : number
        What it is at most, cast to the array's dtype.

    Returns
    -------
    number
        The element as it was.

    Raises
    ------
    TypeError
        Outside a kernel.

    Examples
    --------
    >>> import numpy as np, xdev
    >>> @xdev.kernel
    ... def smallest(i, x, out):
    ...     xdev.atomic.min(out, 0, x[i])
    >>> out = np.full(1, 9.0)
    >>> smallest[3](np.asarray([2.0, 5.0, 3.0]), out)
    >>> out
    array([2.])
    """
    _refuse("min")


def cas(a: Any, index: Any, expected: Any, value: Any) -> Any:  # noqa: ARG001
    """Compare and swap: put ``value`` where the element is ``expected``.

    It was put there if what returns is ``expected``. Floats are compared by their bits:
    a NaN equals itself, -0.0 is not 0.0.

    Parameters
    ----------
    a : array
        Of the kernel's arguments.
    index : int or tuple of int
        Which element; negative ones count from the end.
    expected, value : number
        What the element must be, and what it becomes; cast to the array's dtype.

    Returns
    -------
    number
        The element as it was.

    Raises
    ------
    TypeError
        Outside a kernel.

    Examples
    --------
    >>> import numpy as np, xdev
    >>> @xdev.kernel
    ... def first(i, x, owner):
    ...     xdev.atomic.cas(owner, x[i], -1, i)
    >>> owner = np.full(2, -1)
    >>> first[3](np.asarray([0, 1, 1]), owner)
    >>> owner[0], owner[1] > 0
    (np.int64(0), np.True_)
    """
    _refuse("cas")


def _refuse(name: str) -> NoReturn:
    raise TypeError(
        f"xdev.atomic.{name} works inside a function that @xdev.kernel compiles; "
        "outside, write a[index] = …"
    )
