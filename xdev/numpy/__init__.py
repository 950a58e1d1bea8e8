"""NumPy's names, on the arrays of every device: ``import xdev.numpy as np``.

A NumPy program runs on the CPU or on CUDA after that one change. Functions go to the
library of the arrays that they are given; what makes arrays makes them on the default
device; data types, constants and classes are NumPy's. What CuPy lacks is refused on
CUDA, with the copy that would do.

Examples
--------
>>> import xdev.numpy as np
>>> x = np.linspace(0, 1, 5)
>>> np.hstack([x, x[::-1]]).shape, np.linalg.norm(x) > 1, np.mgrid[0:2, 0:3].shape
((10,), np.True_, (2, 2, 3))
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xdev.numpy import (
    fft as fft,
    linalg as linalg,
    random as random,
    testing as testing,
)
from xdev.numpy.names import LEFT_OUT, dispatched

__all__ = [name for name in np.__all__ if name not in LEFT_OUT]


def __getattr__(name: str) -> Any:
    if name.startswith("__") and name != "__version__":
        raise AttributeError(name)
    globals()[name] = value = dispatched("", name)
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, "fft", "linalg", "random", "testing"})
