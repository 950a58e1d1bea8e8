"""The decompositions of matrices, of ``xdev.linalg``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from xdev.facade.dispatch import of_one

if TYPE_CHECKING:
    from typing import Never

    from xdev.facade.backends import QR, SVD, Array, Eig


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
    return of_one("linalg.cholesky", x, more)(x, upper=upper)


def eig(x: Array, /) -> Eig[Array]:
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
    return of_one("linalg.eig", x)(x)


def eigh(x: Array, /) -> Eig[Array]:
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
    return of_one("linalg.eigh", x)(x)


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
    return of_one("linalg.eigvals", x)(x)


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
    return of_one("linalg.eigvalsh", x)(x)


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
    return of_one("linalg.qr", x)(x, mode=mode)


def svd(x: Array, /, full_matrices: bool = True) -> SVD[Array]:
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
    return of_one("linalg.svd", x)(x, full_matrices=full_matrices)


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
    return of_one("linalg.svdvals", x)(x)
