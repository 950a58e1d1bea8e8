"""What fake arrays take of their device's memory, in the accounts of its pool.

The bytes themselves are NumPy's own; a block of the same size is held as long as they
live, so that limits, reports and leaks are as on CUDA.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

LARGE = 16 << 20  # bytes; of less the host has room while they are refused

_allocators: list[Callable[[int, int], object]] = []  # the last one serves
# By identity of the array that owns the bytes, as long as it lives.
_held: dict[int, tuple[weakref.ref[Any], object]] = {}


def set_allocator(allocator: Callable[[int, int], object]) -> None:
    """Let ``allocator(nbytes, index)`` give the blocks; dropping one releases it."""
    _allocators[:] = [allocator]


def make_room(nbytes: int, index: int) -> None:
    """See to it that fake device ``index`` has room, before NumPy makes the bytes.

    Raises
    ------
    OutOfMemoryError
        The device's pool has none.
    """
    if nbytes >= LARGE and _allocators:
        _allocators[-1](nbytes, index)  # it goes back at once, for whoever is next


def settle(values: np.ndarray[Any, Any], index: int) -> np.ndarray[Any, Any]:
    """Count an array's memory as fake device ``index``'s; it is copied if not NumPy's.

    Raises
    ------
    OutOfMemoryError
        The device's pool has no room for it.
    """
    owner = _owner(values)
    if owner.base is not None:  # a pool's memory of the host, or a foreign buffer
        values = owner = values.copy(order="K")
    key = id(owner)
    if key not in _held and owner.nbytes and _allocators:
        block = _allocators[-1](owner.nbytes, index)
        _held[key] = weakref.ref(owner, lambda _: _held.pop(key, None)), block
    return values


def block_of(owner: np.ndarray[Any, Any]) -> object:
    """Return the block that is held for an array of its own bytes, None without one."""
    _, block = _held.get(id(owner), (None, None))
    return block


def _owner(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    while isinstance(values.base, np.ndarray):
        values = values.base
    return values
