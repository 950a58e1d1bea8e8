"""The host pool, as the facade's functions on NumPy arrays use it."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

#: Arrays that NumPy made itself are copied into the pool from this size [B].
POOLED_FROM = 64 * 1024


@cache
def host_array() -> Callable[..., Any]:
    """Return the function that makes uninitialised arrays in the pool."""
    # At the first array, not at import: `import xdev` loads NumPy only.
    found: Callable[..., Any] = importlib.import_module("xdev.memory").host_array
    return found


def pooled(x: Any) -> Any:
    """Move what NumPy made into the pool, where it is large enough to count."""
    if x.nbytes < POOLED_FROM:
        return x
    out = host_array()(x.shape, x.dtype)
    np.copyto(out, x)
    return out
