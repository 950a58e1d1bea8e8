"""What a pool holds: heap, ledger and source, and the verbs that change them.

Locks. ``_lock`` guards heap and ledger, and only pure work is done under it
(*decisions*). ``moving`` lets one thread at a time move memory between heap and source,
so that nobody is refused while a return is on its way (*moves*). Order: ``moving``,
then ``_lock``, then the budget's own.

Finalizers take neither: they append to ``pending``. The collector may also run a
user's finalizer in the middle of work under ``_lock``, in the same thread, and that may
ask for memory: such a call finds ``_deciding`` set, leaves the heap alone and is served
by the source (:meth:`PoolState.serve_apart`). So does every call while Python shuts
down: a daemon thread may have ended with a lock held, in the middle of a change.

Exceptions. Ctrl-C, a RecursionError or a MemoryError may come between any two steps,
and any call of the source may fail.
So a decision is marked as under way before its first step, and a move too, and no
longer after the last; who finds a mark that nobody works under rebuilds heap and ledger
(:meth:`PoolState.mend`) from what cannot be half done: what the source has lent
(:attr:`Upstream.lent`), the links of its chunks, and who refers to them. A chunk that
nobody refers to is free: what a call took and could not deliver is found by that.
A lock is taken in one line with what is done under it, since an exception may come
between two lines, but not between two steps of the interpreter that call nothing.
"""

from __future__ import annotations

import gc
import threading
from collections import deque
from functools import partial, wraps
from math import inf
from operator import attrgetter, methodcaller
from sys import is_finalizing
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, final

from xdev import native
from xdev.memory.accounting import Ledger
from xdev.memory.blocks import Heap, Segment, lost
from xdev.memory.policies import eighth
from xdev.memory.reclamation import DeferredFrees
from xdev.memory.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from xdev.memory.blocks import Chunk, Policy
    from xdev.memory.hooks import Listener
    from xdev.memory.sources import AsyncSource, Source
    from xdev.memory.upstream import Budget

P = ParamSpec("P")
T = TypeVar("T")
QUANTUM = 512  # chunks of a source that names no alignment lie so far apart [B]


def as_move(
    act: Callable[Concatenate[PoolState, P], T],
) -> Callable[Concatenate[PoolState, P], T | None]:
    """Make a method a move: see :meth:`PoolState.move`.

    It does nothing, and returns None, in the middle of a decision of its thread, which
    must not go on: ``moving`` may be held by who waits for the lock.
    """

    @wraps(act)
    def moved(state: PoolState, /, *args: P.args, **options: P.kwargs) -> T | None:
        if not state.drained():
            return None
        return state.move(partial(act, state, *args, **options))

    return moved


