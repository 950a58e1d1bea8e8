"""Functions that sort."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from xdev._freed import FREED
from xdev.facade import host_sorting
from xdev.facade.host_sorting import FEW, FEW_ORDERED
from xdev.facade.libraries import direct
from xdev.ufunc.complaints import misplaced

if TYPE_CHECKING:
    from typing import Never

    from xdev.facade.protocols import Array

__all__ = ["argsort", "sort"]

ndarray = np.ndarray


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
