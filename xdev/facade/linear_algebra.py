"""Products of matrices, which the main namespace has too, and decompositions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from xdev.facade.backends import gives_complex, gives_real
from xdev.facade.dispatch import dispatch, dispatch_two, refuse
from xdev.ufunc.argument_errors import no_product

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Never

    from xdev.facade.backends import (
        C64,
        C128,
        F32,
        F64,
        QR,
        SVD,
        Array,
        Double,
        Eig,
        Single,
    )

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]  # for this namespace


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
        return dispatch_two("matmul", x1, x2)(x1, x2)
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
    return dispatch("matrix_transpose", x)(x)


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
    return dispatch_two("tensordot", x1, x2)(x1, x2, axes=axes)


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
        return dispatch_two("vecdot", x1, x2, more=more)(x1, x2, axis=axis)
    except TypeError:
        refuse("vecdot", x1=x1, x2=x2)
        raise


def cholesky(x: Array, /, *more: Never, upper: bool = False) -> Array:
    """Triangular factor of positive definite matrices.

    Parameters
    ----------
    x : array
        Shape (..., M, M), Hermitian, floating-point.
    upper : bool
        The upper factor U with ``x = U^H U``, not the lower L with ``x = L L^H``.

    Returns
    -------
    array
        Of ``x``'s shape.

    Raises
    ------
    LinAlgError
        A matrix is not positive definite (where the library can tell).

    Examples
    --------
    >>> import xdev
    >>> xdev.linalg.cholesky(xdev.asarray([[4.0, 2.0], [2.0, 5.0]]))
    array([[2., 0.],
           [1., 2.]])
    """
    return dispatch("linalg.cholesky", x, more)(x, upper=upper)


@overload
def eig(x: Double, /) -> Eig[C128, C128]: ...  # type: ignore[overload-overlap]
@overload
def eig(x: Single, /) -> Eig[C64, C64]: ...
@overload
def eig(x: Array, /) -> Eig[Array, Array]: ...
def eig(x: Any, /) -> Any:
    """Eigenvalues and eigenvectors of square matrices.

    Parameters
    ----------
    x : array
        Shape (..., M, M), floating-point.

    Returns
    -------
    namedtuple of arrays
        ``eigenvalues``, shape (..., M), and ``eigenvectors``, shape (..., M, M), in
        columns; both complex.

    Raises
    ------
    LinAlgError
        They do not converge, or the matrices are not square.

    Examples
    --------
    >>> import xdev
    >>> xdev.linalg.eig(xdev.asarray([[2.0, 0.0], [0.0, 4.0]])).eigenvalues
    array([2.+0.j, 4.+0.j])
    """
    return dispatch("linalg.eig", x)(x)


@overload
def eigh(x: C128, /) -> Eig[F64, C128]: ...  # type: ignore[overload-overlap]
@overload
def eigh(x: C64, /) -> Eig[F32, C64]: ...
@overload
def eigh(x: Array, /) -> Eig[Array, Array]: ...
def eigh(x: Any, /) -> Any:
    """Eigenvalues and eigenvectors of Hermitian matrices.

    Parameters
    ----------
    x : array
        Shape (..., M, M), floating-point.

    Returns
    -------
    namedtuple of arrays
        ``eigenvalues``, shape (..., M), real, upwards, and ``eigenvectors``, shape
        (..., M, M), in columns.

    Raises
    ------
    LinAlgError
        They do not converge, or the matrices are not square.

    Examples
    --------
    >>> import xdev
    >>> xdev.linalg.eigh(xdev.asarray([[2.0, 0.0], [0.0, 4.0]])).eigenvalues
    array([2., 4.])
    """
    return dispatch("linalg.eigh", x)(x)


@gives_complex
def eigvals(x: Array, /) -> Array:
    """Eigenvalues of square matrices.

    Parameters
    ----------
    x : array
        Shape (..., M, M), floating-point.

    Returns
    -------
    array
        Shape (..., M), complex.

    Raises
    ------
    LinAlgError
        They do not converge, or the matrices are not square.

    Examples
    --------
    >>> import xdev
    >>> xdev.linalg.eigvals(xdev.asarray([[2.0, 0.0], [0.0, 4.0]]))
    array([2.+0.j, 4.+0.j])
    """
    return dispatch("linalg.eigvals", x)(x)


@gives_real
def eigvalsh(x: Array, /) -> Array:
    """Eigenvalues of Hermitian matrices.

    Parameters
    ----------
    x : array
        Shape (..., M, M), floating-point.

    Returns
    -------
    array
        Shape (..., M), real, upwards.

    Raises
    ------
    LinAlgError
        They do not converge, or the matrices are not square.

    Examples
    --------
    >>> import xdev
    >>> xdev.linalg.eigvalsh(xdev.asarray([[2.0, 0.0], [0.0, 4.0]]))
    array([2., 4.])
    """
    return dispatch("linalg.eigvalsh", x)(x)


def qr(x: Array, /, mode: Literal["reduced", "complete"] = "reduced") -> QR[Array]:
    """Orthonormal and upper triangular factors.

    Parameters
    ----------
    x : array
        Shape (..., M, N), floating-point.
    mode : {"reduced", "complete"}
        How many columns of Q: min(M, N) or M.

    Returns
    -------
    namedtuple of arrays
        ``Q`` and ``R`` with ``x = Q R``.

    Raises
    ------
    ValueError
        ``mode`` is another (where the library is NumPy or CuPy).

    Examples
    --------
    >>> import xdev
    >>> abs(xdev.linalg.qr(xdev.asarray([[2.0, 0.0], [0.0, 4.0]])).R)
    array([[2., 0.],
           [0., 4.]])
    """
    return dispatch("linalg.qr", x)(x, mode=mode)


@overload
def svd(x: C128, /, full_matrices: bool = True) -> SVD[C128, F64]: ...  # type: ignore[overload-overlap]
@overload
def svd(x: C64, /, full_matrices: bool = True) -> SVD[C64, F32]: ...
@overload
def svd(x: Array, /, full_matrices: bool = True) -> SVD[Array, Array]: ...
def svd(x: Any, /, full_matrices: bool = True) -> Any:
    """Singular value decomposition.

    Parameters
    ----------
    x : array
        Shape (..., M, N), floating-point.
    full_matrices : bool
        U and Vh are square; else they have min(M, N) columns and rows.

    Returns
    -------
    namedtuple of arrays
        ``U``, ``S`` (downwards) and ``Vh`` with ``x = U diag(S) Vh``.

    Raises
    ------
    LinAlgError
        It does not converge.

    Examples
    --------
    >>> import xdev
    >>> xdev.linalg.svd(xdev.asarray([[2.0, 0.0], [0.0, 4.0]])).S
    array([4., 2.])
    """
    return dispatch("linalg.svd", x)(x, full_matrices=full_matrices)


@gives_real
def svdvals(x: Array, /) -> Array:
    """Singular values, downwards.

    Parameters
    ----------
    x : array
        Shape (..., M, N), floating-point.

    Returns
    -------
    array
        Shape (..., min(M, N)), real.

    Raises
    ------
    LinAlgError
        They do not converge.

    Examples
    --------
    >>> import xdev
    >>> xdev.linalg.svdvals(xdev.asarray([[2.0, 0.0], [0.0, 4.0]]))
    array([4., 2.])
    """
    return dispatch("linalg.svdvals", x)(x)
