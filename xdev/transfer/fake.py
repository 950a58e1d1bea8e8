"""Copies into, out of and between the fake devices: done when the call returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional
from xdev.device.fake import make_room
from xdev.device.fake_arrays import FakeArray, values_of
from xdev.transfer.copies import copy_on_host, host_values, order_of
from xdev.transfer.cuda import check

if TYPE_CHECKING:
    from xdev.device import Device
    from xdev.transfer.copies import Way

__all__ = ["adopt", "check", "copy"]  # a dtype is CUDA's or none


def adopt(x: Any, target: Device) -> Any:  # noqa: ARG001 - it is there already
    """Return a fake array itself; others that count as there must be copied."""
    return x if isinstance(x, FakeArray) else None


def copy(x: Any, source: Device, target: Device, way: Way) -> Any:
    """Copy values, on a fake device in the machine's byte order; nothing is queued."""
    if source.type == "cpu":
        values = host_values(x)
    elif isinstance(x, FakeArray):
        values = values_of(x)
    else:  # explicit, so it may go where implicit may not
        host = x.to_device(_optional.array_api_strict().Device("CPU_DEVICE"))
        values = np.asarray(host)
    if target.type == "cpu":
        return copy_on_host(values, way.out)
    if way.out is not None:
        np.copyto(values_of(way.out), values, casting="same_kind")
        return way.out
    make_room(values.nbytes, target.index)
    native = values.dtype.newbyteorder("=")
    copied = np.array(values, native, order=order_of(values), copy=True)
    return FakeArray(copied, target)
