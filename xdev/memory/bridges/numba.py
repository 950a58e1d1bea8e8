"""Numba's device memory, pinned memory, and the buffers of its kernels' host arguments.

Who owns what, for how long: the pools own the segments. Numba's ``MemoryPointer`` holds
nothing; the manager's table ``allocations`` holds each block by address,
and the finalizer of the pointer takes it out, whereupon the block is on the pool's
queue: no lock, no driver call. Blocks belong to the legacy default stream. Numba's own
streams are of the blocking kind, so that stream is ordered after all of them: a block
that comes back is safe to reuse there, and other streams wait for an event first.
Pinned blocks wait for such an event before they are handed out again.

Memory that the pool does not lend stays Numba's: mapped and write-combined host memory,
managed memory, and host memory that the user pinned.

``uninstall`` puts the former managers back; blocks that are alive stay valid.
``Context.reset`` gives all blocks of the context back.
"""

from __future__ import annotations

import ctypes
import weakref
from functools import cache, partial
from typing import TYPE_CHECKING, Any, final

from xdev import _optional
from xdev._forks import immortal
from xdev.memory import registry
from xdev.memory.bridges import device_pool

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.memory.blocks import Chunk
    from xdev.memory.pools import Block, Pool

LEGACY_STREAM = 0


def pool_of(context: Any, kind: str) -> Pool:
    """Return the pool that serves a Numba context."""
    if kind == "pinned":
        return registry.pool("cpu", "pinned")
    return device_pool(context.device.id)


@cache
def manager_type(  # noqa: C901 - a class of short methods, no branches
    pools: Callable[[Any, str], Pool] = pool_of,
) -> Any:
    """Return a memory manager class for Numba.

    ``pools`` returns the pool of ``(context, kind)``, kind ``"device"`` or
    ``"pinned"``.
    """
    cuda = _optional.numba_cuda()
    mixin, base = cuda.GetIpcHandleMixin, cuda.HostOnlyCUDAMemoryManager

    @final
    class XdevMemoryManager(mixin, base):  # type: ignore[misc, valid-type]
        """Numba's External Memory Management interface, version 1.

        From the base: ``mempin``, ``memallocmanaged`` and ``defer_cleanup``, which
        call the driver; from the mixin: ``get_ipc_handle``, which finds the segment
        that a block lies in.
        """

        interface_version = 1

        def initialize(self) -> None:
            """Have buffers of kernels' host arguments come from the pool too."""
            core = getattr(self.context.device, "_dev", None)
            if core is None:
                return
            # cuda.core would release it when libc ends the main thread, by code that
            # asks for the interpreter, which is gone by then.
            immortal(core.context)
            if not isinstance(core.memory_resource, resource_type()):
                self.resource_before = core.memory_resource
                core.memory_resource = resource_type()(pools(self.context, "device"))

        def retire(self) -> None:
            """Undo :meth:`initialize`."""
            before = self.__dict__.pop("resource_before", None)
            if before is not None:
                self.context.device._dev.memory_resource = before  # noqa: SLF001

        def memalloc(self, size: int) -> Any:
            """Allocate device memory."""
            block = pools(self.context, "device").acquire(size, LEGACY_STREAM)
            address = ctypes.c_void_p(block.address)
            return self._held(cuda.MemoryPointer, block, address, size)

        def memhostalloc(
            self,
            size: int,
            mapped: bool = False,
            portable: bool = False,
            wc: bool = False,
        ) -> Any:
            """Allocate pinned host memory; the pool's is portable."""
            if mapped or wc:
                return super().memhostalloc(size, mapped, portable, wc)
            pool = pools(self.context, "pinned")
            block = pool.acquire(size, LEGACY_STREAM)
            pool.state.mark(block.chunk, (LEGACY_STREAM,))
            return self._held(cuda.PinnedMemory, block, block.address, size)

        def _held(self, kind: Any, block: Block, address: Any, size: int) -> Any:
            """Return Numba's object for a block, which stays in the table with it."""
            self.allocations[block.address] = block
            drop = partial(self.allocations.pop, block.address, None)
            return kind(weakref.proxy(self.context), address, size, finalizer=drop)

        def get_memory_info(self) -> Any:
            """Return what is free on the card or in the pool, and the card's size."""
            state = pools(self.context, "device").state
            free, total = state.source.room()  # type: ignore[union-attr]
            cached = state.ledger.reserved - state.ledger.allocated
            return cuda.MemoryInfo(free=free + cached, total=total)

    return XdevMemoryManager


