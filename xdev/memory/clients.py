"""C functions as clients of a stock: through its front."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from xdev.memory.native.front import Front
from xdev.memory.policies import eighth

if TYPE_CHECKING:
    from xdev.memory.blocks import Chunk
    from xdev.memory.heap import Heap
    from xdev.memory.stock import Stock


@final
class Clients:
    """Makes a stock's front, at the first client, and hands chunks over to it."""

    def __init__(self, stock: Stock) -> None:
        self._stock = stock

    def make_front(self) -> Front | None:
        """Return the front, made at the first call; None where nothing is kept."""
        stock = self._stock
        if stock.front is None and stock.policy.keeps:
            eighths = stock.policy.granted is eighth
            made = Front(stock.quantum, eighths=eighths)  # compiles: not under the lock
            stock.aside(lambda: self.put_front(made))
        return stock.front

    def put_front(self, front: Front) -> None:
        """Let a front serve from the stock's memory, unless one does."""
        stock = self._stock
        if stock.front is not None:
            return
        stock.front, stock.heap.elsewhere = front, stock.from_front
        stock.ledger.share(front.words)
        front.open(hands_out=not stock.listeners)
        front.shut(shut=stock.shut)

    def hand_over(self, chunk: Chunk, *, free: bool, answer: int = 0) -> bool:
        """Let the front hold a chunk in use; say whether it does.

        The parameters are :meth:`Front.hold`'s.
        """
        stock, front = self._stock, self._stock.front
        if front is None or (free and stock.listeners):
            return False
        request = chunk.request
        granted = 0 if request is None else stock.heap.granted(request)

        def hold(heap: Heap) -> bool:
            if front.full():
                for idle in stock.from_front():
                    heap.put(idle)
            return front.hold(chunk, granted, free=free, answer=answer)

        return bool(stock.decide(hold))
