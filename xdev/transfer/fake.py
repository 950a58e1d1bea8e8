"""Copies into, out of and between the fake devices: done when the call returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional
from xdev.device.fake import make_room
from xdev.device.fake_arrays import FakeArray, values_of
from xdev.transfer import cpu
from xdev.transfer.cuda import check

if TYPE_CHECKING:
    from xdev.device import Device, Stream

__all__ = ["adopt", "check", "copy", "download", "upload"]  # a dtype is CUDA's or none


def adopt(x: Any, target: Device) -> Any:  # noqa: ARG001 - it is there already
    """Return a fake array itself; others that count as there must be copied."""
    return x if isinstance(x, FakeArray) else None


def upload(
    values: np.ndarray[Any, Any],
    target: Device,
    stream: Stream | None,  # noqa: ARG001 - nothing is queued
    non_blocking: bool,  # noqa: ARG001 - likewise
    out: Any,
) -> Any:
    """Copy a NumPy array to a fake device, in the machine's byte order."""
    native = values.dtype.newbyteorder("=")
    if out is None:
        make_room(values.nbytes, target.index)
        copied = np.array(values, native, order=cpu.order_of(values), copy=True)
        return FakeArray(copied, target)
    np.copyto(values_of(out), values, casting="same_kind")
    return out


def download(
    x: Any,
    source: Device,
    stream: Stream | None,
    non_blocking: bool,
    out: Any,
) -> Any:
    """Copy an array of a fake device to the host."""
    return cpu.upload(_values(x), source, stream, non_blocking, out)


def copy(
    x: Any,
    source: Device,  # noqa: ARG001 - all of them lie in one memory
    target: Device,
    stream: Stream | None,
    non_blocking: bool,
    out: Any,
) -> Any:
    """Copy between fake devices, or on one."""
    return upload(_values(x), target, stream, non_blocking, out)


def _values(x: Any) -> np.ndarray[Any, Any]:
    if isinstance(x, FakeArray):
        return values_of(x)
    # Explicit, so it may go where implicit may not.
    host = x.to_device(_optional.array_api_strict().Device("CPU_DEVICE"))
    return np.asarray(host)