@cache
def resource_type() -> Any:
    """Return the class of pools as ``cuda.core.MemoryResource``: of one argument."""
    core = _optional.cuda_core()
    base = core.MemoryResource

    @final
    class PoolResource(base):  # type: ignore[misc, valid-type]
        """A pool, as cuda.core sees memory; each buffer holds a block."""

        is_device_accessible, is_host_accessible = True, False

        def __init__(self, pool: Pool) -> None:
            self._pool = pool
            self._held: dict[int, Chunk] = {}

        def allocate(self, size: int, *, stream: Any = None) -> Any:
            """Return a buffer whose block belongs to a stream."""
            at = self.take(size, _handle(stream))
            return core.Buffer.from_handle(ptr=at, size=size, mr=self, stream=stream)

        def take(self, size: int, stream: int) -> int:
            """Return the address of a block that belongs to a stream."""
            chunk = self._pool.take(size, stream)
            self._held[chunk.address] = chunk
            return chunk.address

        def deallocate(self, ptr: Any, size: int, *, stream: Any = None) -> None:  # noqa: ARG002
            """Take a buffer's block back; it may run in a finalizer."""
            chunk, last = self._held.pop(int(ptr)), _handle(stream)
            if last != chunk.stream:  # whose work must end before the next use
                chunk.uses, chunk.request = (chunk.uses or set()) | {last}, None
            chunk.release(chunk)

        @property
        def device_id(self) -> int:
            """Return the index of the pool's device."""
            return int(getattr(self._pool.state.source, "index", 0))

    return PoolResource


def _handle(stream: Any) -> int:
    """Return the CUDA handle of Numba's or cuda.core's stream; 0 for none."""
    handle = getattr(stream, "handle", stream)
    return 0 if handle is None else int(getattr(handle, "value", handle) or 0)


@final
class NumbaBridge:
    """Numba's choice of memory manager, and the managers of its live contexts."""

    def __init__(self) -> None:
        cuda = _optional.numba_cuda()
        self._cuda, self._driver = cuda, cuda.cudadrv.driver
        self._manager = manager_type()
        self._before: list[tuple[Any, Any]] = []

    def install(self) -> str | None:
        """Set the manager, unless one was chosen; swap it in live contexts."""
        current = self._driver._memory_manager  # noqa: SLF001 - it has no public name
        chosen = self._driver.config.CUDA_MEMORY_MANAGER
        if current not in (None, self._default()):
            return f"Numba's memory manager was set to {current.__qualname__}"
        if chosen != "default":
            return f"NUMBA_CUDA_MEMORY_MANAGER={chosen} chose Numba's memory manager"
        self._cuda.set_memory_manager(self._manager)
        for context in live_contexts(self._cuda):
            self._before.append((context, context.memory_manager))
            context.memory_manager = self._manager(context=context)
            context.memory_manager.initialize()
        return None

    def uninstall(self) -> None:
        """Put the former managers back, unless somebody set another since."""
        if self._driver._memory_manager is self._manager:  # noqa: SLF001
            self._cuda.set_memory_manager(self._default())
        former = {id(context): manager for context, manager in self._before}
        for context in live_contexts(self._cuda):
            if isinstance(context.memory_manager, self._manager):
                context.memory_manager.retire()
                own = former.get(id(context)) or self._default()(context=context)
                context.memory_manager = own
                own.initialize()
        self._before.clear()

    def _default(self) -> Any:
        return self._driver.NumbaCUDAMemoryManager


def live_contexts(cuda: Any) -> list[Any]:
    """Return the contexts that Numba has made; it makes none, and calls no driver."""
    driver = cuda.cudadrv.driver.driver
    devices = getattr(driver, "devices", None) or {}
    contexts = [device.primary_context for device in devices.values()]
    return [context for context in contexts if context is not None]
