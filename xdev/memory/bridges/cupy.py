"""CuPy's device memory, and the pinned memory of its copies.

Who owns what, for how long: the pool owns the segments. An allocation is a
``MemoryPointer`` on a memory object; CuPy's arrays and their views share that by
reference count, and when the last is gone the block is the pool's again: no lock that
Python holds, no driver call, so it may happen in the middle of anything. The block
belongs to the stream that was CuPy's current one when it was made; work queued there
before the drop runs before whoever gets the block next. Pinned blocks are held by CuPy
until the copy that uses them is done.

With the native tier the memory object is CuPy's own, of a ``CFunctionAllocator``: that
calls the tier's C functions, without any Python in between, to allocate and to
give back. What these cannot serve (while blocks are tracked, say), and all without the
tier, is a *lease*: a memory object whose finalizer gives the block back.

After ``uninstall`` CuPy allocates as before; leases that are alive stay valid, and
their blocks go back to xdev's pool.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any, final

from xdev import _optional, native
from xdev.device import Device
from xdev.device.cuda import current_stream_function
from xdev.errors import OutOfMemoryError
from xdev.memory import registry
from xdev.memory.bridges import device_pool
from xdev.memory.pools import Part

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.memory.blocks import Chunk
    from xdev.memory.pools import Pool

    Allocator = Callable[[int], Any]

TIER: Any = native.module("pool")  # None without it
ENDLESS = (1 << 64) - 1  # more than an allocator can give [B]


@cache
def lease_type() -> Any:
    """Return the class of the memory objects that CuPy holds; CuPy must be there."""
    unowned = _optional.cupy().cuda.memory.UnownedMemory

    @final
    class Lease(unowned):  # type: ignore[misc, valid-type]
        """A chunk or an arena's part, as CuPy sees memory.

        ``Lease(address, nbytes, owner, device)``: all CuPy's own compiled code.
        """

        __slots__ = ()

        @property
        def xdev_chunk(self) -> Any:
            """The pool's record of the block."""
            owner = self._owner
            return owner.block.chunk if isinstance(owner, Part) else owner

        def __del__(self) -> None:
            owner = self._owner
            owner.release(owner)

    return Lease


@final
class PinnedLease:
    """A pinned block, as CuPy sees pinned memory."""

    __slots__ = ("chunk", "ptr", "size")

    def __init__(self, chunk: Chunk) -> None:
        self.chunk, self.ptr, self.size = chunk, chunk.address, chunk.nbytes

    def __del__(self) -> None:
        self.chunk.release(self.chunk)


def leased(owner: Chunk | Part, device: int) -> Any:
    """Return CuPy's pointer to memory that it holds, and its finalizer gives back."""
    lease = lease_type()(owner.address, owner.nbytes, owner, device)
    return _optional.cupy().cuda.MemoryPointer(lease, 0)


def device_allocator(
    take: Callable[[int, int], Chunk | Part], stream: Callable[[], Any], device: int = 0
) -> Allocator:
    """Return an allocator for CuPy that serves one device, by its index.

    ``take(nbytes, stream)`` returns memory of that device: a pool's, an arena's;
    ``stream()`` the current stream, which has a ``ptr``.
    """
    return lambda nbytes: leased(take(nbytes, stream().ptr), device)


def pinned_allocator(pool: Callable[[], Pool]) -> Allocator:
    """Return an allocator for CuPy's pinned memory, of the pool that is returned."""
    pointer = _optional.cupy().cuda.PinnedMemoryPointer

    def allocate(nbytes: int) -> Any:
        return pointer(PinnedLease(pool().take(nbytes)), 0)

    return allocate


def _c_functions(served: Any) -> Allocator:
    """Return CuPy's allocator by C functions."""
    allocator = _optional.cupy().cuda.CFunctionAllocator(*served.functions, served)
    malloc: Allocator = allocator.malloc
    return malloc


