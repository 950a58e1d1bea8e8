"""Numba's device arrays, read by their attributes.

Their ``__cuda_array_interface__`` says the same, but takes them 10 µs to make.
"""

from __future__ import annotations

from typing import Any

from xdev import _optional, native
from xdev.device.cuda import BACKEND
from xdev.memory.streams import live_streams

LEGACY = 1  # the null stream's name in __cuda_array_interface__
KNOWN: set[type] = set()  # the type of such arrays, once one was seen


def is_array_type(kind: type) -> bool:
    """Say whether a type is that of Numba's device arrays."""
    if kind in KNOWN:
        return True
    name = f"{kind.__module__}.{kind.__qualname__}"
    if name != "numba.cuda.cudadrv.devicearray.DeviceNDArray":
        return False
    KNOWN.add(kind)
    native.calls.read_by(kind, _read)
    return True


def _read(x: Any) -> tuple[Any, ...] | None:
    """Return all that a launch depends on; None where streams are to be ordered."""
    if not is_ordered(x):
        return None
    place = address(x)
    device = BACKEND.index_of_pointer(place) if place and BACKEND.count() > 1 else 0
    return place, device, x.dtype, x.shape, x.strides


def address(x: Any) -> int:
    """Return where an array begins; 0 for some that are empty."""
    found: int | None = x.device_ctypes_pointer.value
    return found or 0


def stream(x: Any) -> int | None:
    """Return the stream that an array is bound to, None without one."""
    return (int(x.stream) or LEGACY) if x.stream else None


def is_ordered(x: Any) -> bool:
    """Say whether no stream of an array's has to be waited for: it is the current one.

    Arrays without one are nobody's to order.
    """
    if not x.stream:
        return True
    current = LEGACY
    if live_streams.several:
        current = _optional.cupy().cuda.get_current_stream().ptr or LEGACY
    return stream(x) == current
