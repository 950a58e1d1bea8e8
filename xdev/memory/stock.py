"""What a pool holds: heap, ledger and source, and the verbs that change them.

Locks. ``_lock`` guards heap and ledger, and only pure work is done under it.
``moving`` lets one thread at a time move memory between heap and source, so that
nobody is refused while a return is on its way. Order: ``moving``, then ``_lock``, then
the budget's own.

Finalizers take neither: they append to ``_pending``. The collector may also run a
user's finalizer in the middle of work under ``_lock``, in the same thread, and that may
ask for memory: such a call finds ``_busy`` set, leaves the heap alone and is served by
the source (:meth:`Stock.stray`). So does every call while Python shuts down: a daemon
thread may have ended with a lock held, in the middle of a change.
"""

from __future__ import annotations

import gc
import threading
from collections import deque
from sys import is_finalizing
from typing import TYPE_CHECKING, TypeVar, final

from xdev.memory.blocks import Bin, Segment
from xdev.memory.clients import Clients
from xdev.memory.heap import Heap
from xdev.memory.ledger import Ledger
from xdev.memory.lenders import lender_of
from xdev.memory.native.layout import ODD
from xdev.memory.returns import Returns
from xdev.memory.waits import Waits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from xdev.memory.blocks import Chunk
    from xdev.memory.budgets import Budget
    from xdev.memory.hooks import Listener
    from xdev.memory.native.front import Front
    from xdev.memory.policies import Policy
    from xdev.memory.sources import Source
    from xdev.memory.sources.asynchronous import AsyncSource