def allocator(
    pools: Callable[[int], Pool],
    current: Callable[[], tuple[int, int]],
    served: Any = None,
    c_functions: Callable[[Any], Allocator] = _c_functions,
) -> Allocator:
    """Return an allocator for CuPy that serves whichever device is current.

    ``pools(index)`` is called at the first use of a device; ``current()`` returns the
    index of the current device and the handle of the current stream. ``served`` is the
    native tier's ``CupyAllocator``, by whose C functions ``c_functions`` makes an
    allocator; without one all is leases.
    """

    @cache
    def opened(index: int) -> Pool:
        pool = pools(index)
        lists = pool.state.share()
        if served is not None and lists is not None:
            served.open(index, lists)
        return pool

    def missed(nbytes: int) -> Any:
        index, stream = current()
        pool = opened(index)
        if served is not None and nbytes and pool.refill(nbytes, stream):
            pointer = hit(nbytes)
            if pointer.ptr:
                return pointer
        return leased(pool.take(nbytes, stream), index)

    if served is None:
        return missed
    hit = c_functions(served)
    made: Allocator = TIER.allocator(hit, missed)
    return made


@final
class CupyBridge:
    """CuPy's process-wide allocators."""

    def __init__(self) -> None:
        self._cupy = _optional.cupy()
        self._before: Any = None
        self._allocator: Allocator | None = None
        self._pinned = False  # whether it serves pinned memory

    def _usable(self) -> Allocator:
        cuda = self._cupy.cuda
        device, stream = cuda.runtime.getDevice, cuda.get_current_stream
        count = cuda.runtime.getDeviceCount()
        served = TIER and TIER.CupyAllocator(count, current_stream_function())
        return allocator(device_pool, lambda: (device(), stream().ptr), served)

    def install(self) -> str | None:
        """Set the allocators, unless CuPy's is not its own default one."""
        cuda = self._cupy.cuda
        current = cuda.get_allocator()
        if current != self._cupy.get_default_memory_pool().malloc:
            return (
                f"CuPy's allocator was set to {current!r}; to let xdev's pool in, call "
                f"cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc), then "
                f"xdev.memory.bridges.install('cupy')"
            )
        usable = Device("cuda:0").available
        # Without a device, its pool's error says why.
        self._allocator = self._usable() if usable else lambda _: device_pool(0)
        self._before = current
        cuda.set_allocator(self._allocator)
        if usable:
            self._cupy.get_default_memory_pool().free_all_blocks()  # serve nobody now
            self._install_pinned()
        return None

    def _install_pinned(self) -> None:
        """Take over pinned memory too, if it comes from CuPy's own kind of pool.

        CuPy does not tell which allocator is set, so a request has to, for so much that
        no driver is asked: CuPy's pools round it up to 0.
        """
        pinned, served = self._cupy.cuda.pinned_memory, None
        with suppress(Exception):  # a user's allocator may raise what it likes
            served = pinned.alloc_pinned_memory(ENDLESS).mem
        if isinstance(served, pinned.PooledPinnedMemory):
            pool = cache(partial(registry.pool, "cpu", "pinned"))
            pinned.set_pinned_memory_allocator(pinned_allocator(pool))
            self._pinned = True

    def uninstall(self) -> None:
        """Put back CuPy's allocators, unless somebody set others since."""
        cuda = self._cupy.cuda
        if cuda.get_allocator() is self._allocator:
            cuda.set_allocator(self._before)
        pinned, self._pinned = self._pinned, False
        if pinned and self._serves_pinned():
            before = self._cupy.get_default_pinned_memory_pool().malloc
            cuda.set_pinned_memory_allocator(before)

    def _serves_pinned(self) -> bool:
        """Say whether CuPy's pinned memory comes from here; an allocation tells."""
        try:
            return isinstance(self._cupy.cuda.alloc_pinned_memory(1).mem, PinnedLease)
        except OutOfMemoryError as error:  # the pool has reached its limit
            return error.device == "cpu (pinned)"
        except Exception:  # noqa: BLE001 - a user's allocator may raise what it likes
            return False
