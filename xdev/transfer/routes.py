"""The seam of the transfers: what the module of each type of device does.

``cpu.py``, ``cuda.py`` and ``fake.py`` are one :class:`Route` each; to add a type is to
add a module of its name.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from xdev.device import Device, Stream


#: What downloads an array of a type into a new one in short, or returns None. A route
#: adds its own once its device is in use.
short_ways: dict[type, Callable[[Any], Any]] = {}
# In a child the long way refuses: it asks whether the device can be used.
os.register_at_fork(after_in_child=short_ways.clear)


class Route(Protocol):
    """Copies of one type of device. What is passed was checked and announced."""

    def check(self, dtype: np.dtype[Any], target: Device, /) -> None:
        """Raise TypeError for a dtype that a device does not have."""

    def adopt(self, x: Any, target: Device, /) -> Any:
        """Return the same memory as the usual array of a device; None: it cannot be.

        ``x`` is on that device.
        """

    def upload(
        self,
        values: np.ndarray[Any, Any],
        target: Device,
        stream: Stream | None,
        non_blocking: bool,
        out: Any,
        /,
    ) -> Any:
        """Copy a NumPy array to a device; return ``out`` or, for None, a new array."""

    def download(
        self,
        x: Any,
        source: Device,
        stream: Stream | None,
        non_blocking: bool,
        out: Any,
        /,
    ) -> Any:
        """Copy an array of a device into ``out`` or a new NumPy array."""

    def copy(
        self,
        x: Any,
        source: Device,
        target: Device,
        stream: Stream | None,
        non_blocking: bool,
        out: Any,
        /,
    ) -> Any:
        """Copy an array between two devices of this type, or on one."""


def route(device: Device) -> Route:
    """Return the route of a device; its module loads at the first use."""
    return _module(device.type)


@cache
def _module(type_: str) -> Route:
    return cast("Route", import_module(f"xdev.transfer.{type_}"))
