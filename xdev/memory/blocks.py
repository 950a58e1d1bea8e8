"""Pieces of memory as integers: chunks, the segments they tile, shelves of free ones.

Nothing here has a lock, a device or a clock. A *segment* is what a source lent; its
*chunks* tile it from end to end, in a doubly linked list. A chunk is live (someone
uses it), binned (free, waiting in the last-in-first-out list of its class) or shelved
(free, ordered by size, merged with free neighbours).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def round_up(nbytes: int, quantum: int) -> int:
    """Return the smallest positive multiple of ``quantum`` that holds ``nbytes``.

    Examples
    --------
    >>> round_up(1, 512), round_up(1024, 512), round_up(0, 64)
    (512, 1024, 64)
    """
    return max(1, -(-nbytes // quantum)) * quantum


@final
class Bin:
    """The free chunks of one stream and one class, last in, first out."""

    __slots__ = ("chunks", "noted")

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.noted = False  # whether the heap's list of bins to settle holds it


@final
class Segment:
    """A range that a source lent, tiled by chunks from ``first`` on.

    ``owner`` keeps alive whatever must outlive the segment's chunks.
    """

    __slots__ = ("address", "first", "nbytes", "owner")

    def __init__(self, address: int, nbytes: int, owner: object) -> None:
        self.address, self.nbytes, self.owner = address, nbytes, owner
        self.first = Chunk(address, nbytes, self)

    def __iter__(self) -> Iterator[Chunk]:
        chunk: Chunk | None = self.first
        while chunk is not None:
            yield chunk
            chunk = chunk.after

    @property
    def whole(self) -> bool:
        """Whether one shelved chunk covers the segment."""
        return self.first.shelved and self.first.after is None


@final
class Chunk:
    """One piece of a segment.

    Attributes
    ----------
    address, nbytes : int
        Where it is, and its size [B].
    request : int
        The size last asked for [B]; -1 where the chunk must not be handed out again
        without a look at it.
    stream : int
        Whose queued work may still use it.
    bin : Bin or None
        Where it goes when it is given back.
    give : callable
        Takes the chunk back; safe in a finalizer. It never locks and never blocks.
    reuses : int
        How often it was handed out again without its pool's lock.
    uses : set of int or None
        Other streams that use it, by ``record_stream``.
    """

    __slots__ = (
        "address",
        "after",
        "before",
        "bin",
        "give",
        "nbytes",
        "request",
        "reuses",
        "segment",
        "shelved",
        "stream",
        "uses",
    )

    def __init__(
        self, address: int, nbytes: int, segment: Segment, stream: int = 0
    ) -> None:
        self.address, self.nbytes, self.segment = address, nbytes, segment
        self.stream, self.request, self.reuses = stream, -1, 0
        self.before: Chunk | None = None
        self.after: Chunk | None = None
        self.shelved = False
        self.bin: Bin | None = None
        self.give: Callable[[Any], object] = lost
        self.uses: set[int] | None = None

    def split(self, nbytes: int) -> Chunk:
        """Keep the first ``nbytes`` and return the rest as a chunk of its own."""
        rest = Chunk(
            self.address + nbytes, self.nbytes - nbytes, self.segment, self.stream
        )
        rest.before, rest.after = self, self.after
        if self.after is not None:
            self.after.before = rest
        self.after = rest
        self.nbytes = nbytes
        return rest

    def twin(self) -> Chunk:
        """Return a chunk that takes this one's place; giving this one does nothing."""
        twin = Chunk(self.address, self.nbytes, self.segment, self.stream)
        twin.before, twin.after = self.before, self.after
        if self.before is None:
            self.segment.first = twin
        else:
            self.before.after = twin
        if self.after is not None:
            self.after.before = twin
        twin.request, twin.reuses, twin.uses = self.request, self.reuses, self.uses
        twin.bin, twin.give, self.give = self.bin, self.give, lost
        return twin

    def absorb(self) -> None:
        """Take the next chunk's bytes; that chunk is no more."""
        lost = self.after
        if lost is None:
            raise ValueError("the last chunk of a segment has no neighbour to absorb")
        self.nbytes += lost.nbytes
        self.after = lost.after
        if lost.after is not None:
            lost.after.before = self


def lost(chunk: Chunk) -> None:
    """Take back a chunk that is not handed out: there is nothing to do."""


@final
class Shelf:
    """Free chunks ordered by size; O(log n) to find the best fit among n sizes."""

    __slots__ = ("_chunks", "_sizes")

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._chunks: dict[int, dict[int, Chunk]] = {}  # by size, then address

    def add(self, chunk: Chunk) -> None:
        """Put a chunk in its place."""
        same = self._chunks.get(chunk.nbytes)
        if same is None:
            same = self._chunks[chunk.nbytes] = {}
            insort(self._sizes, chunk.nbytes)
        same[chunk.address] = chunk
        chunk.shelved = True

    def remove(self, chunk: Chunk) -> None:
        """Take out a chunk that is here."""
        same = self._chunks[chunk.nbytes]
        del same[chunk.address]
        if not same:
            del self._chunks[chunk.nbytes]
            del self._sizes[bisect_left(self._sizes, chunk.nbytes)]
        chunk.shelved = False

    def best(self, nbytes: int) -> Chunk | None:
        """Return the smallest chunk that holds ``nbytes``, the last added of those."""
        at = bisect_left(self._sizes, nbytes)
        if at == len(self._sizes):
            return None
        return next(reversed(self._chunks[self._sizes[at]].values()))

    def __iter__(self) -> Iterator[Chunk]:
        for same in self._chunks.values():
            yield from same.values()
