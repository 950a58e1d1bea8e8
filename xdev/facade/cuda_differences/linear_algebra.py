"""Linear algebra whose results, shapes or defaults are not the standard's."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from xdev import _optional
from xdev.facade.results import QR, SVD, Eig, Slogdet

#: Gives results their names, in no frame of Python's.
_named: Any = tuple.__new__


def solve(a: Any, b: Any) -> Any:
    """Solve stacks of linear equations; the stacks broadcast.

    Parameters
    ----------
    a : cupy.ndarray, shape (..., M, M)
        The matrices.
    b : cupy.ndarray, shape (M,) or (..., M, K)
        The right-hand sides.

    Returns
    -------
    cupy.ndarray, shape (..., M) or (..., M, K)
        The unknowns.
    """
    cupy = _optional.cupy()
    left, right = a.shape, b.shape
    if len(right) > 1 < len(left) and (left[:-2] != right[:-2] or not right[-1]):
        stack = np.broadcast_shapes(left[:-2], right[:-2])
        if left[-2] == left[-1] == right[-2] and not right[-1]:  # CuPy divides by K
            kind = np.result_type(a.dtype, b.dtype, np.float32)
            return cupy.empty(stack + right[-2:], kind)
        a = cupy.broadcast_to(a, stack + left[-2:])
        b = cupy.broadcast_to(b, stack + right[-2:])
    return cupy.linalg.solve(a, b)


def vecdot(x1: Any, x2: Any, *, axis: int) -> Any:
    """Return the dot products of vectors, the first conjugated."""
    if x1.shape[axis] != x2.shape[axis]:
        message = (
            f"xdev.vecdot: x1 and x2 have sizes {x1.shape[axis]} and {x2.shape[axis]} "
            f"along axis {axis}: give vectors of one size"
        )
        raise ValueError(message)
    if axis != -1:
        move = _optional.cupy().moveaxis
        x1, x2 = move(x1, axis, -1), move(x2, axis, -1)
    # The method, not the function: real numbers are not copied.
    return (x1.conj()[..., None, :] @ x2[..., None])[..., 0, 0]


def outer(x1: Any, x2: Any) -> Any:
    """Return the products of every pair of elements."""
    return x1.reshape(-1, 1) * x2.reshape(-1)


def matrix_rank(x: Any, *, rtol: Any) -> Any:
    """Return the number of singular values that count as more than 0."""
    cupy = _optional.cupy()
    if x.ndim < 2:  # noqa: PLR2004 - a matrix's
        message = f"xdev.linalg.matrix_rank: x has {x.ndim} axes: give it at least two"
        raise np.linalg.LinAlgError(message)
    values = cupy.linalg.svd(x, compute_uv=False)
    least = _negligible(x) if rtol is None else cupy.asarray(rtol)[..., None]
    above = values > values.max(axis=-1, keepdims=True) * least
    return cupy.count_nonzero(above, axis=-1)


def pinv(x: Any, *, rtol: Any) -> Any:
    """Return the Moore-Penrose inverse."""
    return _optional.cupy().linalg.pinv(x, _negligible(x) if rtol is None else rtol)


def _negligible(x: Any) -> Any:
    """Return up to what a singular value counts as 0, relative to the largest."""
    return max(x.shape[-2:]) * _eps(x.dtype)


@cache
def _eps(dtype: np.dtype[Any]) -> Any:
    return np.finfo(dtype).eps


def cholesky(x: Any, *, upper: bool) -> Any:
    """Return the lower triangular factor, or its conjugate transpose."""
    lower = _optional.cupy().linalg.cholesky(x)
    return lower.mT.conj() if upper else lower


def eigh(x: Any) -> Any:
    """Return eigenvalues and eigenvectors of Hermitian matrices."""
    return _named(Eig, _optional.cupy().linalg.eigh(x))


def qr(x: Any, *, mode: str) -> Any:
    """Return orthonormal and upper triangular factors."""
    return _named(QR, _optional.cupy().linalg.qr(x, mode))


def slogdet(x: Any) -> Any:
    """Return the sign and the logarithm of the determinant."""
    return _named(Slogdet, _optional.cupy().linalg.slogdet(x))


def svd(x: Any, *, full_matrices: bool) -> Any:
    """Return the singular value decomposition."""
    return _named(SVD, _optional.cupy().linalg.svd(x, full_matrices))


def eig(x: Any) -> Any:
    """Return eigenvalues and eigenvectors, complex ones."""
    values, vectors = _optional.cupy().linalg.eig(x)
    return _named(Eig, (_complex(values), _complex(vectors)))


def eigvals(x: Any) -> Any:
    """Return eigenvalues, complex ones."""
    return _complex(_optional.cupy().linalg.eigvals(x))


def _complex(x: Any) -> Any:
    return x.astype(np.result_type(x.dtype, np.complex64), copy=False)
