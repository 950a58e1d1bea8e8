"""Linear algebra whose results, shapes or defaults are not the standard's."""

from __future__ import annotations

from typing import Any

import numpy as np

from xdev import _optional
from xdev.facade.pseudoinverses import EPS
from xdev.ufunc.complaints import no_matrix

THREE = 3, 3  # the sizes of two vectors


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
    if a.ndim == 2 and b.ndim <= 2 and b.size:  # noqa: PLR2004 - one matrix
        return cupy.linalg.solve(a, b)
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
    if axis != -1:
        move = _optional.cupy().moveaxis  # refuses an axis that there is not
        x1, x2 = move(x1, axis, -1), move(x2, axis, -1)
    one, other = x1.shape, x2.shape
    if not one or not other or one[-1] != other[-1]:
        message = (
            f"xdev.vecdot: x1 and x2 have shapes {one} and {other}, axis {axis} being "
            f"the last: give vectors of one size along it"
        )
        raise ValueError(message)
    # The method, not the function: real numbers are not copied.
    return (x1.conj()[..., None, :] @ x2[..., None])[..., 0, 0]


def outer(x1: Any, x2: Any) -> Any:
    """Return the products of every pair of elements."""
    if not x1.ndim == x2.ndim == 1:
        message = (
            f"xdev.linalg.outer: x1 and x2 are {x1.ndim}-D and {x2.ndim}-D, and must "
            f"be 1-D: xdev.reshape(x, (-1,)) is"
        )
        raise ValueError(message)
    return x1.reshape(-1, 1) * x2


def cross(x1: Any, x2: Any, *, axis: int) -> Any:
    """Return the cross products of vectors in three dimensions."""
    try:
        sizes = x1.shape[axis], x2.shape[axis]
    except IndexError:
        sizes = THREE  # CuPy says which axis there is not
    if sizes != THREE:
        message = (
            f"xdev.linalg.cross: x1 and x2 have sizes {sizes[0]} and {sizes[1]} along "
            f"axis {axis}, and must have 3: join zeros to vectors in a plane with "
            f"xdev.concat"
        )
        raise ValueError(message)
    return _optional.cupy().cross(x1, x2, axis=axis)


def matrix_rank(x: Any, *, rtol: Any) -> Any:
    """Return the number of singular values that count as more than 0."""
    cupy = _optional.cupy()
    if x.ndim < 2:  # noqa: PLR2004 - a matrix's
        raise no_matrix("linalg.matrix_rank", x)
    values = cupy.linalg.svd(x, compute_uv=False)
    if rtol is None:
        least = max(x.shape[-2:]) * EPS[values.dtype]
    else:
        least = cupy.asarray(rtol)[..., None]
    # The first is the largest; a maximum of none would be an error.
    above = values > values[..., :1] * least
    return cupy.count_nonzero(above, axis=-1)
