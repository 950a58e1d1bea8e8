"""Stand-ins for tests: fake devices, memory that is numbers, a device that is order.

:class:`FakeArray` is an array on a fake device, as strict as CuPy's are.
:class:`FakeSource` counts bytes. :class:`SimulatedDevice` has streams, events and a
virtual clock, and finds accesses to memory that nothing orders;
:class:`SimulatedSource` is its memory, for a :class:`xdev.memory.Pool`.

:func:`assert_allclose` and :func:`assert_array_equal` compare arrays on any devices.

The pytest plug-in is :mod:`xdev.testing.plugin`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdev.device.fake_arrays import FakeArray
from xdev.memory.sources.fake import FakeSource
from xdev.testing.assertions import assert_allclose, assert_array_equal
from xdev.testing.hazards import Hazard, Tenant
from xdev.testing.simulated_memory import SimulatedSource
from xdev.testing.simulation import SimulatedDevice, SimulatedEvent, SimulatedStream

__all__ = [
    "FakeArray",
    "FakeSource",
    "Hazard",
    "SimulatedDevice",
    "SimulatedEvent",
    "SimulatedSource",
    "SimulatedStream",
    "Tenant",
    "assert_allclose",
    "assert_array_equal",
]

if not TYPE_CHECKING:  # type checkers know what is there

    def __getattr__(name: str) -> Any:
        """Say what does the same as a name of NumPy's."""
        from xdev._numpy_names import missing

        raise missing(__name__, name)
