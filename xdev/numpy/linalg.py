"""NumPy's ``numpy.linalg``, on the arrays of every library: ``xdev.numpy.linalg``."""

from __future__ import annotations

from typing import Any

import numpy as np

from xdev.numpy.names import dispatched

__all__ = [name for name in np.linalg.__all__ if name != "test"]


def __getattr__(name: str) -> Any:
    globals()[name] = function = dispatched("linalg.", name)
    return function


def __dir__() -> list[str]:
    return __all__
