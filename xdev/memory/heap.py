"""Where a pool's chunks are: pure bookkeeping, driven by a policy, without a lock.

In front stand the bins: exact classes by stream, last in, first out, so that a steady
loop never searches. Behind them stand the shelves, where free neighbours merge. Small
and large chunks have shelves of their own, so that a small block does not break up a
large segment while there is another way.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, final

from xdev.memory.blocks import Bin, Chunk, Segment, Shelf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdev.memory.policies import Policy

CLASSES = 4096  # how many classes the bins remember before they start afresh


@final
class Heap:
    """Segments and their chunks under one policy.

    Parameters
    ----------
    policy : Policy
        Rounds sizes, chooses fits, says whether to split and to keep.
    quantum : int
        Every chunk starts at a multiple of it from its segment's start [B].
    """

    def __init__(self, policy: Policy, quantum: int) -> None:
        self.policy, self.quantum = policy, quantum
        #: stream -> requested size -> free chunks of its class: the pool's hot path.
        self.bins: dict[int, dict[int, list[Chunk]]] = {}
        self._classes: dict[tuple[int, int], Bin] = {}
        self._noted: list[Bin] = []
        self._shelves: dict[tuple[int, bool], Shelf] = {}
        self._segments: dict[int, Segment] = {}

    def granted(self, nbytes: int) -> int:
        """Return the size that a request of ``nbytes`` is rounded to [B]."""
        return self.policy.granted(nbytes, self.quantum)

    def take(self, nbytes: int, stream: int, *, anywhere: bool = False) -> Chunk | None:
        """Return a chunk of this stream that holds ``nbytes``, or None.

        ``anywhere`` lets small requests into large segments, and the other way round.
        """
        self.settle()
        small = self.granted(nbytes) <= self.policy.small
        for arena in (small, not small) if anywhere else (small,):
            shelf = self._shelves.get((stream, arena))
            chunk = self.policy.fit(shelf, nbytes) if shelf else None
            if chunk is not None:
                return self._carve(chunk, nbytes)
        return None

    def steal(self, nbytes: int, stream: int) -> Chunk | None:
        """Return another stream's chunk, still marked with that stream, or None."""
        self.settle()
        found = [
            self.policy.fit(shelf, nbytes)
            for (other, _), shelf in self._shelves.items()
            if other != stream
        ]
        fits = [chunk for chunk in found if chunk is not None]
        if not fits:
            return None
        return self._carve(min(fits, key=lambda chunk: chunk.nbytes), nbytes)

    def adopt(
        self, address: int, size: int, owner: object, nbytes: int, stream: int
    ) -> Chunk:
        """Add a segment of ``size`` and return a chunk of it for ``nbytes``."""
        segment = Segment(address, size, owner)
        segment.first.stream = stream
        self._shelve(segment.first)
        return self._carve(segment.first, nbytes)

    def assign(self, chunk: Chunk, nbytes: int) -> None:
        """Note what a chunk serves now, and where it goes when it is given back."""
        chunk.request = nbytes
        granted = self.granted(nbytes)
        if len(self._classes) > CLASSES:  # chunks keep the bin that they have
            self._classes.clear()
            self.bins.clear()
        key = (chunk.stream, granted)
        if chunk.nbytes != granted:  # an odd piece is no member of the class
            chunk.bin = Bin()
            return
        chunk.bin = self._classes.get(key)
        if chunk.bin is None:
            chunk.bin = self._classes[key] = Bin()
        if self.policy.keeps:
            requests = self.bins.setdefault(chunk.stream, {})
            if len(requests) > CLASSES:
                requests.clear()
            requests[nbytes] = chunk.bin.chunks

    def put(self, chunk: Chunk) -> None:
        """Take a chunk back into its bin."""
        home = chunk.bin
        if home is None:
            raise ValueError("a chunk that was never assigned cannot come back")
        home.chunks.append(chunk)
        if not home.noted:
            home.noted = True
            self._noted.append(home)

    def settle(self) -> None:
        """Empty the bins onto the shelves, where neighbours merge."""
        noted = self._noted
        while noted:
            home = noted.pop()
            home.noted = False
            while home.chunks:
                self._shelve(home.chunks.pop())

    def spare(self, nbytes: int | None = None, least: int = 0) -> list[Segment]:
        """Remove and return wholly free segments, largest first.

        As many as make ``nbytes`` or more (None: all), each of at least ``least``.
        """
        self.settle()
        whole = [s for s in self._segments.values() if s.whole and s.nbytes >= least]
        whole.sort(key=lambda segment: segment.nbytes, reverse=True)
        chosen: list[Segment] = []
        missing = nbytes
        for segment in whole:
            if missing is not None:
                if missing <= 0:
                    break
                missing -= segment.nbytes
            chosen.append(segment)
            self._shelf(segment.first).remove(segment.first)
            del self._segments[segment.address]
        return chosen

    def restore(self, chunk: Chunk) -> None:
        """Put back a chunk that was taken, or a spare segment's first one."""
        self._shelve(chunk)

    def unify(self) -> None:
        """Merge free neighbours of different streams: no queued work uses them."""
        self.settle()
        for segment in self._segments.values():
            for chunk in segment:
                if not chunk.shelved:
                    continue
                self._shelf(chunk).remove(chunk)
                while chunk.after is not None and chunk.after.shelved:
                    self._shelf(chunk.after).remove(chunk.after)
                    chunk.absorb()
                self._shelf(chunk).add(chunk)

    def find(self, address: int) -> Chunk | None:
        """Return the chunk that holds an address, or None."""
        starts = sorted(self._segments)
        at = bisect_right(starts, address) - 1
        if at < 0:
            return None
        spans = self._segments[starts[at]]
        inside = (c for c in spans if c.address <= address < c.address + c.nbytes)
        return next(inside, None)

    def binned(self) -> Iterator[Chunk]:
        """Return the free chunks that wait in bins."""
        for home in self._noted:
            yield from home.chunks

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments.values())

    def _carve(self, chunk: Chunk, nbytes: int) -> Chunk:
        """Take a shelved chunk, and shelve what the request leaves of it."""
        self._shelf(chunk).remove(chunk)
        granted = self.granted(nbytes)
        if self.policy.splits and chunk.nbytes - granted >= self.quantum:
            rest = chunk.split(granted)
            self._shelf(rest).add(rest)
        return chunk

    def _shelve(self, chunk: Chunk) -> None:
        """Put a free chunk on its shelf, merged with free neighbours."""
        segment = chunk.segment
        self._segments.setdefault(segment.address, segment)
        before, after = chunk.before, chunk.after
        if after is not None and after.shelved and after.stream == chunk.stream:
            self._shelf(after).remove(after)
            chunk.absorb()
        if before is not None and before.shelved and before.stream == chunk.stream:
            self._shelf(before).remove(before)
            before.absorb()
            chunk = before
        self._shelf(chunk).add(chunk)

    def _shelf(self, chunk: Chunk) -> Shelf:
        key = (chunk.stream, chunk.segment.nbytes <= 2 * self.policy.small)
        shelf = self._shelves.get(key)
        if shelf is None:
            shelf = self._shelves[key] = Shelf()
        return shelf