@final
class PoolState:
    """One source's memory under one policy, and as much as the budget lets it be."""

    def __init__(
        self, source: Source | AsyncSource, policy: Policy, budget: Budget, name: str
    ) -> None:
        self.source, self.policy, self.budget, self.name = source, policy, budget, name
        self.upstream = Upstream(self)
        self.quantum: int = getattr(source, "alignment", QUANTUM)
        self.heap = Heap(policy, self.quantum if policy.keeps else 1)
        self.ledger = Ledger()
        self.listeners: tuple[Listener, ...] = ()
        #: The native free lists of C clients, from their first on.
        self.free_lists: Any = None
        self.pending: deque[Chunk] = deque()
        self.release = self.pending.append
        self._lock, self.moving = threading.RLock(), threading.RLock()
        self._deciding = False  # whether a decision is under way, or was left half done
        self._in_move = False  # likewise for moves
        self._serving_apart = False  # likewise for what is served apart
        #: All that the source has lent, by address, in the heap or not.
        self.segments: dict[int, Segment] = {}
        self._unlisted: list[Segment] = []  # served apart, and not in the heap yet
        self.inherited = False  # whether it is the parent's, in a forked child
        self.over_limit = False  # whether free memory needs a look at the limit
        self.deferred = DeferredFrees(self)

    # -- under the lock: pure work ----------------------------------------------------

    def decide(self, choice: Callable[[Heap], T]) -> T | None:
        """Let ``choice`` change the heap; None where that is under way in this thread.

        What was dropped since the last call is drained first.
        """
        while not is_finalizing():
            with self._lock:
                if not self._deciding:
                    self._deciding = True
                    self._drain()
                    result = choice(self.heap)
                    self._deciding = False
                    return result
            if self._lock._is_owned() or self.moving._is_owned():  # type: ignore[attr-defined] # noqa: SLF001
                break  # in the middle of a decision; or of a move, which has to end
            self.move(lambda: None)  # what was left half done is mended before
        return None

    def hit(self, nbytes: int, stream: int) -> Chunk | None:
        """Return a free chunk of the very class, or None; quick, as :meth:`decide`."""
        if is_finalizing():
            return None
        with self._lock:
            if self._deciding:
                return None
            self._deciding = True
            self._drain()
            chunk = self._hand_out(self.heap.hit(nbytes, stream), nbytes)
            self._deciding = False
            return chunk

    def move(self, act: Callable[[], T]) -> T:
        """Move memory between heap and source, one thread at a time.

        It is not for a finalizer in the middle of a decision (:meth:`drained`).
        """
        if self.moving._is_owned():  # type: ignore[attr-defined] # noqa: SLF001 - a part of a move
            return act()
        with self.moving:
            if self._in_move or self._deciding or self._serving_apart:
                self.mend()
            self._in_move = True
            result = act()
            self._in_move = False
            return result

    # -- after an exception -----------------------------------------------------------

    def sweep(self) -> None:
        """Find chunks in use that nobody refers to, since an exception came between.

        It looks at each. In the middle of a decision or a move it does nothing.
        """
        if self.drained() and not self.moving._is_owned():  # type: ignore[attr-defined] # noqa: SLF001
            self.move(self._sweep)

    def _sweep(self) -> None:
        if self.decide(self._has_lost):
            self._in_move = True
            self.mend()

    def _has_lost(self, heap: Heap) -> bool:
        free = {id(chunk) for chunk in heap.binned()}
        return any(
            not (holders or chunk.listed or id(chunk) in free)
            for segment in list(self.segments.values())
            for chunk, holders in segment.holders()
        )

    def mend(self) -> None:
        """Rebuild what was left half done; called with ``moving`` held."""
        self.upstream.recount()
        with self._lock:
            if not (self._deciding or self._in_move or self._serving_apart):
                return  # it was another thread's decision, which is done
            self._deciding = True
            segments: list[Segment] | None = None
            while segments is None or len(segments) != len(self.segments):
                segments = self._reconciled()
                self._rebuild(segments)  # a finalizer may come between, and be served
            self._deciding = self._in_move = self._serving_apart = False

    def _reconciled(self) -> list[Segment]:
        """Return the segments that are lent, all and no others."""
        lent = self.upstream.lent
        for address, order in list(lent.items()):
            if address not in self.segments:
                self.segments[address] = Segment(address, order[0], self)
                self.tell("grown", address, order[0])
        for address in [each for each in list(self.segments) if each not in lent]:
            segment = self.segments.pop(address, None)
            if segment is not None:
                self.tell("returned", segment.address, segment.nbytes)
        return list(self.segments.values())

    def _rebuild(self, segments: list[Segment]) -> None:
        """Sort the chunks anew into those that are free and those in use.

        A chunk that is handed out to nobody is free, though frames refer to it, and
        after an error its traceback.
        """
        heap = self.heap
        was_free = {id(chunk) for chunk in heap.binned()}
        late = {id(chunk) for chunk in self.deferred.chunks()}
        heap.rebuild(segments)
        free, used = [], []
        for segment in segments:
            for chunk, holders in segment.holders():
                if id(chunk) in late:
                    continue
                if chunk.release is lost and chunk.uses is not None:
                    self.deferred.drop(chunk)
                elif chunk.release is lost or id(chunk) in was_free:
                    free.append(chunk)
                elif holders:
                    used.append(chunk.nbytes)
                elif self._came_back(chunk):
                    free.append(chunk)
        heap.restore(free)
        sizes = [segment.nbytes for segment in segments]
        self.ledger.recount(used, sizes, self.upstream.idle)

    def _drain(self) -> None:
        """Take back what was dropped; called in a decision."""
        pending, heap, ledger = self.pending, self.heap, self.ledger
        while self._unlisted:
            heap.add(self._unlisted.pop())
        while pending:
            try:
                chunk = pending.popleft()
            except IndexError:  # another thread took the last one without the lock
                break
            ledger.release(chunk)
            if self._came_back(chunk):
                heap.put(chunk)
        lists = self.free_lists
        if lists is not None and (self.listeners or lists.odd):
            for chunk in self.from_lists():
                heap.put(chunk)

    def _came_back(self, chunk: Chunk) -> bool:
        """Tell of a chunk; return whether it is free, or waits for other streams."""
        self.tell("released", chunk)
        if chunk.uses is not None:
            self.deferred.drop(chunk)
        return chunk.uses is None

    def tell(self, event: str, *what: Any) -> None:
        """Tell the listeners of an event, by the name of their method."""
        for listener in self.listeners:
            getattr(listener, event)(self, *what)

    def share(self) -> Any:
        """Return native free lists of this memory, made at the first call.

        None where nothing is kept, and without the native tier.
        """
        tier = native.module("pool")
        if self.free_lists is None and self.policy.keeps and tier is not None:
            eighths = self.policy.granted is eighth
            lists = tier.FreeLists(self.quantum, eighths=eighths)
            self.aside(lambda: self.put_lists(lists))
        return self.free_lists

    def put_lists(self, lists: Any) -> None:
        """Let C clients be served from free lists, unless they are already."""
        if self.free_lists is None:
            self.free_lists, self.heap.elsewhere = lists, self.from_lists
            self.ledger.lists = lists
            lists.bar(bool(self.listeners) or self.over_limit)

    def from_lists(self) -> list[Chunk]:
        """Take the chunks of the native free lists; called in a decision."""
        chunks: list[Chunk] = self.free_lists.drain()
        for chunk in chunks:
            self.ledger.release(chunk, listed=True)
        return [chunk for chunk in chunks if self._came_back(chunk)]

    def _admitted(self, heap: Heap, chunk: Chunk | None) -> Chunk | None:
        """Put a free chunk back that a lowered limit has no room for."""
        if chunk is None or self.budget.admits(chunk.nbytes):
            return chunk
        heap.restore((chunk,))
        return None

    def _hand_out(self, chunk: Chunk | None, nbytes: int) -> Chunk | None:
        """Count a chunk as used; called in a decision."""
        if chunk is not None:
            chunk.request, chunk.release = nbytes, self.release
            self.ledger.take(chunk.nbytes)
        return chunk

    def count(self, event: str, times: int = 1) -> None:
        """Add to a count of the ledger."""
        ledger = self.ledger
        self.aside(lambda: setattr(ledger, event, getattr(ledger, event) + times))

    def aside(self, act: Callable[[], object]) -> None:
        """Do what leaves the heap alone, also in the middle of a decision.

        Marked meanwhile: a finalizer must not wait for ``moving`` with ``_lock`` held.
        """
        if is_finalizing():
            act()
            return
        with self._lock:
            before, self._deciding = self._deciding, True
            act()
            self._deciding = before

    # -- verbs of the ladder: each returns a chunk in use, an error, or None ----------

    def cached(self, nbytes: int, stream: int, *, anywhere: bool) -> Chunk | None:
        """Serve from this stream's free memory."""

        def choose(heap: Heap) -> Chunk | None:
            chunk = heap.take(nbytes, stream, anywhere=anywhere)
            return self._hand_out(self._admitted(heap, chunk), nbytes)

        return self.decide(choose)

    @as_move
    def grow(self, nbytes: int, stream: int, size: int) -> Chunk | MemoryError | None:
        """Serve from a new segment of ``size`` bytes."""
        address = self.upstream.borrow(size, stream)
        if address is None or isinstance(address, MemoryError):
            return address

        def adopt(heap: Heap) -> Chunk | None:
            chunk = heap.adopt(address, size, self, nbytes, stream)
            self.segments[address] = chunk.segment
            self.ledger.grow(size, self.upstream.idle)
            return self._hand_out(chunk, nbytes)

        chunk = self.decide(adopt)
        self.tell("grown", address, size)
        return chunk

    @as_move
    def steal(self, nbytes: int, stream: int, least: int = 0) -> Chunk | None:
        """Serve from another stream's free memory, after a wait for its work.

        ``least`` is :meth:`Heap.steal`'s.
        """
        how = nbytes, stream, least
        chunk = self.decide(lambda heap: self._admitted(heap, heap.steal(*how)))
        if chunk is None:
            return None
        self.source.wait(stream, self.source.record(chunk.stream))

        def change(_: Heap) -> Chunk | None:
            chunk.stream = stream
            self.ledger.steals += 1
            self.ledger.events += 1
            return self._hand_out(chunk, nbytes)

        return self.decide(change)

    def serve_apart(self, nbytes: int, stream: int) -> Chunk | MemoryError | None:
        """Serve a finalizer that runs in the middle of a decision; leave the heap be.

        The segment joins the heap in the next decision.
        """
        self._serving_apart = True
        size = self.heap.granted(nbytes)
        address = self.upstream.borrow(size, stream)
        if address is None or isinstance(address, MemoryError):
            return address
        segment = self.segments[address] = Segment(address, size, self)
        self._unlisted.append(segment)
        self.tell("grown", address, size)
        chunk = segment.first
        chunk.stream = stream
        self.ledger.grow(size, self.upstream.idle)
        self._hand_out(chunk, nbytes)
        self._serving_apart = False
        return chunk

    # -- steps that make room ---------------------------------------------------------

    def collect(self) -> None:
        """Collect garbage: it may hold blocks."""
        gc.collect()
        self.process_pending()
        self.sweep()

    @as_move
    def synchronize(self, stream: int | None = None) -> int:
        """Wait for all queued work; then all free memory is the one stream's.

        None: of the stream that has the largest piece.

        Return how much went back to the source, as :meth:`process_pending` does [B].
        """
        gone = self.process_pending() or 0
        free = self.decide(Heap.lift) or []
        free += self.deferred.synchronize()
        if stream is None and free:
            stream = max(free, key=attrgetter("nbytes")).stream
        self.decide(methodcaller("restore", free, stream))
        self.count("syncs")
        return gone

    def process_pending(self) -> int | None:
        """Drain what was dropped, and see to blocks that other streams used.

        Return how much went back to the source, where nothing is kept [B]; None where
        the heap is to be left alone.
        """
        if not self.drained():
            return None
        self.move(self.deferred.process_events)
        return 0 if self.policy.keeps else self.return_segments() or 0

    def drained(self) -> bool:
        """Drain what was dropped; say whether that was possible."""
        return self.decide(lambda _: True) is True

    # -- what goes back to the source: each step is a move, so nobody is refused -------

    def reclaim(self, nbytes: float) -> int:
        """Give back ``nbytes`` or more, or all that can be, as :meth:`Pool.reclaim`."""
        freed = self.process_pending() or 0
        self.sweep()
        freed += self.give_back(nbytes - freed) or 0
        if freed < nbytes and self.ledger.reserved > self.ledger.allocated:
            freed += self.synchronize() or 0  # what waits for work is free after it
            freed += self.give_back(nbytes - freed) or 0
        return freed

    @as_move
    def give_back(self, nbytes: float = inf) -> int:
        """Return what is wholly free to the source, and have it keep none [B].

        As much as makes ``nbytes`` or more. How much went is exact.
        """
        total = self.return_segments(nbytes) or 0
        if total < nbytes:
            total += self.upstream.trim(nbytes - total)
            idle = self.upstream.idle
            self.decide(lambda _: self.ledger.hold(idle))
        return total

    @as_move
    def return_segments(self, nbytes: float = inf, least: int = 0) -> int:
        """Return wholly free segments; how much of them left our hands [B].

        With ``least`` they are counted as trims.
        """
        take = methodcaller("take_free_segments", nbytes, least)
        segments: list[Segment] = self.decide(take) or []
        total = sum(map(self.upstream.take_back, segments))
        self.upstream.update_budget()

        def note(_: Heap) -> None:
            self.ledger.trims += len(segments) if least else 0
            sizes = [segment.nbytes for segment in segments]
            self.ledger.shrink(sizes, self.upstream.idle)
            for segment in segments:
                self.segments.pop(segment.address, None)
                self.tell("returned", segment.address, segment.nbytes)

        self.decide(note)
        return total

    # -- the rest ---------------------------------------------------------------------

    def look(self, view: Callable[[Heap, Ledger], T]) -> T:
        """Drain, then return a view of heap and ledger that changes neither.

        A finalizer in the middle of a decision sees an empty heap: the real one may be
        half changed.
        """
        self.process_pending()
        views = self.decide(lambda heap: (view(heap, self.ledger),))
        return views[0] if views else view(Heap(self.policy, self.quantum), self.ledger)

    def mark(self, chunk: Chunk, streams: Iterable[int]) -> None:
        """Keep a live chunk, once dropped, until these streams' work is done."""

        def note() -> None:
            chunk.request = None  # no reuse without a look: before there is one to take
            if self.free_lists is not None:
                self.free_lists.mark(chunk)
            chunk.uses = (chunk.uses or set()) | set(streams)

        self.aside(note)
