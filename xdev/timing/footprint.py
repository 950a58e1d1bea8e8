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
    """What one call took from the pools of its device.

    Parameters
    ----------
    peak : int
        The most bytes in use during the call over those in use before it [B].
    allocations : int
        Blocks it took.
    """

    peak: int
    allocations: int


def footprint(call: Callable[[], object], device: Device) -> Footprint:
    """Call once, and return what that took from a device's pools."""
    before = memory.allocated(device)
    count = memory.stats(device)["allocation.all.allocated"]
    with memory.peak(device) as highest:
        call()
    taken = memory.stats(device)["allocation.all.allocated"] - count
    return Footprint(max(0, highest.nbytes - before), taken)
