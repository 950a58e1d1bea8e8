"""Result dtypes: the inputs' result type, save where the function's kind is another.

Python numbers are int64, float64 and complex128; what is cast inside stays so wide.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xdev.compile.halves import is_half

Dtypes = tuple[np.dtype[Any], ...]
BOOL = np.dtype(np.bool_)


def dtypes(found: Dtypes, working: np.dtype[Any]) -> Dtypes:
    """Return the dtypes of a function's results.

    Parameters
    ----------
    found : tuple of numpy.dtype
        What the compiler infers, after its own promotions (int8 + int8 is int64).
    working : numpy.dtype
        The inputs' result type, its literals counted as NEP 50 does.

    Examples
    --------
    >>> dtypes((np.dtype("float64"), np.dtype("bool")), np.dtype("float32"))
    (dtype('float32'), dtype('bool'))
    """
    return tuple(_dtype(one, working) for one in found)


def known(kind: np.dtype[Any], working: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of a result that NumPy gives a dtype.

    It is the inputs' result type, unless a cast inside gives what that does not have.

    Examples
    --------
    >>> known(np.dtype("int64"), np.dtype("uint8"))
    dtype('int64')
    >>> known(np.dtype("uint8"), np.dtype("int32"))
    dtype('int32')
    """
    dtype = _dtype(kind, working)
    if is_half(dtype):  # computed in float32
        return dtype if kind == np.float32 else kind
    return dtype if np.can_cast(kind, dtype) else kind


def _dtype(found: np.dtype[Any], working: np.dtype[Any]) -> np.dtype[Any]:
    """Return one result's dtype; the table is found kind by working kind."""
    if found == BOOL:
        return BOOL
    if found.kind == "c":
        return np.result_type(working, 1j)
    if working.kind == "c" and found.kind == "f":
        return real(working)
    if found.kind == "f" and working.kind not in "fV":  # true division, math.sin
        return found
    if found.kind in "iu" and working.kind not in "iub":  # counts, int(x)
        return found
    return working


def arrays(result: Any) -> Any:
    """Return what ``out=...`` asks for: 0-d arrays in the place of NumPy's scalars."""
    if isinstance(result, tuple):
        return tuple(map(arrays, result))
    return np.asarray(result) if isinstance(result, np.generic) else result


def real(working: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the real part of values of an inexact dtype."""
    dtype: np.dtype[Any] = working.type(0).real.dtype
    return dtype
