"""Stand-ins for tests: memory that is only numbers, a device that is only order.

:class:`FakeSource` counts bytes. :class:`SimulatedDevice` has streams, events and a
virtual clock, and finds accesses to memory that nothing orders;
:class:`SimulatedSource` is its memory, for a :class:`xdev.memory.Pool`.
"""

from __future__ import annotations

from xdev.memory.sources.fake import FakeSource
from xdev.testing.hazards import Hazard, Tenant
from xdev.testing.simulated_memory import SimulatedSource
from xdev.testing.simulation import SimulatedDevice, SimulatedEvent, SimulatedStream

__all__ = [
    "FakeSource",
    "Hazard",
    "SimulatedDevice",
    "SimulatedEvent",
    "SimulatedSource",
    "SimulatedStream",
    "Tenant",
]
