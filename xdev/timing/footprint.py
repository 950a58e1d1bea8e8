"""What one call takes from xdev's pools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdev import memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.device import Device


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one call took from the pools of its device, as their ledger has it.

    Parameters
    ----------
    peak : int
        The most bytes in use during the call over those in use before it [B].
    allocations : int
        Blocks it took.
    driver_allocations : int
        Times that a pool had to ask the driver, or the operating system, for more.
    """

    peak: int
    allocations: int
    driver_allocations: int


def footprint(call: Callable[[], object], device: Device) -> Footprint:
    """Call once, and return what that took from a device's pools."""
    allocated, before = memory.allocated(device), memory.stats(device)
    with memory.peak(device) as highest:
        call()
    after = memory.stats(device)
    taken, asked = (
        after[key] - before[key]
        for key in ("allocation.all.allocated", "num_device_alloc")
    )
    return Footprint(max(0, highest.nbytes - allocated), taken, asked)
