"""Linear algebra whose results or shapes are not the standard's."""

from __future__ import annotations

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


def eig(x: Any) -> Any:
    """Return eigenvalues and eigenvectors, complex ones."""
    values, vectors = _optional.cupy().linalg.eig(x)
    kind = type(np.linalg.eig(np.eye(1)))
    return kind(_complex(values), _complex(vectors))


def eigvals(x: Any) -> Any:
    """Return eigenvalues, complex ones."""
    return _complex(_optional.cupy().linalg.eigvals(x))


def _complex(x: Any) -> Any:
    return x.astype(np.result_type(x.dtype, np.complex64), copy=False)
