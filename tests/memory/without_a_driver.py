"""CuPy's allocations by C functions of the native tier, where no driver answers."""

import ctypes
from contextlib import contextmanager

from xdev import _optional, native
from xdev.memory.bridges import cupy as bridge

TIB = 1 << 40


class Current:
    """The current device and stream, which a test sets, as C functions return them."""

    def __init__(self):
        self.device = self.stream = 0
        self._stream = ctypes.CFUNCTYPE(ctypes.c_int64)(lambda: self.stream)
        self.stream_at = ctypes.cast(self._stream, ctypes.c_void_p).value

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
    hits : int
        How often CuPy's memory objects were made by the C functions.
    is_native : bool
        Whether there are such functions.
    """

    def __init__(self, pools, current):
        cuda = _optional.cupy().cuda
        self.hits = 0

        def by_c_functions(served):
            at, malloc, free = served.functions

            def hit(nbytes):  # as CuPy's, but for the device
                kind = cuda.memory.CFunctionAllocatorMemory
                memory = kind(nbytes, at, malloc, free, current.device)
                self.hits += memory.ptr != 0
                return cuda.MemoryPointer(memory, 0)

            return hit

        def leases(k):
            pool = pools[k]
            return pool, bridge.device_allocator(pool.take, lambda: current, k)

        tier = native.module("pool")
        self.is_native = tier is not None
        served = tier and tier.CupyAllocator(len(pools), current.stream_at)
        self.allocator = bridge.allocator(leases, current, served, by_c_functions)


@contextmanager
def serving(pools, current):
    """Serve CuPy from pools."""
    cuda = _optional.cupy().cuda
    before = cuda.get_allocator()
    made = Served(pools, current)
    cuda.set_allocator(made.allocator)
    try:
        yield made
    finally:
        cuda.set_allocator(before)
