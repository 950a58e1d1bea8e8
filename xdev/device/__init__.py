"""Devices: names, the default, streams, and the registry of backends."""

from __future__ import annotations

from xdev.device.choice import (
    as_device,
    can_access_peer,
    default_device,
    device_of,
    devices,
    set_default_device,
    synchronize,
    use_device,
)
from xdev.device.identity import Device
from xdev.device.streams import Event, Stream, current_stream

__all__ = [
    "Device",
    "Event",
    "Stream",
    "as_device",
    "can_access_peer",
    "current_stream",
    "default_device",
    "device_of",
    "devices",
    "set_default_device",
    "synchronize",
    "use_device",
]
