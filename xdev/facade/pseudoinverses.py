"""``linalg.pinv`` for NumPy and CuPy, whose own have other defaults.

In one pass over what they compute in several: the first singular value is the largest.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xdev.facade.clipping import NUMBERS, namespace_of
from xdev.ufunc.complaints import no_matrix

EPS = {  # numpy.finfo takes long to load
    np.dtype(np.float32): 2.0**-23,
    np.dtype(np.float64): 2.0**-52,
}


def pinv(x: Any, *, rtol: Any = None) -> Any:
    """Return the Moore-Penrose inverse of matrices.

    Parameters
    ----------
    x : array, shape (..., M, N)
        NumPy's or CuPy's.
    rtol : number or array, shape (...)
        Singular values up to so much of the largest count as 0; None: max(M, N) eps.

    Raises
    ------
    LinAlgError
        ``x`` has fewer than two axes, or the singular values do not converge.
    """
    if x.ndim < 2:  # noqa: PLR2004 - a matrix's
        raise no_matrix("linalg.pinv", x)
    xp = namespace_of(x)
    u, s, vh = xp.linalg.svd(x.conj(), full_matrices=False)
    if rtol is None:
        rtol = max(x.shape[-2:]) * EPS[s.dtype]
    elif type(rtol) not in NUMBERS:
        rtol = xp.asarray(rtol)[..., None]
    s[s <= s[..., :1] * rtol] = math.inf
    return xp.matmul(vh.mT, xp.multiply((1 / s)[..., None], u.mT))
