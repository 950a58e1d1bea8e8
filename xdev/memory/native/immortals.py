"""What C code points to, kept when everything else of Python is taken down."""

from __future__ import annotations

import ctypes
from typing import TypeVar

T = TypeVar("T")


def immortal(kept: T) -> T:
    """Keep an object until the process is gone, and return it.

    A list in a module would not do: the interpreter empties its modules at the end,
    and arrays that are still alive then are given back after that.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    return kept
