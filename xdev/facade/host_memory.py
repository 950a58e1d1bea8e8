"""The host pool, as the facade's functions on NumPy arrays use it."""

from __future__ import annotations

import importlib
import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.facade.dtype_names import CLASSES, NAMED

if TYPE_CHECKING:
    from collections.abc import Callable

#: Arrays that NumPy made itself are copied into the pool from this size [B].
POOLED_FROM = 64 * 1024


#: Shapes of fewer elements, of the standard's data types, are smaller than that.
SMALL = POOLED_FROM // 16


class Tracking:
    """``xdev.memory``'s module of that name, until the first array loads it."""

    off = False


tracking: Any = Tracking


@cache
def host_array() -> Callable[..., Any]:
    """Return the function that makes uninitialised arrays in the pool."""
    # At the first array, not at import: `import xdev` loads NumPy only.
    global tracking  # noqa: PLW0603 - once a process
    found: Callable[..., Any] = importlib.import_module("xdev.memory").host_array
    tracking = importlib.import_module("xdev.memory.records.tracking")
    return found


def is_small(shape: Any, dtype: Any) -> bool:
    """Say whether NumPy's memory is right for an array: small, and nobody tracks.

    Of what is no shape, or no data type of the standard, it may say either.
    """
    if tracking.off and (
        dtype is None
        or (dtype in NAMED if type(dtype) is type else type(dtype) in CLASSES)
    ):
        if type(shape) is int:
            return shape < SMALL
        if type(shape) is tuple:
            try:
                return math.prod(shape) < SMALL
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
