"""A walk through a heap: what is free, and what of that cannot go back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from xdev.memory.ledger import Counts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xdev.memory.blocks import Chunk, Segment
    from xdev.memory.heap import Heap
    from xdev.memory.stock import Stock


@final
class Census:
    """What the chunks of a heap are; it holds as long as the heap does not change.

    Parameters
    ----------
    heap : Heap
        Whose segments.
    lists : FreeLists or None
        Native free lists: what is free there is in use to the heap.
    waiting : iterable of Chunk
        Those that were dropped, and wait for other streams.
    """

    def __init__(self, heap: Heap, lists: Any, waiting: Iterable[Chunk]) -> None:
        self._heap, self._lists = heap, lists
        self._late = {id(chunk) for chunk in waiting}
        self._free = {id(chunk) for chunk in heap.binned()}

    @classmethod
    def of(cls, stock: Stock, heap: Heap) -> Census:
        """Go through a stock's heap; called by a view (:meth:`Stock.look`)."""
        return cls(heap, stock.free_lists, stock.waits.chunks())

    def is_free(self, chunk: Chunk) -> bool:
        """Say whether a chunk waits for nothing but a request."""
        if chunk.shelved or id(chunk) in self._free:
            return True
        return self._lists is not None and bool(self._lists.has_free(chunk))

    def is_late(self, chunk: Chunk) -> bool:
        """Say whether a chunk was dropped, and waits for other streams."""
        return id(chunk) in self._late

    def counts(self) -> Counts:
        """Walk through the heap."""
        found = Counts()
        for segment in self._heap:
            self._count(segment, found)
        return found

    def _count(self, segment: Segment, found: Counts) -> None:
        sizes: list[int] = []
        used = False
        for chunk in segment:
            if self.is_free(chunk):
                sizes.append(chunk.nbytes)
                continue
            used = True
            if self.is_late(chunk):
                found.waiting.add(chunk.nbytes)
                continue
            if chunk.reuses:
                found.reuses.add(chunk.nbytes, chunk.reuses)
            asked = chunk.request
            found.requested += chunk.nbytes if asked is None else asked
        for nbytes in sizes:
            found.cached.add(nbytes)
            if used:
                found.split.add(nbytes)
