"""The standard's linear algebra extension, ``xdev.linalg``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

from xdev._numpy_names import refuse
from xdev.facade.backends import gives_indices, gives_real
from xdev.facade.dispatch import dispatch, dispatch_two, library_of, relaunch
from xdev.facade.linear_algebra import (
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    matmul,
    matrix_transpose,
    qr,
    svd,
    svdvals,
    tensordot,
    vecdot,
)

if TYPE_CHECKING:
    from typing import Never

    from xdev.facade.backends import C64, C128, F32, F64, Array, Axes, DType, Slogdet

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh",
    "inv", "matmul", "matrix_norm", "matrix_power", "matrix_rank",
    "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals",
    "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip
__dir__ = __all__.copy  # what Tab shows


if not TYPE_CHECKING:  # type checkers know what is there
    __getattr__ = partial(refuse, __name__)  # says what does the same as NumPy's


def cross(x1: Array, x2: Array, /, *more: Never, axis: int = -1) -> Array:
    """Cross product of vectors in three dimensions.

    Parameters
    ----------
    x1, x2 : array
        Of size 3 along ``axis``; the other axes broadcast.
    axis : int
        Where the vectors lie.

    Returns
    -------
    array
        Of the broadcast shape.

    Raises
    ------
    ValueError
        A vector is not of size 3.
    DeviceMismatchError
        The arrays are of two devices or libraries.

    Examples
    --------
    >>> import xdev
    >>> xdev.linalg.cross(xdev.asarray([1, 0, 0]), xdev.asarray([0, 1, 0]))
    array([0, 0, 1])
    """
    out = None if more else relaunch("cross", axis, x1, x2)
    if out is not None:
        return out
    return dispatch_two("linalg.cross", x1, x2, more=more)(x1, x2, axis=axis)


def diagonal(x: Array, /, *more: Never, offset: int = 0) -> Array:
    """Diagonals of matrices.

    Parameters
    ----------
    x : array
        Shape (..., M, N).
    offset : int
        Which: 0 the main one, above it positive.

    Returns
    -------
    array
        Shape (..., length of the diagonal).

    Raises
    ------
    ValueError
        ``x`` has fewer than two axes.

    Examples
    --------
    >>> import xdev
    >>> xdev.linalg.diagonal(xdev.asarray([[2.0, 0.0], [0.0, 4.0]]))
    array([2., 4.])
    """
    return dispatch("linalg.diagonal", x, more)(x, offset=offset)


def inv(x: Array, /) -> Array:
    """Inverse of square matrices.

    Parameters
    ----------
    x : array
        Shape (..., M, M), floating-point.

    Returns
    -------
    array
        Of ``x``'s shape.

    Raises
    ------
    LinAlgError
        A matrix is singular (where the library can tell).

    Examples
    --------
    >>> import xdev
    >>> xdev.linalg.inv(xdev.asarray([[2.0, 0.0], [0.0, 4.0]]))
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    return dispatch("linalg.inv", x)(x)


def matrix_power(x: Array, n: int, /) -> Array:
    """Square matrices to a whole power; a negative one inverts.

    Parameters
    ----------
    x : array
        Shape (..., M, M), floating-point.
    n : int
        The power.

    Returns
    -------
    array
        Of ``x``'s shape.

    Raises
    ------
    LinAlgError
        ``n`` is negative and a matrix is singular (where the library can tell).

    Examples
    --------
    >>> import xdev
    >>> xdev.linalg.matrix_power(xdev.asarray([[2.0, 0.0], [0.0, 4.0]]), 2)
    array([[ 4.,  0.],
           [ 0., 16.]])
    """
    return dispatch("linalg.matrix_power", x)(x, n)


