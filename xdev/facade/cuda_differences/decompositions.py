"""Factors, eigenvalues and singular values, as the standard has them.

These know CuPy's functions: to look for one takes a frame of Python's, which costs some
hundred nanoseconds in a call that is not in a tight loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.facade.cpu import QR_MODES
from xdev.facade.results import QR, SVD, Eig, Slogdet
from xdev.ufunc.complaints import no_mode

if TYPE_CHECKING:
    from collections.abc import Callable

#: Gives results their names, in no frame of Python's.
_named: Any = tuple.__new__


def decompositions(linalg: Any) -> dict[str, Callable[..., Any]]:
    """Return them by name, made of those of ``cupy.linalg``."""
    lower, both, hermitian, values = (
        *(linalg.cholesky, linalg.eig),
        *(linalg.eigh, linalg.eigvals),
    )
    reflected, determinant, singular = linalg.qr, linalg.slogdet, linalg.svd

    def cholesky(x: Any, *, upper: bool = False) -> Any:
        """Return the lower triangular factor, or its conjugate transpose."""
        return lower(x).mT.conj() if upper else lower(x)

    def eig(x: Any) -> Any:
        """Return eigenvalues and eigenvectors, complex ones."""
        values, vectors = both(x)
        return _named(Eig, (_complex(values), _complex(vectors)))

    def eigh(x: Any) -> Any:
        """Return eigenvalues and eigenvectors of Hermitian matrices."""
        return _named(Eig, hermitian(x))

    def eigvals(x: Any) -> Any:
        """Return eigenvalues, complex ones."""
        return _complex(values(x))

    def qr(x: Any, *, mode: str = "reduced") -> Any:
        """Return orthonormal and upper triangular factors."""
        if mode not in QR_MODES:
            raise no_mode(mode)
        return _named(QR, reflected(x, mode))

    def slogdet(x: Any) -> Any:
        """Return the sign and the logarithm of the determinant."""
        return _named(Slogdet, determinant(x))

    def svd(x: Any, *, full_matrices: bool = True) -> Any:
        """Return the singular value decomposition."""
        return _named(SVD, singular(x, full_matrices))

    made = cholesky, eig, eigh, eigvals, qr, slogdet, svd
    return {f"linalg.{each.__name__}": each for each in made}


def _complex(x: Any) -> Any:
    kind = x.dtype
    return x if kind.kind == "c" else x.astype(np.result_type(kind, np.complex64))
