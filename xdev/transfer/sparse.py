"""Sparse matrices and arrays: SciPy's on the host, CuPy's of the same names on CUDA.

Loaded when the first one is met, so that nobody else loads SciPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional
from xdev.device import device_of, registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.device import Device

    Move = Callable[[Any], Any]
    Rule = Callable[[Move, Any, bool], Any]

FORMATS = ("coo", "csr", "csc", "dia")  # what both libraries have
CUDA_DTYPES = "?fdFD"  # what CuPy's can hold, by NumPy's characters


def rule_of(kind: Any) -> Rule | None:
    """Return how a type of the two libraries is rebuilt; None: it is not sparse."""
    return _move if hasattr(kind, "tocsr") else None


def _move(move: Move, x: Any, anew: bool) -> Any:
    """Move the parts, and rebuild in the library of where they went."""
    if x.format not in FORMATS:
        return _at_home(move, x, anew)
    parts = _parts(x)
    moved = [move(part) for part in parts]
    if not anew and all(new is part for new, part in zip(moved, parts, strict=True)):
        return x
    data, *indices = moved
    device = device_of(data)
    make = _class(x, data, device)
    with registry.backend(device.type).use(device.index):
        if x.format != "coo":
            return make((data, *indices), shape=x.shape)
        made = make((data, tuple(indices)), shape=x.shape)
    made.has_canonical_format = x.has_canonical_format
    return made


def _parts(x: Any) -> tuple[Any, ...]:
    """Return a matrix's values, then its index arrays in the constructors' order."""
    if x.format == "coo":
        return x.data, *x.coords
    if x.format == "dia":
        return x.data, x.offsets
    return x.data, x.indices, x.indptr


def _class(x: Any, data: Any, device: Device) -> Any:
    """Return the class for values that were moved: a matrix stays one, an array too."""
    kind = "matrix" if _is_matrix(type(x)) else "array"
    if device.type == "cpu":
        return getattr(_optional.scipy_sparse(), f"{x.format}_{kind}")
    if device.type != "cuda":
        message = (
            f"there is no sparse {kind} on {device}: move its parts, such as .data, "
            f"or x.toarray()"
        )
        raise TypeError(message)
    if data.dtype.char not in CUDA_DTYPES:
        message = (
            f"CUDA has no sparse {kind} of dtype {data.dtype}: convert it first, as in "
            f'x.astype("float64")'
        )
        raise TypeError(message)
    return getattr(_optional.cupy_sparse(), f"{x.format}_{kind}")


def _is_matrix(kind: type) -> bool:
    return any(base.__name__ == "spmatrix" for base in kind.__mro__)


def _at_home(move: Move, x: Any, anew: bool) -> Any:
    """Refuse a format that CuPy does not have, unless it stays on the host."""
    probe = np.empty(0)  # such a matrix may have no arrays to ask about
    if isinstance(move(probe), np.ndarray):
        return x.copy() if anew else x
    message = (
        f"{type(x).__name__} cannot be moved: adapt moves COO, CSR, CSC and DIA, so "
        f"convert it first, as in x.tocsr()"
    )
    raise TypeError(message)
