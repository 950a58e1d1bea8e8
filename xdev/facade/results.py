"""What functions with several results return, as type checkers see it.

At run time it is a namedtuple of the library's own, whose fields have the same names.
Where the library returns a plain tuple, it is one of these classes.
"""

from __future__ import annotations

from typing import Generic, NamedTuple

from xdev.facade.protocols import Array


class UniqueAll(NamedTuple, Generic[Array]):
    """Of ``unique_all``."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple, Generic[Array]):
    """Of ``unique_counts``."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple, Generic[Array]):
    """Of ``unique_inverse``."""

    values: Array
    inverse_indices: Array


class Eig(NamedTuple, Generic[Array]):
    """Of ``linalg.eig`` and ``linalg.eigh``."""

    eigenvalues: Array
    eigenvectors: Array


class QR(NamedTuple, Generic[Array]):
    """Of ``linalg.qr``."""

    Q: Array
    R: Array


class Slogdet(NamedTuple, Generic[Array]):
    """Of ``linalg.slogdet``."""

    sign: Array
    logabsdet: Array


class SVD(NamedTuple, Generic[Array]):
    """Of ``linalg.svd``."""

    U: Array
    S: Array
    Vh: Array
