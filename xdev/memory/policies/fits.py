"""Fits: which free chunk of a shelf serves a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdev.memory.blocks import Chunk, Shelf

WASTE = 8  # a snug fit is at most one part in so many larger than asked
QUANTUM = 512  # and never counts less than this as waste [B]


def best(shelf: Shelf, nbytes: int) -> Chunk | None:
    """Return the smallest chunk that is large enough; O(log n)."""
    return shelf.best(nbytes)


def snug(shelf: Shelf, nbytes: int) -> Chunk | None:
    """Return the smallest chunk, where at most an eighth of it would be wasted."""
    chunk = shelf.best(nbytes)
    if chunk is None or chunk.nbytes > nbytes + max(nbytes // WASTE, QUANTUM):
        return None
    return chunk


def first(shelf: Shelf, nbytes: int) -> Chunk | None:
    """Return the chunk of lowest address that is large enough; O(n)."""
    large = (chunk for chunk in shelf if chunk.nbytes >= nbytes)
    return min(large, key=lambda chunk: chunk.address, default=None)
