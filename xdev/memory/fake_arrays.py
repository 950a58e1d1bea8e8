"""Fake arrays take their memory from the pools of the fake devices, as CuPy's do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdev.device import Device
from xdev.device.fake import blocks
from xdev.memory import registry

if TYPE_CHECKING:
    from xdev.memory.pools import Block


def serve() -> None:
    """Let fake arrays hold blocks of the pools from now on."""
    blocks.set_allocator(_acquire)


def _acquire(nbytes: int, index: int) -> Block:
    return registry.pool(Device(f"fake:{index}")).acquire(nbytes)
