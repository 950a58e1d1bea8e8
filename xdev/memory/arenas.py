"""Arenas: memory that a captured graph works in, kept until nobody can use it.

What a graph's work allocates has to stay where it is for every replay. So an arena
takes whole blocks from a pool and divides them for itself: a part that comes back
serves the arena's next request, and no one else. Dropping the arena drops its blocks,
but those of parts that are still in use, which stay until these go.
"""

from __future__ import annotations

from collections import deque
from functools import cache
from typing import TYPE_CHECKING, Any, final

from xdev import _optional
from xdev.memory import policies
from xdev.memory.heap import Heap

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.memory.blocks import Chunk
    from xdev.memory.pools import Block


@final
class Part:
    """A piece of an arena in use; it keeps its block, and no other.

    Attributes
    ----------
    address, nbytes : int
        Where it starts, and how long it is [B].
    block : Block
        The pool's block that it lies in.
    """

    __slots__ = ("_chunk", "_returned", "address", "block", "nbytes")

    def __init__(self, chunk: Chunk, block: Block, returned: deque[Chunk]) -> None:
        self._chunk, self.block, self._returned = chunk, block, returned
        self.address, self.nbytes = chunk.address, chunk.nbytes

    def release(self) -> None:
        """Give it back: a finalizer may, since this takes no lock."""
        self._returned.append(self._chunk)


@final
class Arena:
    """Blocks of a pool, divided among the allocations of one graph.

    One thread at a time takes from it, and any may give back.

    Parameters
    ----------
    quantum : int
        Parts start at multiples of it from their block's start [B].

    Examples
    --------
    >>> from xdev.memory import Pool
    >>> from xdev.memory.sources.fake import FakeSource
    >>> pool = Pool(FakeSource(capacity=1 << 30))
    >>> arena = Arena()
    >>> part = arena.take(4096, pool.acquire)
    >>> address = part.address
    >>> part.release()
    >>> part = arena.take(4096, pool.acquire)
    >>> part.address == address, len(arena.blocks), pool.stats().allocated
    (True, 1, 4096)
    >>> del part, arena
    >>> pool.stats().allocated
    0
    """

    def __init__(self, quantum: int = 512) -> None:
        self._heap = Heap(policies.named("split"), quantum)
        self._returned: deque[Chunk] = deque()
        # By address. Not the segments' owners: those are in cycles, and blocks must go
        # with their last reference.
        self._blocks: dict[int, Block] = {}

    def take(
        self, nbytes: int, acquire: Callable[[int], Block], stream: int = 0
    ) -> Part:
        """Return a part for work on a stream.

        What another stream of the capture gave back is not handed out: nothing orders
        the two. Where no part is free, ``acquire(nbytes)`` is a block of a pool.

        Raises
        ------
        OutOfMemoryError
            The pool has no block for it.
        """
        heap, nbytes = self._heap, max(1, nbytes)
        while self._returned:
            heap.restore(self._returned.popleft())
        chunk = heap.take(nbytes, stream, anywhere=True)
        if chunk is None:
            block = acquire(heap.granted(nbytes))
            self._blocks[block.address] = block
            chunk = heap.adopt(block.address, block.nbytes, None, nbytes, stream)
        return Part(chunk, self._blocks[chunk.segment.address], self._returned)

    @property
    def blocks(self) -> list[Block]:
        """The pool's blocks that it holds."""
        return list(self._blocks.values())


@cache
def part_type() -> Any:
    """Return the class of CuPy's memory objects in arenas; CuPy must be there."""
    unowned = _optional.cupy().cuda.memory.UnownedMemory

    @final
    class PartMemory(unowned):  # type: ignore[misc, valid-type]
        """A part, as CuPy sees it: ``PartMemory(address, nbytes, part, device)``."""

        __slots__ = ()

        @property
        def xdev_chunk(self) -> Any:
            """The pool's record of the block that the part lies in."""
            return self._owner.block.chunk

        def __del__(self) -> None:
            self._owner.release()

    return PartMemory


def allocator(
    arena: Arena,
    acquire: Callable[[int], Block],
    stream: Callable[[], Any],
    device: int,
) -> Callable[[int], Any]:
    """Return an allocator for CuPy that serves from an arena.

    Parameters
    ----------
    arena : Arena
        Of the device's memory.
    acquire : callable
        ``acquire(nbytes)`` returns a block of the device's pool.
    stream : callable
        Returns the current stream: an object with ``ptr``.
    device : int
        The device's index.
    """
    made, pointer = part_type(), _optional.cupy().cuda.MemoryPointer

    def allocate(nbytes: int) -> Any:
        part = arena.take(nbytes, acquire, stream().ptr)
        return pointer(made(part.address, part.nbytes, part, device), 0)

    return allocate
