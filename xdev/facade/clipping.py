"""``clip`` for NumPy and CuPy: their own promotes, and array_api_compat's writes into
the caller's bounds.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np


def clip(xp: Any, x: Any, lower: Any, upper: Any, out: Any = None) -> Any:
    """Limit ``x`` to [lower, upper] in its own data type; NaN stays NaN.

    Parameters
    ----------
    xp : module
        ``numpy`` or ``cupy``.
    x : array
        Left as it is.
    lower, upper : array, number or None
        Cast to ``x``'s data type; integers beyond its range mean its ends.
    out : array, optional
        Where to write.
    """
    bounds = [
        (limit, _within(xp, bound, x.dtype))
        for limit, bound in ((xp.maximum, lower), (xp.minimum, upper))
        if bound is not None
    ]
    if not bounds:
        return xp.positive(x, out=out) if x.dtype.kind != "b" else xp.array(x)
    result = x
    for limit, bound in bounds[:-1]:
        result = limit(result, bound)
    limit, bound = bounds[-1]
    return limit(result, bound, out=out)


def _within(xp: Any, bound: Any, dtype: np.dtype[Any]) -> Any:
    """Return a bound in a data type, saturated where that is an integer type."""
    kind = type(bound)
    if dtype.kind not in "iu":
        if kind is float or kind is int:
            return bound  # it adapts to the array
        return dtype.type(bound) if np.isscalar(bound) else bound.astype(dtype)
    least, most = _ends(dtype)
    if kind is int or kind is float or np.isscalar(bound):
        return dtype.type(min(max(bound, least), most))
    if np.can_cast(bound.dtype, dtype):
        return bound.astype(dtype)
    given = (least, most) if bound.dtype.kind == "f" else _ends(bound.dtype)
    low, high = max(least, given[0]), min(most, given[1])
    inside = xp.where(bound < low, low, xp.where(bound > high, high, bound))
    return inside.astype(dtype)


@cache
def _ends(dtype: np.dtype[Any]) -> tuple[int, int]:
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)
