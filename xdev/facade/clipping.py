"""``clip`` for NumPy and CuPy: their own promotes, and array_api_compat's writes into
the caller's bounds.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

#: Types of Python's real numbers; bool is none of them.
NUMBERS = frozenset({int, float})
HOST = np.ndarray, np.generic


def clip(x: Any, lower: Any, upper: Any, out: Any = None) -> Any:
    """Limit ``x`` to [lower, upper] in its own data type; NaN stays NaN."""
    numbers = type(lower) in NUMBERS and type(upper) in NUMBERS and lower <= upper
    if numbers and (x.dtype.kind == "f" or _hold(x.dtype, lower, upper)):
        return _limited(x, lower, upper, out)  # they adapt to x; one pass, not two
    xp = namespace_of(x)
    lower = None if lower is None else _within(xp, lower, x.dtype, "ceil")
    upper = None if upper is None else _within(xp, upper, x.dtype, "floor")
    if lower is None:  # and upper, too: a copy, of bools as well
        return xp.minimum(x, x if upper is None else upper, out=out)
    if upper is None:
        return xp.maximum(x, lower, out=out)
    if x.dtype.kind == "b" and xp is np:  # whose clip() has no bools
        return np.minimum(np.maximum(x, lower), upper, out=out)
    return _limited(x, lower, upper, out)


def _limited(x: Any, lower: Any, upper: Any, out: Any) -> Any:
    """Limit an array to bounds of its data type, or numbers that adapt to it."""
    if isinstance(x, HOST):
        return x.clip(lower, upper, out)
    from xdev.facade.cuda_copies import LIMIT  # `import xdev` does not need it

    return LIMIT(x, lower, upper) if out is None else LIMIT(x, lower, upper, out=out)


def _hold(dtype: np.dtype[Any], lower: Any, upper: Any) -> bool:
    """Say whether an integer type has two of Python's integers, in order."""
    if dtype.kind not in "iu" or type(lower) is not int or type(upper) is not int:
        return False
    least, most = ends_of(dtype)
    return least <= lower and upper <= most


def namespace_of(x: Any) -> Any:
    """Return the module of an array or scalar: ``numpy``, or else ``cupy``."""
    if isinstance(x, HOST):
        return np
    from xdev import _optional  # `import xdev` does not need it

    return _optional.cupy()


def _within(xp: Any, bound: Any, dtype: np.dtype[Any], inwards: str) -> Any:
    """Return a bound in a data type, saturated where that is an integer type.

    ``inwards`` is the function, of ``math`` and of ``xp``, that rounds it then.
    """
    kind = type(bound)
    if dtype.kind != "c" and np.iscomplexobj(bound):
        message = f"xdev.clip: a bound is complex, and x is {dtype}: give real numbers"
        raise TypeError(message)
    if dtype.kind not in "iu":
        if kind is float or kind is int:
            return bound
        return dtype.type(bound) if np.isscalar(bound) else bound.astype(dtype)
    least, most = ends_of(dtype)
    if np.isscalar(bound):
        if isinstance(bound, np.generic):
            bound = bound.item()  # float16 would overflow beside the type's ends
        if bound != bound:  # noqa: PLR0124 - NaN
            raise ValueError(
                "xdev.clip: a bound is NaN, which limits no integers: leave it out"
            )
        return dtype.type(getattr(math, inwards)(min(max(bound, least), most)))
    if np.can_cast(bound.dtype, dtype):
        return bound.astype(dtype)
    if bound.dtype.kind == "f":
        free = -math.inf if inwards == "ceil" else math.inf
        bound = xp.where(xp.isnan(bound), free, bound.astype(np.float64))
        bound, top = getattr(xp, inwards)(bound), float(most)
        # Where the type has 64 bits, top is 2^63 or 2^64: one too many.
        inside = xp.clip(bound, least, top if top <= most else math.nextafter(top, 0))
        whole = xp.where(bound >= top, dtype.type(most), inside.astype(dtype))
        return whole.astype(dtype, copy=False)
    first, last = ends_of(bound.dtype)
    low, high = max(least, first), min(most, last)
    return xp.clip(bound, low, high).astype(dtype)


@cache
def ends_of(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the least and the largest integer of a data type."""
    if dtype.kind == "b":
        return 0, 1
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)
