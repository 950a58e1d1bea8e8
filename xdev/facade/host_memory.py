"""The host pool, as the facade's functions on NumPy arrays use it."""

from __future__ import annotations

import importlib
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev._tracking import TRACKING
from xdev.facade.dtype_names import CLASSES, NAMED

if TYPE_CHECKING:
    from collections.abc import Callable

#: Arrays that NumPy made itself are copied into the pool from this size [B].
POOLED_FROM = 64 * 1024


#: Shapes of fewer elements, of the standard's data types, are smaller than that.
SMALL = POOLED_FROM // 16


@cache
def host_array() -> Callable[..., Any]:
    """Return the function that makes uninitialised arrays in the pool."""
    # At the first array, not at import: `import xdev` loads NumPy only.
    found: Callable[..., Any] = importlib.import_module("xdev.memory").host_array
    return found


def is_small(shape: Any, dtype: Any) -> bool:
    """Say whether NumPy's memory is right for an array: small, and nobody tracks.

    Of what is no shape, or no data type of the standard, it may say either.
    """
    if TRACKING.off and (
        dtype is None
        or (dtype in NAMED if type(dtype) is type else type(dtype) in CLASSES)
    ):
        if type(shape) is int:
            return shape < SMALL
        if type(shape) is tuple:
            try:
                return prod(shape) < SMALL
            except (TypeError, ValueError):  # its members are no numbers
                return False
    return False


def pooled(x: Any) -> Any:
    """Move what NumPy made into the pool, where it is large enough to count."""
    if x.nbytes < POOLED_FROM:
        return x
    out = host_array()(x.shape, x.dtype)
    np.copyto(out, x)
    return out