T = TypeVar("T")
QUANTUM = 512  # chunks of a source that names no alignment lie so far apart [B]


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
        self,
        source: Source | AsyncSource,
        policy: Policy,
        budget: Budget,
        name: str,
    ) -> None:
        self.source, self.policy, self.budget, self.name = source, policy, budget, name
        self.lender = lender_of(source, policy, budget, name, self.count)
        self.quantum: int = getattr(source, "alignment", QUANTUM)
        self.heap = Heap(policy, self.quantum if policy.keeps else 1)
        self.ledger = Ledger()
        self.listeners: tuple[Listener, ...] = ()
        self.front: Front | None = None  # of C clients, from their first on
        self.pending: deque[Chunk] = deque()
        self.give = self.pending.append
        self.newest = threading.local()  # .chunk: what this thread grew last
        self._lock, self.moving = threading.RLock(), threading.RLock()
        self._busy = False
        self.inherited = False  # whether it is the parent's, in a forked child
        self.shut = False  # whether free memory needs a look at the limit
        self.waits, self.returns, self.clients = (
            Waits(self),
            Returns(self),
            Clients(self),
        )

    # -- under the lock: pure work ----------------------------------------------------

    def decide(self, choice: Callable[[Heap], T]) -> T | None:
        """Let ``choice`` change the heap; None where that is under way in this thread.

        What was dropped since the last call is drained first.
        """
        if is_finalizing():
            return None
        with self._lock:
            if self._busy:
                return None
            self._busy = True
            try:
                self._drain()
                return choice(self.heap)
            finally:
                self._busy = False

    def hit(self, nbytes: int, stream: int) -> Chunk | None:
        """Return a free chunk of the very class, or None."""
        if is_finalizing():
            return None
        with self._lock:
            if self._busy:
                return None
            self._busy = True
            try:
                self._drain()
                chunk = self.heap.bins[stream][nbytes].pop()
                chunk.request = nbytes
                self.ledger.take(chunk.nbytes)
            except LookupError:
                return None
            else:
                return chunk
            finally:
                self._busy = False

    def _drain(self) -> None:
        """Take back what was dropped; called with the lock held and busy set."""
        pending, heap, ledger = self.pending, self.heap, self.ledger
        while pending:
            try:
                chunk = pending.popleft()
            except IndexError:  # another thread took the last one without the lock
                break
            ledger.give(chunk.nbytes, chunk.reuses)
            chunk.reuses = 0
            if self._came_back(chunk):
                heap.put(chunk)
        front = self.front
        if front is not None and (self.listeners or front.words[ODD]):
            for chunk in self.from_front():
                heap.put(chunk)

    def _came_back(self, chunk: Chunk) -> bool:
        """Tell of a chunk; return whether it is free, or waits for other streams."""
        for listener in self.listeners:
            listener.released(self, chunk)
        if chunk.uses is not None:
            self.waits.drop(chunk)
        return chunk.uses is None

    def from_front(self) -> list[Chunk]:
        """Take the front's free chunks; called with the lock held and busy set."""
        if self.front is None:
            return []
        chunks = self.front.drain()
        self.ledger.give_all(chunks)
        for chunk in chunks:
            chunk.give = self.give
        return [chunk for chunk in chunks if self._came_back(chunk)]

    def _admitted(self, heap: Heap, chunk: Chunk | None) -> Chunk | None:
        """Put a free chunk back that a lowered limit has no room for."""
        if chunk is None or self.budget.admits(chunk.nbytes):
            return chunk
        heap.restore(chunk)
        return None

    def _hand_out(self, heap: Heap, chunk: Chunk | None, nbytes: int) -> Chunk | None:
        """Count a chunk as used; called with the lock held and busy set."""
        if chunk is not None:
            heap.assign(chunk, nbytes)
            chunk.give = self.give
            self.ledger.take(chunk.nbytes)
        return chunk

    def count(self, event: str, times: int = 1) -> None:
        """Add to a count of the ledger."""
        ledger = self.ledger
        self.aside(lambda: setattr(ledger, event, getattr(ledger, event) + times))

    def aside(self, act: Callable[[], object]) -> None:
        """Do what leaves the heap alone, also in the middle of a decision.

        Busy meanwhile: a finalizer must not wait for ``moving`` with ``_lock`` held.
        """
        if is_finalizing():
            act()
            return
        with self._lock:
            busy, self._busy = self._busy, True
            try:
                act()
            finally:
                self._busy = busy

    # -- verbs of the ladder: each returns a chunk in use, or None --------------------

    def cached(self, nbytes: int, stream: int, *, anywhere: bool) -> Chunk | None:
        """Serve from this stream's free memory."""

        def choose(heap: Heap) -> Chunk | None:
            found = heap.take(nbytes, stream, anywhere=anywhere)
            chunk = self._admitted(heap, found) if self.shut else found
            return self._hand_out(heap, chunk, nbytes)

        return self.decide(choose)

    def grow(self, nbytes: int, stream: int, size: int) -> Chunk | None:
        """Serve from a new segment of ``size`` bytes."""
        with self.moving:
            address = self.lender.borrow(size, stream)
            if address is None:
                return None

            def adopt(heap: Heap) -> Chunk | None:
                chunk = heap.adopt(address, size, self, nbytes, stream)
                self.ledger.grow(size, self.lender.held)
                return self._hand_out(heap, chunk, nbytes)

            chunk = self.newest.chunk = self.decide(adopt)
        for listener in self.listeners:
            listener.grown(self, address, size)
        return chunk

    def steal(self, nbytes: int, stream: int, least: int = 0) -> Chunk | None:
        """Serve from another stream's free memory, after a wait for its work.

        ``least`` is :meth:`Heap.steal`'s.
        """
        with self.moving:
            chunk = self.decide(
                lambda heap: self._admitted(heap, heap.steal(nbytes, stream, least))
            )
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
                self.ledger.events += 1
                return self._hand_out(heap, chunk, nbytes)

            return self.decide(change)

    def stray(self, nbytes: int, stream: int) -> Chunk | None:
        """Serve a finalizer that runs in the middle of a decision; leave the heap be.

        The segment joins the heap when its one chunk comes back.
        """
        size = self.heap.granted(nbytes)
        address = self.lender.borrow(size, stream)
        if address is None:
            return None
        chunk = Segment(address, size, self).first
        chunk.stream, chunk.request = stream, nbytes
        chunk.bin, chunk.give = Bin(), self.give
        self.ledger.grow(size, self.lender.held)
        self.ledger.take(size)
        return chunk

    # -- steps that make room ---------------------------------------------------------

    def collect(self) -> None:
        """Collect garbage: it may hold blocks."""
        gc.collect()
        self.tend()

    def synchronize(self) -> int:
        """Wait for all queued work; then no stream's memory is apart from another's.

        Return how much went back to the source, as :meth:`tend` does [B].
        """
        if not self.settled():
            return 0
        with self.moving:
            gone = self.tend() or 0
            most, lifted = self.decide(Heap.lift) or (0, [])
            try:
                free = self.waits.synchronize()
            except BaseException:
                self.decide(lambda heap: heap.restore(*lifted))
                raise
            self.decide(lambda heap: heap.unify(most, lifted + free))
            self.count("syncs")
        return gone

    def tend(self) -> int | None:
        """Drain what was dropped, and see to blocks that other streams used.

        Return how much went back to the source, where nothing is kept [B]; None where
        the heap is to be left alone.
        """
        if not self.settled():
            return None
        with self.moving:
            self.waits.tend()
        return 0 if self.policy.keeps else self.returns.segments()[1]

    def settled(self) -> bool:
        """Drain what was dropped; say whether that was possible.

        It is not for a finalizer in the middle of a decision, which must not go on:
        ``moving`` may be held by who waits for the lock.
        """
        return self.decide(lambda _: True) is True

    # -- the rest ---------------------------------------------------------------------

    def look(self, view: Callable[[Heap, Ledger], T]) -> T:
        """Drain, then return a view of heap and ledger that changes neither.

        A finalizer in the middle of a decision sees an empty heap: the real one may be
        half changed.
        """
        self.tend()
        if is_finalizing():
            return view(Heap(self.policy, self.quantum), self.ledger)
        with self._lock:
            if self._busy:
                return view(Heap(self.policy, self.quantum), self.ledger)
            self._busy = True
            try:
                return view(self.heap, self.ledger)
            finally:
                self._busy = False

    def mark(self, chunk: Chunk, streams: Iterable[int]) -> None:
        """Keep a live chunk, once dropped, until these streams' work is done."""

        def note() -> None:
            chunk.uses = (chunk.uses or set()) | set(streams)
            chunk.request = None  # no reuse without a look
            if self.front is not None:
                self.front.mark(chunk)

        self.aside(note)
