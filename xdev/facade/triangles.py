"""Functions that keep the triangles of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from xdev._freed import FREED
from xdev.facade.cpu import bare
from xdev.facade.host_memory import POOLED_FROM, pooled
from xdev.facade.libraries import direct

if TYPE_CHECKING:
    from xdev.facade.protocols import Array

__all__ = ["tril", "triu"]

ndarray = np.ndarray
_tril = bare("tril")
_triu = bare("triu")


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
    if type(x) is ndarray and x.dtype not in FREED:
        made = _tril(x, k)
        return made if made.nbytes < POOLED_FROM else pooled(made)
    return direct[type(x)]["tril"](x, k=k)


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
    if type(x) is ndarray and x.dtype not in FREED:
        made = _triu(x, k)
        return made if made.nbytes < POOLED_FROM else pooled(made)
    return direct[type(x)]["triu"](x, k=k)
