"""Devices: names, the default, streams, and the registry of backends."""

from __future__ import annotations

from xdev.device.choice import (
    Device,
    as_device as as_device,
    default_device,
    device_of,
    devices,
    set_default_device,
    use_device,
)
from xdev.device.streams import (
    Event,
    Stream,
    can_access_peer,
    current_stream,
    synchronize,
)

__all__ = [
    "Device", "Event", "Stream", "can_access_peer", "current_stream", "default_device",
    "device_of", "devices", "set_default_device", "synchronize", "use_device",
]  # fmt: skip
__dir__ = __all__.copy  # what Tab shows
