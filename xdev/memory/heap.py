"""Where a pool's chunks are: pure bookkeeping, driven by a policy, without a lock.

In front stand the bins: exact classes by stream, last in, first out, so that a steady
loop never searches. Behind them stand the free lists, where free neighbours merge.
Small and large chunks have lists of their own, so that a small block does not break up
a large segment while there is another way.

With n free chunks every step is O(log n), or moves each chunk once for each time that
it came back; only a policy's own fit may cost more.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, final

from xdev.memory.blocks import FreeList, Ordered, Segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from xdev.memory.blocks import Chunk
    from xdev.memory.policies import Policy

CLASSES = 4096  # how many sizes the heap remembers the class of


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
        #: Returns the size that a request of ``nbytes`` is rounded to [B].
        self.granted: Callable[[int], int] = lru_cache(CLASSES)(
            lambda nbytes: policy.granted(nbytes, quantum)
        )
        #: (stream, size) -> free chunks of a class, last in, first out.
        self.bins: dict[tuple[int, int], list[Chunk]] = {}
        self._free_lists: dict[tuple[int, bool], FreeList] = {}
        self._segments: Ordered[int, Segment] = Ordered()  # by address
        self._whole: Ordered[tuple[int, int], Segment] = Ordered()  # size, address
        #: Returns free chunks that somebody else keeps, and lets go of them.
        self.elsewhere: Callable[[], Iterable[Chunk]] = tuple

    def rebuild(self, segments: Iterable[Segment]) -> None:
        """Start afresh: no chunk of these segments is free any more."""
        self.bins, self._free_lists = {}, {}
        self._segments, self._whole = Ordered(), Ordered()
        for segment in segments:
            segment.mend()
            self._segments.add(segment.address, segment)

    def hit(self, nbytes: int, stream: int) -> Chunk | None:
        """Return a free chunk of the very class, or None."""
        chunks = self.bins.get((stream, self.granted(nbytes)))
        return chunks.pop() if chunks else None

    def take(self, nbytes: int, stream: int, *, anywhere: bool = False) -> Chunk | None:
        """Return a chunk of this stream that holds ``nbytes``, or None.

        ``anywhere`` lets small requests into large segments, and the other way round.
        """
        self.settle()
        small = self.granted(nbytes) <= self.policy.small
        for arena in (small, not small) if anywhere else (small,):
            free_list = self._free_lists.get((stream, arena))
            chunk = free_list and self.policy.fit(free_list, nbytes)
            if chunk is not None:
                return self._carve(chunk, nbytes)
        return None

    def steal(self, nbytes: int, stream: int, least: int = 0) -> Chunk | None:
        """Return another stream's chunk, still marked with that stream, or None.

        With ``least`` only a wholly free segment, of so many bytes and at most an
        eighth more than the request needs.
        """
        self.settle()
        if least:
            granted = self.granted(nbytes)
            whole = self._whole.ceiling((max(granted, least), 0))
            if whole is None or whole.nbytes > granted + granted // 8:
                return None
            other = whole.first.stream != stream
            return self._carve(whole.first, nbytes) if other else None
        fits = [
            chunk
            for (other, _), free_list in self._free_lists.items()
            if other != stream and (chunk := self.policy.fit(free_list, nbytes))
        ]
        best = min(fits, key=lambda chunk: chunk.nbytes, default=None)
        return None if best is None else self._carve(best, nbytes)

    def adopt(
        self, address: int, size: int, owner: object, nbytes: int, stream: int
    ) -> Chunk:
        """Add a segment of ``size`` and return a chunk of it for ``nbytes``."""
        segment = Segment(address, size, owner)
        segment.first.stream = stream
        self._add_free(segment.first)
        return self._carve(segment.first, nbytes)

    def add(self, segment: Segment) -> None:
        """Add a segment whose chunks are in use."""
        self._segments.add(segment.address, segment)

    def put(self, chunk: Chunk) -> None:
        """Take a chunk back into its bin."""
        key = chunk.stream, chunk.nbytes
        try:
            self.bins[key].append(chunk)
        except KeyError:
            self.bins[key] = [chunk]

    def settle(self) -> None:
        """Empty the bins onto the free lists, where neighbours merge."""
        for chunk in self.elsewhere():
            self._add_free(chunk)
        for chunks in self.bins.values():
            while chunks:
                self._add_free(chunks.pop())
        self.bins.clear()

    def spare(self, nbytes: float = inf, least: int = 0) -> list[Segment]:
        """Remove and return wholly free segments, largest first.

        As many as make ``nbytes`` or more, each of at least ``least``.
        """
        self.settle()
        chosen: list[Segment] = []
        for segment in reversed(self._whole):
            if segment.nbytes < least or nbytes <= 0:
                break
            nbytes -= segment.nbytes
            chosen.append(segment)
        for segment in chosen:
            self._unplace(segment.first)
            self._segments.pop(segment.address)
        return chosen

    def restore(self, *chunks: Chunk) -> None:
        """Put back chunks that were taken, or a spare segment's first one."""
        for chunk in chunks:
            self._add_free(chunk)

    def fullest(self) -> int:
        """Return the stream that has the most free memory, 0 where there is none."""
        self.settle()
        sums: defaultdict[int, int] = defaultdict(int)
        for (stream, _), free_list in self._free_lists.items():
            sums[stream] += sum(chunk.nbytes for chunk in free_list)
        return max(sums, key=sums.__getitem__, default=0)

    def lift(self, stream: int) -> list[Chunk]:
        """Take out the free chunks of all streams but this one.

        What is freed from now on stays apart from them, so once the work queued so far
        has ended, :meth:`unify` may merge them.
        """
        self.settle()
        lifted = [
            chunk
            for (other, _), free_list in self._free_lists.items()
            if other != stream
            for chunk in free_list
        ]
        for chunk in lifted:
            self._unplace(chunk)
        self._free_lists = {
            key: free_list
            for key, free_list in self._free_lists.items()
            if key[0] == stream
        }
        return lifted

    def unify(self, stream: int, lifted: Iterable[Chunk]) -> None:
        """Put lifted chunks back as this stream's, merged: no work uses them."""
        for chunk in lifted:
            chunk.stream = stream
            self._add_free(chunk)

    def reassign(self, handle: int, stream: int, least: int = 0) -> None:
        """Make the free memory of a stream another's, which has no need to wait for it.

        With ``least`` only wholly free segments of so many bytes.
        """
        self.settle()
        for (owner, _), free_list in list(self._free_lists.items()):
            if owner == handle:
                chunks = [
                    chunk
                    for chunk in free_list
                    if not least or chunk.nbytes == chunk.segment.nbytes >= least
                ]
                for chunk in chunks:
                    self._unplace(chunk)
                self.unify(stream, chunks)

    def inherit(self, handle: int, stream: int) -> list[Chunk]:
        """Make all of a stream that ended another's; return what of it is in use."""
        self.reassign(handle, stream)
        used = [chunk for chunk in self.unlisted() if chunk.stream == handle]
        for chunk in used:
            chunk.stream = stream
        return used

    def find(self, address: int) -> Chunk | None:
        """Return the chunk that holds an address, or None."""
        segment = self._segments.floor(address)
        return None if segment is None else segment.find(address)

    def unlisted(self) -> list[Chunk]:
        """Return the chunks that are in use, or wait for queued work."""
        self.settle()
        return [c for segment in self for c in segment if not c.listed]

    def binned(self) -> Iterator[Chunk]:
        """Return the free chunks that wait in bins."""
        return chain.from_iterable(self.bins.values())

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def _carve(self, chunk: Chunk, nbytes: int) -> Chunk:
        """Take a listed chunk, and shelve what the request leaves of it."""
        self._unplace(chunk)
        granted = self.granted(nbytes)
        if self.policy.splits and chunk.nbytes - granted >= self.quantum:
            self._place(chunk.split(granted))
        return chunk

    def _add_free(self, chunk: Chunk) -> None:
        """Put a free chunk on its free_list, merged with free neighbours."""
        segment = chunk.segment
        self._segments.add(segment.address, segment)
        before, after = chunk.before, chunk.after
        if after is not None and after.listed and after.stream == chunk.stream:
            self._unplace(after)
            chunk.absorb()
        if before is not None and before.listed and before.stream == chunk.stream:
            self._unplace(before)
            before.absorb()
            chunk = before
        self._place(chunk)

    def _place(self, chunk: Chunk) -> None:
        """Put a chunk on its free_list as it is."""
        segment = chunk.segment
        key = (chunk.stream, segment.nbytes <= 2 * self.policy.small)
        free_list = self._free_lists.get(key)
        if free_list is None:
            free_list = self._free_lists[key] = FreeList()
        free_list.add(chunk)
        if chunk.nbytes == segment.nbytes:
            self._whole.add((segment.nbytes, segment.address), segment)

    def _unplace(self, chunk: Chunk) -> None:
        """Take a chunk from its free_list."""
        segment = chunk.segment
        key = (chunk.stream, segment.nbytes <= 2 * self.policy.small)
        self._free_lists[key].remove(chunk)
        if chunk.nbytes == segment.nbytes:
            self._whole.pop((segment.nbytes, segment.address))
