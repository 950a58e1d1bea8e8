"""Linear algebra whose results, shapes or defaults are not the standard's."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from xdev import _optional


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
    if b.ndim > 1 < a.ndim and (a.shape[:-2] != b.shape[:-2] or not b.shape[-1]):
        stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        fits = a.shape[-2] == a.shape[-1] == b.shape[-2]
        if fits and not b.shape[-1]:  # CuPy divides by K
            kind = np.result_type(a.dtype, b.dtype, np.float32)
            return cupy.empty(stack + b.shape[-2:], kind)
        a = cupy.broadcast_to(a, stack + a.shape[-2:])
        b = cupy.broadcast_to(b, stack + b.shape[-2:])
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


def eig(x: Any) -> Any:
    """Return eigenvalues and eigenvectors, complex ones."""
    values, vectors = _optional.cupy().linalg.eig(x)
    return _named()(_complex(values), _complex(vectors))


@cache
def _named() -> Any:
    """Return the namedtuple of NumPy's ``eig``, which has no public name."""
    return type(np.linalg.eig(np.eye(1)))


def eigvals(x: Any) -> Any:
    """Return eigenvalues, complex ones."""
    return _complex(_optional.cupy().linalg.eigvals(x))


def _complex(x: Any) -> Any:
    return x.astype(np.result_type(x.dtype, np.complex64), copy=False)
