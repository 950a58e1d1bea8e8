"""C functions of the native tier as CuPy and PyTorch call them, without a driver."""

import ctypes
from contextlib import contextmanager
from functools import partial

from xdev import _optional, native
from xdev.memory.bridges import cupy as bridge, opt_in

TIB = 1 << 40
WORD = ctypes.c_int64
THROW = ctypes.CFUNCTYPE(None, WORD, WORD, ctypes.c_uint32, ctypes.c_char_p)


class Current:
    """The current device and stream, which a test sets, as C functions return them."""

    def __init__(self):
        self.device = self.stream = 0
        self._stream = ctypes.CFUNCTYPE(WORD)(lambda: self.stream)
        self.stream_at = ctypes.cast(self._stream, ctypes.c_void_p).value

    @property
    def ptr(self):
        return self.stream

    def __call__(self):
        return self.device, self.stream


class Client(Current):
    """Allocates from a pool as CuPy does (a hit), and as PyTorch does (a miss too).

    With ``kind=ctypes.PYFUNCTYPE`` the interpreter's lock stays held, and a refusal is
    not thrown.
    """

    def __init__(self, pool, kind=ctypes.CFUNCTYPE):
        super().__init__()
        self.pool, self.thrown = pool, []
        tier = native.module("pool")
        self.served = tier.CupyAllocator(1, self.stream_at)
        self.served.open(0, opt_in.serve(pool))
        at, malloc, free = self.served.functions
        take = kind(WORD, WORD, WORD, ctypes.c_int32)(malloc)
        give = kind(None, WORD, WORD, ctypes.c_int32)(free)
        self.hit = lambda nbytes: take(at, nbytes, 0)
        self.free = lambda address: give(at, address, 0)
        self._throw = THROW(lambda *words: self.thrown.append(words[-1]))
        throw = ctypes.cast(self._throw, ctypes.c_void_p).value
        throw *= kind is ctypes.CFUNCTYPE
        mark = partial(opt_in.mark, [pool])
        malloc, _, record = tier.torch_functions(self.served, mark, throw)
        self.torch_malloc = kind(WORD, WORD, ctypes.c_int, WORD)(malloc)
        self.miss = lambda nbytes: self.torch_malloc(nbytes, 0, self.stream)
        self.record = kind(None, WORD, WORD)(record)

    def malloc(self, nbytes):
        address = self.hit(nbytes)
        if not address:
            assert self.pool.refill(nbytes, self.stream)
            address = self.hit(nbytes)
        return address


class Served:
    """The bridge's allocator on pools, one for each device.

    ``allocator`` is what CuPy is given; ``hits`` counts CuPy's memory objects that the
    C functions made, if there are any (``is_native``).
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

        tier = native.module("pool")
        self.is_native = tier is not None
        served = tier and tier.CupyAllocator(len(pools), current.stream_at)
        self.allocator = bridge.allocator(
            pools.__getitem__, current, served, by_c_functions
        )


@contextmanager
def serving(pools, current):
    cuda = _optional.cupy().cuda
    before = cuda.get_allocator()
    made = Served(pools, current)
    cuda.set_allocator(made.allocator)
    try:
        yield made
    finally:
        cuda.set_allocator(before)
