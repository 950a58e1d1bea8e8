"""Where random values are made: one home a device."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Protocol

from xdev.errors import DeviceUnavailableError

if TYPE_CHECKING:
    import numpy as np

    from xdev.compile.indexed import Indexed
    from xdev.device import Device


HOMES = {"cpu": "CpuHome", "fake": "FakeHome", "cuda": "CudaHome"}


class Home(Protocol):
    """Memory of one device, and what fills it."""

    def make(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """Return new memory."""

    def fill(self, kernel: Indexed, memory: Any, values: tuple[Any, ...]) -> None:
        """Write a call's values, element by element in C order."""

    def memory(self, out: Any) -> Any:
        """Return the memory of the user's ``out``.

        Raises
        ------
        ValueError, TypeError
            It cannot be written, or is no array.
        """

    def array(self, memory: Any) -> Any:
        """Return memory as the user gets it."""


def home(device: Device) -> Home:
    """Return a device's home.

    Raises
    ------
    DeviceUnavailableError
        The device cannot be used, or makes no random values.
    """
    device.require()
    name = HOMES.get(device.type)
    if name is None:
        message = f"{device} makes no random values: use one of {', '.join(HOMES)}"
        raise DeviceUnavailableError(message)
    room = importlib.import_module(f"xdev.random.{device.type}")
    made: Home = getattr(room, name)(device)
    return made
