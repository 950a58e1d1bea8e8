"""CuPy's class hits in machine code, by its ``CFunctionAllocator``.

CuPy then calls :mod:`xdev.memory.native` without any Python in between, to allocate and
to give back. What a front cannot serve, Python does.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from xdev import _optional
from xdev.memory.native.machine import machine

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.memory.native.devices import Devices
    from xdev.memory.pools import Pool

    Allocator = Callable[[int], Any]


def current_stream_function() -> int:
    """Return the address of the C function that returns CuPy's current stream."""
    capsule = _optional.cupy_streams().__pyx_capi__["get_current_stream_ptr"]
    name, pointer = (
        ctypes.pythonapi.PyCapsule_GetName,
        ctypes.pythonapi.PyCapsule_GetPointer,
    )
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(capsule, name(capsule)))


def functions(devices: Devices) -> tuple[int, int, int]:
    """Return what CuPy's C function allocators are made of: parameter, malloc, free."""
    code = machine().addresses
    return devices.address, code["cupy_malloc"], code["cupy_free"]


def native_allocator(
    devices: Devices,
    leases: Callable[[int], tuple[Pool, Allocator]],
    current: Callable[[], tuple[int, int]],
    hit: Allocator | None = None,
) -> Allocator:
    """Return an allocator for CuPy that serves whichever device is current.

    Parameters
    ----------
    devices : Devices
        The fronts; those of devices are opened at their first use.
    leases : callable
        Returns a device's pool, and an allocator for what its front cannot serve.
    current : callable
        Returns the index of the current device and the handle of the current stream.
    hit : callable, optional
        Allocates by the machine code, a null pointer where it cannot; CuPy's
        ``CFunctionAllocator`` without one.
    """
    if hit is None:
        cuda = _optional.cupy().cuda
        hit = cuda.CFunctionAllocator(*functions(devices), devices).malloc
    opened: dict[int, tuple[Pool, Allocator]] = {}

    def open_(index: int) -> tuple[Pool, Allocator]:
        found = opened[index] = leases(index)
        front = found[0].stock.clients.make_front()
        if front is not None:
            devices.open(index, front)
        return found

    def missed(nbytes: int) -> Any:
        index, stream = current()
        pool, lease = opened.get(index) or open_(index)
        if nbytes and pool.stock_up(nbytes, stream):
            pointer = hit(nbytes)
            if pointer.ptr:
                return pointer
        return lease(nbytes)

    def allocate(nbytes: int) -> Any:
        pointer = hit(nbytes)
        return pointer if pointer.ptr else missed(nbytes)

    return allocate