def outer(x1: Array, x2: Array, /) -> Array:
    """Products of every pair of elements of two vectors.

    Parameters
    ----------
    x1, x2 : array
        Shapes (M,) and (N,).

    Returns
    -------
    array
        Shape (M, N).

    Raises
    ------
    ValueError
        An array is not 1-D.
    DeviceMismatchError
        The arrays are of two devices or libraries.

    Examples
    --------
    >>> import xdev
    >>> xdev.linalg.outer(xdev.asarray([1, 2]), xdev.asarray([3, 4]))
    array([[3, 4],
           [6, 8]])
    """
    return dispatch_two("linalg.outer", x1, x2)(x1, x2)


def pinv(x: Array, /, rtol: Any = None) -> Array:
    """Moore-Penrose inverse.

    Parameters
    ----------
    x : array
        Shape (..., M, N), floating-point.
    rtol : number or array, optional
        Singular values below it, relative to the largest, count as 0; max(M, N) times
        eps unless given.

    Returns
    -------
    array
        Shape (..., N, M).

    Raises
    ------
    LinAlgError
        ``x`` has fewer than two axes, or the singular values do not converge.

    Examples
    --------
    >>> import xdev
    >>> xdev.linalg.pinv(xdev.asarray([[2.0], [0.0]]))
    array([[0.5, 0. ]])
    """
    return dispatch("linalg.pinv", x)(x, rtol=rtol)


def solve(x1: Array, x2: Array, /) -> Array:
    """Solution of linear equations, ``x1 @ result = x2``.

    Parameters
    ----------
    x1 : array
        Shape (..., M, M), floating-point.
    x2 : array
        Shape (M,) or (..., M, K).

    Returns
    -------
    array
        Of ``x2``'s shape, broadcast.

    Raises
    ------
    LinAlgError
        A matrix is singular (where the library can tell).
    DeviceMismatchError
        The arrays are of two devices or libraries.

    Examples
    --------
    >>> import xdev
    >>> a = xdev.asarray([[2.0, 0.0], [0.0, 4.0]])
    >>> xdev.linalg.solve(a, xdev.asarray([2.0, 2.0]))
    array([1. , 0.5])
    """
    return dispatch_two("linalg.solve", x1, x2)(x1, x2)


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
    return dispatch("linalg.det", x)(x)


@gives_real
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

    Raises
    ------
    ValueError
        ``x`` has fewer than two axes; there is no such norm.

    Examples
    --------
    >>> import xdev
    >>> float(xdev.linalg.matrix_norm(xdev.asarray([[3.0, 0.0], [0.0, 4.0]])))
    5.0
    """
    return dispatch("linalg.matrix_norm", x, more)(x, keepdims=keepdims, ord=ord)


@gives_indices
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
    return dispatch("linalg.matrix_rank", x, more)(x, rtol=rtol)


@overload
def slogdet(x: C128, /) -> Slogdet[C128, F64]: ...  # type: ignore[overload-overlap]
@overload
def slogdet(x: C64, /) -> Slogdet[C64, F32]: ...
@overload
def slogdet(x: Array, /) -> Slogdet[Array, Array]: ...
def slogdet(x: Any, /) -> Any:
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
    return dispatch("linalg.slogdet", x)(x)


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

    Raises
    ------
    ValueError
        ``x`` has fewer than two axes.

    Examples
    --------
    >>> import xdev
    >>> float(xdev.linalg.trace(xdev.asarray([[2.0, 0.0], [0.0, 4.0]])))
    6.0
    """
    function = dispatch("linalg.trace", x, more)
    dtype = None if dtype is None else library_of(x, "linalg.trace").dtype(dtype)
    return function(x, offset=offset, dtype=dtype)


@gives_real
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

    Raises
    ------
    ValueError
        ``x`` has no such axis.

    Examples
    --------
    >>> import xdev
    >>> float(xdev.linalg.vector_norm(xdev.asarray([3.0, 4.0])))
    5.0
    """
    function = dispatch("linalg.vector_norm", x, more)
    return function(x, axis=axis, keepdims=keepdims, ord=ord)
