"""Random values on the fake devices, whose memory is the host's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from xdev.device.fake import make_room
from xdev.device.fake_arrays import FakeArray, values_of
from xdev.memory.arrays import size_of
from xdev.random.cpu import CpuHome

if TYPE_CHECKING:
    import numpy as np

    from xdev.compile.indexed import Indexed
    from xdev.device import Device


@final
class FakeHome:
    """A fake device, as :class:`xdev.random.homes.Home` says.

    Parameters
    ----------
    device : Device
        Which one.
    """

    def __init__(self, device: Device) -> None:
        self._device, self._host = device, CpuHome(device)

    def make(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """Return new memory."""
        make_room(size_of(shape, dtype), self._device.index)
        return self._host.make(shape, dtype)

    def fill(self, kernel: Indexed, memory: Any, values: tuple[Any, ...]) -> None:
        """Write a call's values, element by element in C order."""
        self._host.fill(kernel, memory, values)

    def memory(self, out: Any) -> Any:
        """Return the memory of the user's ``out``."""
        return self._host.memory(values_of(out))

    def array(self, memory: Any) -> Any:
        """Return memory as the user gets it."""
        return FakeArray(memory, self._device)
