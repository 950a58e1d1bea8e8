"""Which arguments of a ufunc are arrays on a CUDA device."""

from __future__ import annotations

from typing import Any

import numpy as np

from xdev.ufunc import foreign

NUMBERS = (bool, int, float, complex, np.generic)
ALWAYS: set[type] = set()  # types whose every array is on a CUDA device, once seen


def is_cuda(x: Any) -> bool:
    """Say whether ``x`` is an array on a CUDA device, of any library."""
    cls = type(x)
    if cls in ALWAYS:
        return True
    if cls is np.ndarray or issubclass(cls, NUMBERS):
        return False
    adapter = foreign.of(cls)
    if adapter is not None:
        return adapter.on_cuda(x)
    if not hasattr(cls, "__cuda_array_interface__"):
        return False
    if cls.__module__.partition(".")[0] in {"cupy", "numba"}:
        ALWAYS.add(cls)
        return True
    return hasattr(x, "__cuda_array_interface__")
