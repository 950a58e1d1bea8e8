"""Pieces of memory as integers: chunks, the segments they tile, the heap of free ones.

Nothing here has a lock, a device or a clock. A *segment* is what a source lent; its
*chunks* tile it from end to end, in a doubly linked list. A chunk is live (someone
uses it), binned (free, waiting in the last-in-first-out list of its class) or listed
(free, ordered by size, merged with free neighbours).
"""

from __future__ import annotations

import sys
from bisect import bisect_left, insort
from collections import defaultdict
from functools import lru_cache
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

#: Entries (key, ..., value) in the order of their keys, each of which is here once: so
#: a key is found in O(log n), and to move 100,000 of them takes 10 us.
Ordered: TypeAlias = list[Any]


def ceiling(ordered: Ordered, *key: int) -> Any:
    """Return the value of the first key from this one on, or None."""
    at = bisect_left(ordered, key)
    return ordered[at][-1] if at < len(ordered) else None


def remove(ordered: Ordered, *key: int) -> None:
    """Remove an entry that is there."""
    del ordered[bisect_left(ordered, key)]


def round_up(nbytes: int, quantum: int) -> int:
    """Return the smallest positive multiple of ``quantum`` that holds ``nbytes``."""
    return max(1, -(-nbytes // quantum)) * quantum


@final
class Segment:
    """A range that a source lent, tiled by chunks from ``first`` on.

    ``owner`` keeps alive whatever must outlive the segment's chunks.
    """

    __slots__ = ("address", "first", "nbytes", "owner")

    def __init__(self, address: int, nbytes: int, owner: object) -> None:
        self.address, self.nbytes, self.owner = address, nbytes, owner
        self.first = Chunk(address, nbytes, self)

    def find(self, address: int) -> Chunk | None:
        """Return the chunk that holds an address, or None."""
        if not self.address <= address < self.address + self.nbytes:
            return None
        return next(each for each in self if address < each.address + each.nbytes)

    def mend(self) -> None:
        """Make the chunks what their links forward say, whatever was half done.

        To add a chunk and to take one out each are one link; no chunk is listed.
        """
        before: Chunk | None = None
        chunk: Chunk | None = self.first
        while chunk is not None:
            after = chunk.after
            end = self.address + self.nbytes if after is None else after.address
            chunk.nbytes, chunk.before = end - chunk.address, before
            chunk.listed = False
            before, chunk = chunk, after

    def holders(self) -> list[tuple[Chunk, int]]:
        """Return the chunks, and how many references each has from outside."""
        chunks = list(self)
        return [  # one reference is the link to it
            (chunk, count - ALONE - 1 - (chunk.after is not None))
            for chunk, count in zip(chunks, references(chunks), strict=True)
        ]

    def __iter__(self) -> Iterator[Chunk]:
        chunk: Chunk | None = self.first
        while chunk is not None:
            yield chunk
            chunk = chunk.after


@final
class Chunk:
    """One piece of a segment: where it is, and its size [B]."""

    __slots__ = (
        *("address", "after", "before", "listed", "nbytes", "release"),
        *("request", "reuses", "segment", "stream", "uses"),
    )

    def __init__(self, address: int, nbytes: int, segment: Segment) -> None:
        self.address, self.nbytes, self.segment = address, nbytes, segment
        self.stream = 0  # whose queued work may still use it
        self.reuses = 0  # how often it was handed out again without its pool's lock
        #: The size last asked for [B]; None: not to be handed out without a look at it.
        self.request: int | None = None
        self.before: Chunk | None = None
        self.after: Chunk | None = None
        self.listed = False
        #: Takes it back, in a finalizer too: it never locks and never blocks. It is
        #: :func:`lost` from a free list on until somebody has the chunk.
        self.release: Callable[[Any], object] = lost
        self.uses: set[int] | None = None  # other streams, by ``record_stream``

    def split(self, nbytes: int) -> Chunk:
        """Keep the first ``nbytes`` and return the rest as a chunk of its own."""
        rest = Chunk(self.address + nbytes, self.nbytes - nbytes, self.segment)
        rest.stream, rest.before, rest.after = self.stream, self, self.after
        if self.after is not None:
            self.after.before = rest
        self.after = rest
        self.nbytes = nbytes
        return rest

    def absorb(self) -> None:
        """Take the next chunk's bytes; that chunk is gone."""
        gone: Any = self.after
        self.nbytes += gone.nbytes
        self.after = gone.after
        if gone.after is not None:
            gone.after.before = self


def references(held: list[Any]) -> list[int]:
    """Return how many references the interpreter counts to each item of a list."""
    return [sys.getrefcount(each) for each in held]


ALONE = references([object()])[0]  # an object that nothing but the list refers to


def lost(chunk: Chunk) -> None:
    """Take back a chunk that is not handed out: there is nothing to do."""


@final
class Policy(NamedTuple):
    """What a heap asks; nobody changes one."""

    name: str  # as in ``Pool(source, policy=name)``
    #: ``(nbytes, quantum)``: the size that a request is rounded to [B].
    granted: Callable[[int, int], int]
    #: ``(granted, quantum)``: what to ask the source for when nothing free fits [B].
    grown: Callable[[int, int], int]
    #: ``(free_list, nbytes)``: which free chunk serves a request, if any.
    fit: Callable[[Ordered, int], Chunk | None]
    #: Requests up to this size share segments of up to twice that size, apart from the
    #: larger ones; 0 keeps all together [B].
    small: int
    splits: bool  # whether the rest of a larger chunk becomes a chunk of its own
    keeps: bool  # whether free memory stays with the pool
    asynchronous: bool = False  # whether the source lends and keeps in stream order
    zone: int = 0  # how much stays free behind each block, at least, for guards [B]


CLASSES = 4096  # how many sizes the heap remembers the class of
LARGE = 16 << 20  # bytes of a request for which chunks are rather joined than cut


@final
class Heap:
    """Segments and their chunks under one policy: pure bookkeeping.

    In front stand the bins: exact classes by stream, last in, first out, so that a
    steady loop never searches. Behind them stand the free lists, where free neighbours
    merge. Small and large chunks have lists of their own, so that a small block does
    not break up a large segment while there is another way. Every chunk starts at a
    multiple of ``quantum`` from its segment's start [B].

    With n free chunks every step is O(log n), or moves each chunk once for each time
    that it came back; only a policy's own fit may cost more.
    """

    def __init__(self, policy: Policy, quantum: int) -> None:
        self.policy, self.quantum = policy, quantum
        #: Returns the size that a request of ``nbytes`` is rounded to [B].
        self.granted = lru_cache(CLASSES)(lambda n: policy.granted(n, quantum))
        #: Returns free chunks that somebody else keeps, and lets go of them.
        self.elsewhere: Callable[[], Iterable[Chunk]] = tuple
        self.rebuild(())

    def rebuild(self, segments: Iterable[Segment]) -> None:
        """Start afresh: no chunk of these segments is free any more."""
        #: (stream, size) -> free chunks of a class, last in, first out.
        self.bins: dict[tuple[int, int], list[Chunk]] = {}
        #: (stream, whether they are small) -> free chunks by size and address.
        self._free_lists: dict[tuple[int, bool], Ordered] = defaultdict(list)
        self._segments: Ordered = []  # by address
        self._whole: Ordered = []  # wholly free segments by size and address
        for segment in segments:
            segment.mend()
            self.add(segment)

    def hit(self, nbytes: int, stream: int) -> Chunk | None:
        """Return a free chunk of the very class, or None."""
        chunks = self.bins.get((stream, self.granted(nbytes)))
        return chunks.pop() if chunks else None

    def take(self, nbytes: int, stream: int, *, anywhere: bool = False) -> Chunk | None:
        """Return a chunk of this stream that holds ``nbytes``, or None.

        ``anywhere`` lets small requests into large segments, and the other way round.
        What the bins keep stays there unless nothing else fits, or a large chunk would
        be cut: sizes that a program asks for by turns would empty each other's bins at
        every request.
        """
        size = self.granted(nbytes)
        most = size if size > LARGE else inf
        chunk = self.hit(nbytes, stream)
        chunk = chunk or self._fitting(nbytes, stream, anywhere, most)
        if chunk is None:
            self.flush_bins()
            chunk = self._fitting(nbytes, stream, anywhere)
        return chunk

    def _fitting(
        self, nbytes: int, stream: int, anywhere: bool, most: float = inf
    ) -> Chunk | None:
        """Return a part of a free chunk of at most so many bytes, or None."""
        small = self.granted(nbytes) <= self.policy.small
        for arena in (small, not small) if anywhere else (small,):
            free_list = self._free_lists.get((stream, arena))
            chunk = self.policy.fit(free_list, nbytes) if free_list else None
            if chunk is not None and chunk.nbytes <= most:
                return self._carve(chunk, nbytes)
        return None

    def steal(self, nbytes: int, stream: int, least: int = 0) -> Chunk | None:
        """Return another stream's chunk, still marked with that stream, or None.

        With ``least`` only a wholly free segment, of so many bytes and at most an
        eighth more than the request needs.
        """
        self.flush_bins()
        if least:
            granted = self.granted(nbytes)
            whole = ceiling(self._whole, max(granted, least))
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
        self.add(segment)
        self._add_free(segment.first)
        return self._carve(segment.first, nbytes)

    def add(self, segment: Segment) -> None:
        """Add a segment, if it is not here already; its chunks are in use."""
        if ceiling(self._segments, segment.address) is not segment:
            insort(self._segments, (segment.address, segment))

    def put(self, chunk: Chunk) -> None:
        """Take a chunk back into its bin."""
        self.bins.setdefault((chunk.stream, chunk.nbytes), []).append(chunk)

    def flush_bins(self) -> None:
        """Empty the bins onto the free lists, where neighbours merge."""
        for chunk in self.elsewhere():
            self._add_free(chunk)
        for chunks in self.bins.values():
            while chunks:
                self._add_free(chunks.pop())
        self.bins.clear()

    def take_free_segments(self, nbytes: float = inf, least: int = 0) -> list[Segment]:
        """Remove and return wholly free segments, largest first.

        As many as make ``nbytes`` or more, each of at least ``least``.
        """
        self.flush_bins()
        chosen: list[Segment] = []
        for *_, segment in reversed(self._whole):
            if segment.nbytes < least or nbytes <= 0:
                break
            nbytes -= segment.nbytes
            chosen.append(segment)
        for segment in chosen:
            self._unplace(segment.first)
            remove(self._segments, segment.address)
        return chosen

    def restore(self, chunks: Iterable[Chunk], stream: int | None = None) -> None:
        """Put chunks back, merged; as a stream's own, if no other's work uses them."""
        for chunk in chunks:
            chunk.stream = chunk.stream if stream is None else stream
            self._add_free(chunk)

    def lift(self, stream: int | None = None) -> list[Chunk]:
        """Take out the free chunks, or those of one stream.

        What is freed from now on stays apart from them, until :meth:`restore`.
        """
        self.flush_bins()
        free_lists = self._free_lists.items()
        chosen = (each for (own, _), each in free_lists if stream in (None, own))
        lifted = [chunk for free_list in chosen for *_, chunk in free_list]
        for chunk in lifted:
            self._unplace(chunk)
        for key in [key for key, chunks in self._free_lists.items() if not chunks]:
            del self._free_lists[key]  # of streams that ended, above all
        return lifted

    def inherit(self, handle: int, stream: int) -> list[Chunk]:
        """Make all of a stream that ended another's; return what of it is in use."""
        self.restore(self.lift(handle), stream)
        used = [chunk for chunk in self.unlisted() if chunk.stream == handle]
        for chunk in used:
            chunk.stream = stream
        return used

    def is_small(self, segment: Segment) -> bool:
        """Say whether small requests share a segment."""
        return segment.nbytes <= 2 * self.policy.small

    def find(self, address: int) -> Chunk | None:
        """Return the chunk that holds an address, or None."""
        at = bisect_left(self._segments, (address + 1,))
        return self._segments[at - 1][-1].find(address) if at else None

    def unlisted(self) -> list[Chunk]:
        """Return the chunks that are in use, or wait for queued work."""
        self.flush_bins()
        return [c for segment in self for c in segment if not c.listed]

    def binned(self) -> Iterator[Chunk]:
        """Return the free chunks that wait in bins."""
        return chain.from_iterable(self.bins.values())

    def __iter__(self) -> Iterator[Segment]:
        return (segment for _, segment in self._segments)

    def _carve(self, chunk: Chunk, nbytes: int) -> Chunk:
        """Take a listed chunk, and shelve what the request leaves of it."""
        self._unplace(chunk)
        granted = self.granted(nbytes)
        if self.policy.splits and chunk.nbytes - granted >= self.quantum:
            self._place(chunk.split(granted))
        return chunk

    def _add_free(self, chunk: Chunk) -> None:
        """Put a free chunk on its free_list, merged with free neighbours."""
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
        free_list = self._free_lists[chunk.stream, self.is_small(segment)]
        insort(free_list, (chunk.nbytes, chunk.address, chunk))
        chunk.listed, chunk.release = True, lost
        if chunk.nbytes == segment.nbytes:
            insort(self._whole, (segment.nbytes, segment.address, segment))

    def _unplace(self, chunk: Chunk) -> None:
        """Take a chunk from its free_list."""
        segment = chunk.segment
        free_list = self._free_lists[chunk.stream, self.is_small(segment)]
        remove(free_list, chunk.nbytes, chunk.address)
        chunk.listed = False
        if chunk.nbytes == segment.nbytes:
            remove(self._whole, segment.nbytes, segment.address)
