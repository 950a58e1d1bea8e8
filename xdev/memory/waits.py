"""Chunks that other streams' queued work still uses, and who those streams are."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, final

from xdev.memory.heap import Heap
from xdev.memory.streams import live_streams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from xdev.memory.blocks import Chunk
    from xdev.memory.stock import Stock


@final
class Waits:
    """What a stock may not hand out yet.

    A chunk that was marked is *dropped* here without a driver call, since that may be
    in a finalizer; later an event is recorded on each stream that uses it, and when all
    are done the chunk is free. Until then its ``uses`` say so: where an exception comes
    between, it is dropped here again. All methods but :meth:`drop` and :meth:`chunks`
    are parts of moves; a finalizer in the same thread may still get between.
    """

    def __init__(self, stock: Stock) -> None:
        self._stock = stock
        self._dropped: deque[Chunk] = deque()
        self._recorded: deque[tuple[list[Any], Chunk]] = deque()
        self._first: int | None = None  # the first stream that asked
        self._several = False  # whether another has
        source: Any = stock.source
        self._retired: Callable[[], Iterable[int]] = getattr(source, "retired", tuple)

    def drop(self, chunk: Chunk) -> None:
        """Take a marked chunk that came back."""
        self._dropped.append(chunk)

    def chunks(self) -> list[Chunk]:
        """Return all that waits."""
        return [*self._dropped, *(chunk for _, chunk in list(self._recorded))]

    def tend(self) -> None:
        """Record what was dropped, and free whose events are done."""
        self._record()
        for chunk in self._done():
            self._stock.decide(partial(_put, chunk))

    def _record(self) -> None:
        if live_streams.captured:  # an event of a stream that joined it would be part
            return  # of the graph, and to ask whether it is done ends the capture
        source = self._stock.source
        while self._dropped:
            try:
                chunk = self._dropped.popleft()
            except IndexError:  # a finalizer in this thread was faster
                break
            try:
                events = [source.record(use) for use in chunk.uses or ()]
            except BaseException:
                self._dropped.append(chunk)
                raise
            self._stock.count("events", len(events))
            self._recorded.append((events, chunk))

    def _done(self) -> Iterator[Chunk]:
        source = self._stock.source
        for _ in range(len(self._recorded)):
            try:
                events, chunk = self._recorded.popleft()
            except IndexError:  # likewise
                break
            try:
                done = all(source.done(event) for event in events)
            except BaseException:
                self._recorded.append((events, chunk))
                raise
            if done:
                yield chunk
            else:
                self._recorded.append((events, chunk))

    def synchronize(self) -> list[Chunk]:
        """Wait for all queued work; return the chunks that are free after it."""
        recorded, self._recorded = self._recorded, deque()
        try:
            self._stock.source.synchronize()
        except BaseException:
            self._recorded.extend(recorded)
            raise
        chunks = [chunk for _, chunk in recorded]
        for chunk in chunks:
            chunk.uses = None
        return chunks

    def meet(self, stream: int) -> None:
        """Note who asks, and let it have the free memory of streams that ended.

        Before the second stream nobody looks where blocks are used: what is live then
        may be in use by the very call that asks.
        """
        stock = self._stock
        if self._first is None:
            self._first = stream
        elif stream != self._first and not self._several:
            self._several = True
            for chunk in stock.decide(Heap.unshelved) or ():
                stock.mark(chunk, (stream,))
        for handle in self._retired():
            stock.decide(lambda heap, gone=handle: heap.bequeath(gone, stream))  # type: ignore[misc]


def _put(chunk: Chunk, heap: Heap) -> None:
    chunk.uses = None
    heap.put(chunk)
