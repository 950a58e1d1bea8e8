"""Result dtypes: the inputs' result type, save where the function's kind is another."""

from __future__ import annotations

from typing import Any

import numpy as np

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


def _dtype(found: np.dtype[Any], working: np.dtype[Any]) -> np.dtype[Any]:
    """Return one result's dtype; the table is found kind by working kind."""
    if found == BOOL:
        return BOOL
    if found.kind == "c":
        return np.result_type(working, 1j)
    if working.kind == "c":
        return real(working)
    if found.kind == "f" and working.kind not in "fV":  # true division, math.sin
        return found
    return working


def real(working: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the real part of values of an inexact dtype."""
    dtype: np.dtype[Any] = working.type(0).real.dtype
    return dtype
