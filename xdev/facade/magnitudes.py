"""Numbers that describe a matrix or vector: norms, ranks, determinants, traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from xdev._freed import FREED
from xdev.facade.cpu import bare
from xdev.facade.libraries import direct, library_of
from xdev.ufunc.complaints import misplaced

if TYPE_CHECKING:
    from typing import Never

    from xdev.facade.protocols import Array, Axes, DType
    from xdev.facade.results import Slogdet

__all__ = [
    "det",
    "matrix_norm",
    "matrix_rank",
    "slogdet",
    "trace",
    "vector_norm",
]

ndarray = np.ndarray
_det = bare("linalg.det")
_matrix_norm = bare("linalg.matrix_norm")
_matrix_rank = bare("linalg.matrix_rank")
_slogdet = bare("linalg.slogdet")
_vector_norm = bare("linalg.vector_norm")


def det(x: Array, /) -> Array:
    """Determinant.

    Parameters
    ----------
    x : array
        Shape (..., M, M), floating-point.

    Returns
    -------
    array
        Shape (...).

    Raises
    ------
    LinAlgError
        The matrices are not square.

    Examples
    --------
    >>> import xdev
    >>> round(float(xdev.linalg.det(xdev.asarray([[2.0, 0.0], [0.0, 4.0]]))), 9)
    8.0
    """
    if type(x) is ndarray and x.dtype not in FREED:
        return _det(x)
    return direct[type(x)]["linalg.det"](x)


def matrix_norm(
    x: Array,
    /,
    *more: Never,
    keepdims: bool = False,
    ord: float | Literal["fro", "nuc"] | None = "fro",
) -> Array:
    """Norm of matrices.

    Parameters
    ----------
    x : array
        Shape (..., M, N), floating-point.
    keepdims : bool
        Keep the last two axes, with size 1.
    ord : {"fro", "nuc", 1, 2, inf, -1, -2, -inf}
        Which norm.

    Returns
    -------
    array
        Shape (...), real.

    Examples
    --------
    >>> import xdev
    >>> float(xdev.linalg.matrix_norm(xdev.asarray([[3.0, 0.0], [0.0, 4.0]])))
    5.0
    """
    if more:
        raise misplaced(matrix_norm, more)
    if type(x) is ndarray and x.dtype not in FREED:
        return _matrix_norm(x, keepdims=keepdims, ord=ord)
    return direct[type(x)]["linalg.matrix_norm"](x, keepdims=keepdims, ord=ord)


def matrix_rank(x: Array, /, *more: Never, rtol: Any = None) -> Array:
    """Number of singular values that count as more than 0.

    Parameters
    ----------
    x : array
        Shape (..., M, N), floating-point.
    rtol : number or array, optional
        Relative to the largest of them; max(M, N) times eps unless given.

    Returns
    -------
    array
        Integers, shape (...).

    Raises
    ------
    LinAlgError
        ``x`` has fewer than two axes.

    Examples
    --------
    >>> import xdev
    >>> int(xdev.linalg.matrix_rank(xdev.ones((3, 3))))
    1
    """
    if more:
        raise misplaced(matrix_rank, more)
    if type(x) is ndarray and x.dtype not in FREED and x.ndim > 1:
        return _matrix_rank(x, rtol=rtol)
    return direct[type(x)]["linalg.matrix_rank"](x, rtol=rtol)


def slogdet(x: Array, /) -> Slogdet[Array]:
    """Sign and logarithm of the determinant.

    Parameters
    ----------
    x : array
        Shape (..., M, M), floating-point.

    Returns
    -------
    namedtuple of arrays
        ``sign`` and ``logabsdet``, shape (...).

    Raises
    ------
    LinAlgError
        The matrices are not square.

    Examples
    --------
    >>> import xdev
    >>> float(xdev.linalg.slogdet(xdev.eye(2)).logabsdet)
    0.0
    """
    if type(x) is ndarray and x.dtype not in FREED:
        return _slogdet(x)
    return direct[type(x)]["linalg.slogdet"](x)


def trace(x: Array, /, *more: Never, offset: int = 0, dtype: DType = None) -> Array:
    """Sum along diagonals of matrices.

    Parameters
    ----------
    x : array
        Shape (..., M, N).
    offset : int
        Which diagonal: 0 the main one, above it positive.
    dtype : dtype, optional
        ``x``'s unless given; small integers widen to the default integer.

    Returns
    -------
    array
        Shape (...).

    Examples
    --------
    >>> import xdev
    >>> float(xdev.linalg.trace(xdev.asarray([[2.0, 0.0], [0.0, 4.0]])))
    6.0
    """
    if more:
        raise misplaced(trace, more)
    if type(x) is ndarray and x.dtype not in FREED and dtype is None:
        return x.trace(offset, -2, -1)
    if dtype is not None:
        dtype = library_of(x, "linalg.trace").dtype(dtype)
    return direct[type(x)]["linalg.trace"](x, offset=offset, dtype=dtype)


def vector_norm(
    x: Array, /, *more: Never, axis: Axes = None, keepdims: bool = False, ord: float = 2
) -> Array:
    """Norm of vectors.

    Parameters
    ----------
    x : array
        Floating-point.
    axis : int or tuple of ints, optional
        Where the vectors lie; all axes unless given.
    keepdims : bool
        Keep the reduced axes, with size 1.
    ord : number
        Which norm: the sum of ``abs(x)**ord``, to the power ``1 / ord``; inf, -inf:
        the largest and the smallest; 0: the number that are not 0.

    Returns
    -------
    array
        Real.

    Examples
    --------
    >>> import xdev
    >>> float(xdev.linalg.vector_norm(xdev.asarray([3.0, 4.0])))
    5.0
    """
    if more:
        raise misplaced(vector_norm, more)
    if type(x) is ndarray and x.dtype not in FREED:
        return _vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)
    return direct[type(x)]["linalg.vector_norm"](
        x, axis=axis, keepdims=keepdims, ord=ord
    )
