"""Pieces of memory as integers: chunks, the segments they tile, lists of free ones.

Nothing here has a lock, a device or a clock. A *segment* is what a source lent; its
*chunks* tile it from end to end, in a doubly linked list. A chunk is live (someone
uses it), binned (free, waiting in the last-in-first-out list of its class) or listed
(free, ordered by size, merged with free neighbours).
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right, insort
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


K = TypeVar("K", bound=Any)
V = TypeVar("V")


@final
class Ordered(Generic[K, V]):
    """Values by keys that can be compared; a key is here once.

    Examples
    --------
    >>> starts = Ordered()
    >>> for key in (30, 10, 20):
    ...     starts.add(key, f"from {key}")
    >>> starts.floor(25), starts.ceiling(25), starts.floor(5)
    ('from 20', 'from 30', None)
    >>> starts.pop(20), list(starts), len(starts)
    ('from 20', ['from 10', 'from 30'], 2)
    """

    __slots__ = ("_keys", "_values")

    def __init__(self) -> None:
        self._values: dict[K, V] = {}
        self._keys: list[K] = []  # sorted; to move 100,000 of them takes 10 us

    def add(self, key: K, value: V) -> None:
        """Put a value at a key; where the key is here, in place of its value."""
        if key not in self._values:
            insort(self._keys, key)
        self._values[key] = value

    def pop(self, key: K) -> V:
        """Remove a key and return its value; KeyError where it is not here."""
        value = self._values.pop(key)
        del self._keys[bisect_left(self._keys, key)]
        return value

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        return self._values.get(key)

    def floor(self, key: K) -> V | None:
        """Return the value of the last key up to this one, or None."""
        at = bisect_right(self._keys, key)
        return self._values[self._keys[at - 1]] if at else None

    def ceiling(self, key: K) -> V | None:
        """Return the value of the first key from this one on, or None."""
        at = bisect_left(self._keys, key)
        return self._values[self._keys[at]] if at < len(self._keys) else None

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[V]:
        return map(self._values.__getitem__, self._keys)

    def __reversed__(self) -> Iterator[V]:
        return map(self._values.__getitem__, reversed(self._keys))


def round_up(nbytes: int, quantum: int) -> int:
    """Return the smallest positive multiple of ``quantum`` that holds ``nbytes``.

    Examples
    --------
    >>> round_up(1, 512), round_up(1024, 512), round_up(0, 64)
    (512, 1024, 64)
    """
    return max(1, -(-nbytes // quantum)) * quantum


@final
class Segment:
    """A range that a source lent, tiled by chunks from ``first`` on.

    ``owner`` keeps alive whatever must outlive the segment's chunks.
    """

    __slots__ = ("address", "first", "index", "nbytes", "owner")

    def __init__(self, address: int, nbytes: int, owner: object) -> None:
        self.address, self.nbytes, self.owner = address, nbytes, owner
        self.first = Chunk(address, nbytes, self)
        #: Chunks by address, from the first search on: most segments never see one.
        self.index: Ordered[int, Chunk] | None = None

    def find(self, address: int) -> Chunk | None:
        """Return the chunk that holds an address; O(log n) but for the first time."""
        if not self.address <= address < self.address + self.nbytes:
            return None
        if self.index is None:
            self.index = Ordered()
            for chunk in self:
                self.index.add(chunk.address, chunk)
        return self.index.floor(address)

    def mend(self) -> None:
        """Make the chunks what their links forward say, whatever was half done.

        To add a chunk and to take one out each are one link; no chunk is listed.
        """
        self.index = None
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
        inside = ALONE + 1 + (self.index is not None)  # the link to it
        return [
            (chunk, count - inside - (chunk.after is not None))
            for chunk, count in zip(chunks, references(chunks), strict=True)
        ]

    def __iter__(self) -> Iterator[Chunk]:
        chunk: Chunk | None = self.first
        while chunk is not None:
            yield chunk
            chunk = chunk.after


@final
class Chunk:
    """One piece of a segment.

    Attributes
    ----------
    address, nbytes : int
        Where it is, and its size [B].
    request : int or None
        The size last asked for [B]; None where the chunk must not be handed out again
        without a look at it.
    stream : int
        Whose queued work may still use it.
    release : callable
        Takes the chunk back; safe in a finalizer. It never locks and never blocks.
    reuses : int
        How often it was handed out again without its pool's lock.
    uses : set of int or None
        Other streams that use it, by ``record_stream``.
    """

    __slots__ = (
        *("address", "after", "before", "listed", "nbytes", "release"),
        *("request", "reuses", "segment", "stream", "uses"),
    )

    def __init__(
        self, address: int, nbytes: int, segment: Segment, stream: int = 0
    ) -> None:
        self.address, self.nbytes, self.segment = address, nbytes, segment
        self.stream, self.reuses = stream, 0
        self.request: int | None = None
        self.before: Chunk | None = None
        self.after: Chunk | None = None
        self.listed = False
        self.release: Callable[[Any], object] = lost
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
        if self.segment.index is not None:
            self.segment.index.add(rest.address, rest)
        return rest

    def absorb(self) -> None:
        """Take the next chunk's bytes; that chunk is no more."""
        gone = self.after
        if gone is None:
            raise ValueError("the last chunk of a segment has no neighbour to absorb")
        self.nbytes += gone.nbytes
        self.after = gone.after
        if gone.after is not None:
            gone.after.before = self
        if self.segment.index is not None:
            self.segment.index.pop(gone.address)


def references(held: list[Any]) -> list[int]:
    """Return how many references the interpreter counts to each item of a list."""
    return [sys.getrefcount(each) for each in held]


ALONE = references([object()])[0]  # an object that nothing but the list refers to


def lost(chunk: Chunk) -> None:
    """Take back a chunk that is not handed out: there is nothing to do."""


@final
class FreeList:
    """Free chunks ordered by size; the best fit among n is O(log n) away."""

    __slots__ = ("_sizes",)

    def __init__(self) -> None:
        self._sizes: Ordered[int, dict[int, Chunk]] = Ordered()  # then by address

    def add(self, chunk: Chunk) -> None:
        """Put a chunk in its place."""
        same = self._sizes.get(chunk.nbytes)
        if same is None:
            self._sizes.add(chunk.nbytes, {chunk.address: chunk})
        else:
            same[chunk.address] = chunk
        chunk.listed = True

    def remove(self, chunk: Chunk) -> None:
        """Take out a chunk that is here; KeyError where it is not."""
        same = self._sizes.get(chunk.nbytes) or {}
        del same[chunk.address]
        if not same:
            self._sizes.pop(chunk.nbytes)
        chunk.listed = False

    def best(self, nbytes: int) -> Chunk | None:
        """Return the smallest chunk that holds ``nbytes``, the last added of those."""
        same = self._sizes.ceiling(nbytes)
        return None if same is None else next(reversed(same.values()))

    def __iter__(self) -> Iterator[Chunk]:
        for same in self._sizes:
            yield from same.values()
