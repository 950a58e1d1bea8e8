"""What a pool holds: heap, ledger and source, and the verbs that change them.

Locks. ``_lock`` guards heap and ledger, and only pure work is done under it.
``_moving`` lets one thread at a time move memory between heap and source, so that
nobody is refused while a return is on its way. Order: ``_moving``, then ``_lock``, then
the budget's own.

Finalizers take neither: they append to ``_pending``. The collector may also run a
user's finalizer in the middle of work under ``_lock``, in the same thread, and that may
ask for memory: such a call finds ``_busy`` set, leaves the heap alone and is served by
the source (:meth:`Stock.stray`).
"""

from __future__ import annotations

import gc
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar, final

from xdev.errors import OutOfMemoryError, XdevError
from xdev.memory.blocks import Bin, Segment
from xdev.memory.heap import Heap
from xdev.memory.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from xdev.memory.blocks import Chunk
    from xdev.memory.budgets import Budget
    from xdev.memory.hooks import Listener
    from xdev.memory.policies import Policy
    from xdev.memory.sources import Source

T = TypeVar("T")
QUANTUM = 512  # chunks of a source that names no alignment lie so far apart [B]
HOLDERS = 5  # how many live blocks a refusal names


@final
class Stock:
    """One source's memory under one policy.

    Parameters
    ----------
    source, policy, budget
        Where memory comes from, how it is divided, how much it may be.
    name : str
        Whose memory it is, for messages.
    """

    def __init__(
        self, source: Source, policy: Policy, budget: Budget, name: str
    ) -> None:
        self.source, self.policy, self.budget, self.name = source, policy, budget, name
        self._promised: int = getattr(source, "alignment", 1)
        self.quantum: int = getattr(source, "alignment", QUANTUM)
        self.heap = Heap(policy, self.quantum if policy.keeps else 1)
        self.ledger = Ledger()
        self.listeners: tuple[Listener, ...] = ()
        self.pending: deque[Chunk] = deque()
        self.give = self.pending.append
        self._lock, self._moving = threading.RLock(), threading.RLock()
        self._busy = False
        self.inherited = False  # whether it is the parent's, in a forked child
        self._marked: deque[Chunk] = deque()
        self._waiting: deque[tuple[list[Any], Chunk]] = deque()

    # -- under the lock: pure work ----------------------------------------------------

    def decide(self, choice: Callable[[Heap], T]) -> T | None:
        """Let ``choice`` change the heap; None where that is under way in this thread.

        What was dropped since the last call is drained first.
        """
        with self._lock:
            if self._busy:
                return None
            self._busy = True
            try:
                self._drain()
                return choice(self.heap)
            finally:
                self._busy = False

    def hit(self, nbytes: int, stream: int) -> Chunk | bool:
        """Return a free chunk of the very class, or whether the heap may be asked."""
        with self._lock:
            if self._busy:
                return False
            self._busy = True
            try:
                self._drain()
                chunk = self.heap.bins[stream][nbytes].pop()
                chunk.request = nbytes
                self.ledger.take(chunk.nbytes)
            except LookupError:
                return True
            else:
                return chunk
            finally:
                self._busy = False

    def _drain(self) -> None:
        """Take back what was dropped; called with the lock held and busy set."""
        pending, heap, ledger = self.pending, self.heap, self.ledger
        while pending:
            chunk = pending.popleft()
            ledger.give(chunk.nbytes, chunk.reuses)
            chunk.reuses = 0
            for listener in self.listeners:
                listener.released(self, chunk)
            if chunk.uses is None:
                heap.put(chunk)
            else:
                self._marked.append(chunk)

    def _hand_out(self, heap: Heap, chunk: Chunk | None, nbytes: int) -> Chunk | None:
        """Count a chunk as used; called with the lock held and busy set."""
        if chunk is not None:
            heap.assign(chunk, nbytes)
            chunk.give = self.give
            self.ledger.take(chunk.nbytes)
        return chunk

    def count(self, event: str) -> None:
        """Add one to a count of the ledger."""
        with self._lock:
            setattr(self.ledger, event, getattr(self.ledger, event) + 1)

    # -- verbs of the ladder: each returns a chunk in use, or None --------------------

    def cached(self, nbytes: int, stream: int, *, anywhere: bool) -> Chunk | None:
        """Serve from this stream's free memory."""

        def choose(heap: Heap) -> Chunk | None:
            chunk = heap.take(nbytes, stream, anywhere=anywhere)
            return self._hand_out(heap, chunk, nbytes)

        return self.decide(choose)

    def grow(self, nbytes: int, stream: int, size: int) -> Chunk | None:
        """Serve from a new segment of ``size`` bytes."""
        with self._moving:
            address = self._borrow(size)
            if address is None:
                return None

            def adopt(heap: Heap) -> Chunk | None:
                chunk = heap.adopt(address, size, self, nbytes, stream)
                self.ledger.grow(size)
                return self._hand_out(heap, chunk, nbytes)

            chunk = self.decide(adopt)
        for listener in self.listeners:
            listener.grown(self, address, size)
        return chunk

    def steal(self, nbytes: int, stream: int) -> Chunk | None:
        """Serve from another stream's free memory, after a wait for its work."""
        with self._moving:
            chunk = self.decide(lambda heap: heap.steal(nbytes, stream))
            if chunk is None:
                return None
            try:
                self.source.wait(stream, self.source.record(chunk.stream))
            except BaseException:
                self.decide(lambda heap: heap.restore(chunk))
                raise

            def change(heap: Heap) -> Chunk | None:
                chunk.stream = stream
                self.ledger.steals += 1
                return self._hand_out(heap, chunk, nbytes)

            return self.decide(change)

    def stray(self, nbytes: int, stream: int) -> Chunk | None:
        """Serve a finalizer that runs in the middle of a decision; leave the heap be.

        The segment joins the heap when its one chunk comes back.
        """
        size = self.heap.granted(nbytes)
        address = self._borrow(size)
        if address is None:
            return None
        chunk = Segment(address, size, self).first
        chunk.stream, chunk.request = stream, nbytes
        chunk.bin, chunk.give = Bin(), self.give
        self.ledger.grow(size)
        self.ledger.take(size)
        return chunk

    # -- steps that make room ---------------------------------------------------------

    def give_back(self, nbytes: int | None = None, least: int = 0) -> tuple[int, int]:
        """Return wholly free segments to the source; how many, and their bytes [B]."""
        with self._moving:
            segments = self.decide(lambda heap: heap.spare(nbytes, least)) or []
            count = total = 0
            try:
                for segment in segments:
                    self.source.free(segment.address, segment.nbytes)
                    count, total = count + 1, total + segment.nbytes
            finally:
                self._settle_return(segments[:count], segments[count:])
        return count, total

    def _settle_return(self, gone: list[Segment], kept: list[Segment]) -> None:
        def note(heap: Heap) -> None:
            for segment in kept:
                heap.restore(segment.first)
            for segment in gone:
                self.ledger.shrink(segment.nbytes)

        self.decide(note)
        for segment in gone:
            self.budget.refund(segment.nbytes)
            for listener in self.listeners:
                listener.returned(self, segment.address, segment.nbytes)

    def trim(self, least: int) -> None:
        """Return wholly free segments of at least ``least`` bytes, and count them."""
        count, _ = self.give_back(least=least)
        with self._lock:
            self.ledger.trims += count

    def collect(self) -> None:
        """Collect garbage: it may hold blocks."""
        gc.collect()
        self.tend()

    def synchronize(self) -> None:
        """Wait for all queued work; then no stream's memory is apart from another's."""
        with self._moving:
            self.tend()
            waiting = [self._waiting.popleft() for _ in range(len(self._waiting))]
            try:
                self.source.synchronize()
            except BaseException:
                self._waiting.extend(waiting)
                raise

            def unify(heap: Heap) -> None:
                for _, chunk in waiting:
                    heap.put(chunk)
                heap.unify()

            self.decide(unify)

    def tend(self) -> None:
        """Drain what was dropped, and see to blocks that other streams used."""
        self.decide(_nothing)
        with self._moving:
            while self._marked:
                chunk = self._marked.popleft()
                try:
                    events = [self.source.record(use) for use in chunk.uses or ()]
                except BaseException:
                    self._marked.append(chunk)
                    raise
                chunk.uses = None
                self._waiting.append((events, chunk))
            for _ in range(len(self._waiting)):
                events, chunk = self._waiting.popleft()
                if not all(self.source.done(event) for event in events):
                    self._waiting.append((events, chunk))
                    continue
                self.decide(lambda heap, chunk=chunk: heap.put(chunk))  # type: ignore[misc]
        if not self.policy.keeps:
            self.give_back()

    # -- the rest ---------------------------------------------------------------------

    def look(self, view: Callable[[Heap, Ledger], T]) -> T:
        """Drain, then return a view of heap and ledger that changes neither."""
        self.tend()
        with self._lock:
            return view(self.heap, self.ledger)

    def mark(self, chunk: Chunk, streams: Iterable[int]) -> None:
        """Keep a live chunk, once dropped, until these streams' work is done."""
        with self._lock:
            chunk.uses = (chunk.uses or set()) | set(streams)
            chunk.request = -1  # no reuse without a look

    def free(self, chunk: Chunk) -> bool:
        """Take a chunk back though a lease still names it; False if it is not live.

        The lease has nothing to give back any more.
        """
        if self.inherited:  # its lock may be held by a thread that is not here
            raise ValueError("this memory is the parent process's: it cannot be freed")

        def swap(_: Heap) -> bool:
            if chunk.give is not self.give:
                return False
            self.give(chunk.twin())
            return True

        return bool(self.decide(swap))

    def refuse(self, nbytes: int) -> OutOfMemoryError:
        """Return the error of a request that could not be served, and count it."""
        self.count("refusals")
        holders: tuple[str, ...] = ()
        for listener in self.listeners:
            holders = holders or listener.largest(self, HOLDERS)
        held, limit = self.ledger, self.budget.limit
        return OutOfMemoryError(
            self.name, nbytes, held.allocated, held.reserved, limit, holders
        )

    def _borrow(self, size: int) -> int | None:
        """Return the address of fresh memory within the budget, or None."""
        if not self.budget.draw(size):
            return None
        address = 0
        try:
            address = self.source.allocate(size)
        except MemoryError:
            return None
        finally:
            if not address:
                self.budget.refund(size)
        if address % self._promised:
            self.source.free(address, size)
            self.budget.refund(size)
            message = f"{self.name}: the source returned {address:#x}, not aligned to "
            raise XdevError(f"{message}{self._promised} B")
        return address or None


def _nothing(heap: Heap) -> None:
    """Decide nothing: what was dropped is drained all the same."""
