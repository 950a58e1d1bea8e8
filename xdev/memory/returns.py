"""Memory on its way back to the source."""

from __future__ import annotations

from functools import partial
from operator import index
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from xdev.memory.blocks import Segment
    from xdev.memory.heap import Heap
    from xdev.memory.stock import Stock


@final
class Returns:
    """What a stock gives back: wholly free segments, and what its lender keeps.

    Each step is one of the stock's moves, so that nobody is refused meanwhile.
    """

    def __init__(self, stock: Stock) -> None:
        self._stock = stock

    def reclaim(self, nbytes: int | None) -> int:
        """Give back ``nbytes``, or all that can be (None), as :meth:`Pool.reclaim`."""
        nbytes, stock = enough_bytes(nbytes), self._stock
        freed = stock.tend() or 0
        if stock.settled():
            stock.sweep()
        if nbytes is None or freed < nbytes:
            freed += self.give_back(None if nbytes is None else nbytes - freed)
        enough = nbytes is not None and freed >= nbytes
        if not enough and stock.ledger.reserved > stock.ledger.allocated:
            freed += stock.synchronize()  # what waits for queued work is free after it
            rest = None if nbytes is None else max(0, nbytes - freed)
            freed += self.give_back(rest)
        return freed

    def give_back(self, nbytes: int | None = None) -> int:
        """Return what is wholly free to the source, and have it keep none [B].

        As much as makes ``nbytes`` or more; None: all. How much went is exact.
        """
        stock = self._stock
        if not stock.settled():
            return 0
        return stock.move(partial(self._give_back, nbytes))

    def _give_back(self, nbytes: int | None) -> int:
        _, total = self.segments(nbytes)
        if nbytes is None or total < nbytes:
            rest = None if nbytes is None else nbytes - total
            total += self._stock.lender.trim(rest)
            self._stock.decide(self._hold)
        return total

    def trim(self, least: int) -> None:
        """Return wholly free segments of at least ``least`` bytes, and count them."""
        count, _ = self.segments(least=least)
        self._stock.count("trims", count)

    def segments(self, nbytes: int | None = None, least: int = 0) -> tuple[int, int]:
        """Return wholly free segments; how many, and how much left our hands [B]."""
        return self._stock.move(partial(self._segments, nbytes, least))

    def _segments(self, nbytes: int | None, least: int) -> tuple[int, int]:
        stock = self._stock
        segments = stock.decide(lambda heap: heap.spare(nbytes, least)) or []
        count = total = 0
        try:
            for segment in segments:
                total += stock.lender.take_back(segment)
                count += 1
        finally:
            self._settle(segments)
        return count, total

    def _settle(self, segments: list[Segment]) -> None:
        """Note which segments went back, and put the others back into the heap."""
        stock = self._stock
        lent = stock.lender.lent
        gone = [segment for segment in segments if segment.address not in lent]

        def note(heap: Heap) -> None:
            for segment in segments:
                if segment.address in lent:
                    heap.restore(segment.first)
            for segment in gone:
                stock.segments.pop(segment.address, None)
                stock.ledger.shrink(segment.nbytes, stock.lender.held)
            self._hold(heap)

        try:
            stock.lender.settle()
        finally:
            stock.decide(note)
            for segment in gone:
                for listener in stock.listeners:
                    listener.returned(stock, segment.address, segment.nbytes)

    def _hold(self, _: Heap) -> None:
        """Note what a source in stream order holds; called with the lock held."""
        held = self._stock.lender.held
        if held is not None:
            self._stock.ledger.hold(held)


def enough_bytes(nbytes: int | None) -> int | None:
    """Return how much a reclaim shall give back, or raise TypeError or ValueError."""
    if nbytes is None:
        return None
    try:
        enough = index(nbytes)
    except TypeError:
        message = f"{nbytes!r} cannot be reclaimed: give bytes as an int, such as 2**30"
        raise TypeError(f"{message}, or None for all") from None
    if enough < 0:
        message = f"{nbytes} B cannot be reclaimed: ask for 0 or more, or None"
        raise ValueError(message)
    return enough
