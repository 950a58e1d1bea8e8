"""Words of memory, and calls of C functions.

They are done here by ctypes, which is the reference; compiled code has its
own (:mod:`~xdev.memory.native.intrinsics`), under the same names.
"""

from __future__ import annotations

import ctypes
from typing import Any

WORD = 8  # [B]
_FUNCTION = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 5)


def load(address: int) -> int:
    """Return the word at an address."""
    return ctypes.c_int64.from_address(address).value


def exchange(address: int, value: int) -> int:
    """Store a word and return the one that was there, in one step."""
    place = ctypes.c_int64.from_address(address)
    before, place.value = place.value, value
    return before


def call(function: int, first: int, second: int, third: int, fourth: int) -> int:
    """Call a C function; it may ignore its last arguments."""
    return int(_FUNCTION(function)(first, second, third, fourth))


def view(address: int, count: int) -> Any:
    """Return ``count`` words at an address as an array."""
    return (ctypes.c_int64 * count).from_address(address)
