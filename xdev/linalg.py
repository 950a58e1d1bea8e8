# ruff: noqa: F403 - each topic's ``__all__`` says what is public
"""The standard's linear algebra extension, ``xdev.linalg``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdev.facade import linear_algebra, matrices
from xdev.facade.dispatch import of_one, of_pair
from xdev.facade.linear_algebra import *
from xdev.facade.matrices import *
from xdev.ufunc.complaints import misplaced

if TYPE_CHECKING:
    from typing import Never

    from xdev.facade.protocols import Array

__all__ = [
    "cross", "diagonal", "inv", "matrix_power", "outer", "pinv", "solve",
]  # fmt: skip
__all__ += linear_algebra.__all__
__all__ += matrices.__all__


def __dir__() -> list[str]:
    """List the standard's names: what Tab shows."""
    return __all__


if not TYPE_CHECKING:  # type checkers know what is there

    def __getattr__(name: str) -> Any:
        """Say what does the same as a name of NumPy's."""
        from xdev._numpy_names import missing

        raise missing(__name__, name)


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
    if more:
        raise misplaced(cross, more)
    return of_pair("linalg.cross", x1, x2)(x1, x2, axis=axis)


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

    Examples
    --------
    >>> import xdev
    >>> xdev.linalg.diagonal(xdev.asarray([[2.0, 0.0], [0.0, 4.0]]))
    array([2., 4.])
    """
    return of_one("linalg.diagonal", x, more)(x, offset=offset)


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
    return of_one("linalg.inv", x)(x)


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
    return of_one("linalg.matrix_power", x)(x, n)


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
    return of_pair("linalg.outer", x1, x2)(x1, x2)


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
    return of_one("linalg.pinv", x)(x, rtol=rtol)


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
    return of_pair("linalg.solve", x1, x2)(x1, x2)
