"""CuPy's allocations by the bridge's machine code, where no driver answers."""

import ctypes
from contextlib import contextmanager

import pytest

from xdev import _optional
from xdev._c_functions import address_of
from xdev.memory.bridges import cupy as bridge
from xdev.memory.native import cupy as native
from xdev.memory.native.front import Devices

TIB = 1 << 40


class Current:
    """The current device and stream, which a test sets, as C functions return them."""

    def __init__(self):
        self.device = self.stream = 0
        self._device = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: self.device)
        self._stream = ctypes.CFUNCTYPE(ctypes.c_int64)(lambda: self.stream)
        self.device_at, self.stream_at = map(address_of, (self._device, self._stream))

    @property
    def ptr(self):
        """The stream's handle."""
        return self.stream

    def __call__(self):
        return self.device, self.stream


class Served:
    """The bridge's allocator on pools, one for each device.

    Attributes
    ----------
    allocator : callable
        What CuPy is given.
    python : callable
        The same without machine code.
    asked : list of int
        What Python looked for in a front: twice what it did not find.
    """

    def __init__(self, pools, current):
        cuda = _optional.cupy().cuda
        devices, self.asked = Devices(len(pools), current.stream_at), []
        at, malloc, free = bridge.functions(devices)

        def hit(nbytes):
            self.asked.append(nbytes)
            kind = cuda.memory.CFunctionAllocatorMemory
            return cuda.MemoryPointer(kind(nbytes, at, malloc, free, current.device), 0)

        def leases(k):
            pool = pools[k]
            return pool, bridge.device_allocator(pool, lambda: current, k)

        def made():
            return bridge.native_allocator(devices, leases, current, hit)

        self.allocator = made()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(native, "facts", lambda: 0)
            self.python = made()


@contextmanager
def serving(pools, current):
    """Serve CuPy from pools."""
    cuda = _optional.cupy().cuda
    before = cuda.get_allocator()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "current_device_function", lambda: current.device_at)
        native.facts.cache_clear()
        native.facts()
        made = Served(pools, current)
        cuda.set_allocator(made.allocator)
        try:
            yield made
        finally:
            cuda.set_allocator(before)
            native.facts.cache_clear()
