"""The products and transposes that the main namespace shares with ``linalg``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from xdev._freed import FREED
from xdev.facade.dispatch import direct, of_pair, refuse
from xdev.ufunc.complaints import no_product

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Never

    from xdev.facade.backends import Array

__all__ = [
    "matmul",
    "matrix_transpose",
    "tensordot",
    "vecdot",
]


def matmul(x1: Array, x2: Array, /) -> Array:
    """Matrix product.

    Parameters
    ----------
    x1, x2 : array
        Shapes (..., M, K) and (..., K, N); a 1-D one is a row or a column.

    Returns
    -------
    array
        Shape (..., M, N), without the axes that a 1-D argument lacks.

    Raises
    ------
    ValueError
        The shapes do not fit.
    DeviceMismatchError
        The arrays are of two devices or libraries.

    Examples
    --------
    >>> import xdev
    >>> xdev.matmul(xdev.asarray([[1, 2], [3, 4]]), xdev.asarray([1, 1]))
    array([3, 7])
    """
    try:
        return of_pair("matmul", x1, x2)(x1, x2)
    except TypeError:
        refuse("matmul", x1=x1, x2=x2)
        raise
    except ValueError:
        if (error := no_product(x1, x2)) is not None:
            raise error from None
        raise


def matrix_transpose(x: Array, /) -> Array:
    """Matrices with rows and columns exchanged.

    Parameters
    ----------
    x : array
        Shape (..., M, N).

    Returns
    -------
    array
        Shape (..., N, M); a view where the library has views.

    Raises
    ------
    ValueError
        ``x`` has fewer than two axes.

    Examples
    --------
    >>> import xdev
    >>> xdev.matrix_transpose(xdev.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    if type(x) is np.ndarray and x.dtype not in FREED:
        return x.mT
    return direct[type(x)]["matrix_transpose"](x)


def tensordot(
    x1: Array, x2: Array, /, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Array:
    """Sum of products over axes of both arrays.

    Parameters
    ----------
    x1, x2 : array
        Of equal sizes along the contracted axes.
    axes : int or pair of sequences of ints
        The last axes of ``x1`` and the first of ``x2``, or which of each.

    Returns
    -------
    array
        The other axes of ``x1``, then those of ``x2``.

    Raises
    ------
    ValueError
        The sizes differ.
    DeviceMismatchError
        The arrays are of two devices or libraries.

    Examples
    --------
    >>> import xdev
    >>> xdev.tensordot(xdev.ones((2, 3)), xdev.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    return of_pair("tensordot", x1, x2)(x1, x2, axes=axes)


def vecdot(x1: Array, x2: Array, /, *more: Never, axis: int = -1) -> Array:
    """Dot product of vectors, ``x1`` conjugated.

    Parameters
    ----------
    x1, x2 : array
        Of equal size along ``axis``; the other axes broadcast.
    axis : int
        Where the vectors lie; negative.

    Returns
    -------
    array
        Without ``axis``.

    Raises
    ------
    ValueError
        The sizes differ.
    DeviceMismatchError
        The arrays are of two devices or libraries.

    Examples
    --------
    >>> import xdev
    >>> xdev.vecdot(xdev.asarray([1, 2]), xdev.asarray([3, 4])).tolist()
    11
    """
    try:
        return of_pair("vecdot", x1, x2, more=more)(x1, x2, axis=axis)
    except TypeError:
        refuse("vecdot", x1=x1, x2=x2)
        raise
