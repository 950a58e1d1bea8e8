"""Fake arrays take their memory from the pools of the fake devices, as CuPy's do."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev._freed import EMPTY
from xdev.device import Device, fake
from xdev.errors import InUseError
from xdev.memory import registry

if TYPE_CHECKING:
    from xdev.memory.blocks import Chunk
    from xdev.memory.pools import Block


def serve() -> None:
    """Let fake arrays hold blocks of the pools from now on."""
    fake.set_allocator(_acquire)


def _acquire(nbytes: int, index: int) -> Block:
    return registry.pool(Device(f"fake:{index}")).acquire(nbytes)


def is_fake(x: Any) -> bool:
    """Say whether ``x`` is an array on a fake device."""
    arrays = sys.modules.get("xdev.device.fake_arrays")  # else there is none
    return arrays is not None and type(x) is arrays.FakeArray


def chunk_of(x: Any) -> Chunk | None:
    """Return the chunk that a fake array alone uses; None if it has no memory.

    Raises
    ------
    InUseError
        It is a view, or a view of it is alive.
    """
    from xdev.device.fake_arrays import values_of

    held = [values_of(x)]
    if held[0].base is not None:
        message = "this array is a view: free the array that it was made from"
        raise InUseError(message)
    count = _references(held) - ALONE - 1  # the array itself has one
    if count > 0:
        message = f"{count} view(s) still use this array's memory: drop them first"
        raise InUseError(message)
    block: Any = fake.block_of(held[0])
    chunk: Chunk | None = getattr(block, "chunk", None)
    return chunk


def _references(held: list[Any]) -> int:
    return sys.getrefcount(held[0])


ALONE = _references([object()])  # an object that nothing but the list refers to


def strip(x: Any) -> None:
    """Make a fake array one without bytes, in place; its block goes back."""
    from xdev.device.fake_arrays import FreedArray

    x._values = np.empty(x.shape, EMPTY)  # noqa: SLF001 - keeps the shape
    x.__class__ = FreedArray
