"""What a pool does, in order, to serve a request: a list of rungs, one loop.

Each rung makes room (or not), then tries. The first rungs are the ordinary way; from
:data:`FIRST_RETRY` on, the source or the limit has refused once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from xdev.errors import OutOfMemoryError
from xdev.memory import hooks
from xdev.memory.streams import live_streams

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.memory.blocks import Chunk
    from xdev.memory.stock import Stock

    Step = Callable[[Stock, int], object]
    Try = Callable[[Stock, int, int], Chunk | None]

TRIMMED = 32 << 20  # wholly free segments from here go back before the pool grows [B]


def near(stock: Stock, nbytes: int, stream: int) -> Chunk | None:
    """Try this stream's free memory of like size."""
    return stock.cached(nbytes, stream, anywhere=False)


def anywhere(stock: Stock, nbytes: int, stream: int) -> Chunk | None:
    """Try all free memory of this stream."""
    return stock.cached(nbytes, stream, anywhere=True)


def steal(stock: Stock, nbytes: int, stream: int) -> Chunk | None:
    """Try other streams' free memory."""
    return stock.steal(nbytes, stream)


def take_over(stock: Stock, nbytes: int, stream: int) -> Chunk | None:
    """Try other streams' large free segments of like size, before they are trimmed.

    Then one stream waits for another, where for a return to the driver all wait, and
    the host. While a graph is captured, no stream may wait for one outside it.
    """
    if live_streams.captured:
        return None
    return stock.steal(nbytes, stream, TRIMMED)


def grow(stock: Stock, nbytes: int, stream: int) -> Chunk | None:
    """Try a new segment of the size that the policy likes."""
    granted = stock.heap.granted(nbytes)
    size = stock.policy.grown(granted, stock.quantum)
    return stock.grow(nbytes, stream, size)


def exact(stock: Stock, nbytes: int, stream: int) -> Chunk | None:
    """Try a new segment of the granted size."""
    return stock.grow(nbytes, stream, stock.heap.granted(nbytes))


def bare(stock: Stock, nbytes: int, stream: int) -> Chunk | None:
    """Try a new segment of the very size, where that is less."""
    less = nbytes < stock.heap.granted(nbytes)
    return stock.grow(nbytes, stream, nbytes) if less else None


def stray(stock: Stock, nbytes: int, stream: int) -> Chunk | None:
    """Try what leaves the heap alone."""
    return stock.stray(nbytes, stream)


def trim(stock: Stock, nbytes: int) -> None:
    """Give back large free segments that did not fit; small requests need no room."""
    if nbytes > stock.policy.small:
        stock.returns.trim(TRIMMED)


def give_back(stock: Stock, _: int) -> None:
    """Give back everything that is wholly free."""
    stock.returns.give_back()


def siblings(stock: Stock, _: int) -> None:
    """Have the device's other pools give back what they cache: its memory is one."""
    for pool in stock.budget.pools():
        if not pool.holds(stock):
            pool.reclaim()


def collect(stock: Stock, _: int) -> None:
    """Collect garbage."""
    stock.collect()


def synchronize(stock: Stock, _: int) -> None:
    """Wait for queued work."""
    stock.synchronize()


def spill(stock: Stock, nbytes: int) -> None:
    """Have live objects written elsewhere until the request would fit."""
    goal = stock.ledger.allocated - nbytes
    for spiller in tuple(hooks.spillers):
        while stock.ledger.allocated > goal and spiller():
            give_back(stock, nbytes)
            siblings(stock, nbytes)


@final
class Rung:
    """Steps that make room, then tries; a plain class for the reason of ``Policy``."""

    __slots__ = ("name", "steps", "tries")

    def __init__(
        self, name: str, steps: tuple[Step, ...], tries: tuple[Try, ...]
    ) -> None:
        self.name, self.steps, self.tries = name, steps, tries

    def __repr__(self) -> str:
        return f"Rung({self.name!r})"


RUNGS = (
    Rung("cache", (), (near, take_over)),
    Rung("grow", (trim,), (grow,)),
    Rung("any fit", (), (anywhere, exact, bare)),
    Rung("give back", (give_back, siblings), (exact, bare)),
    Rung("other streams", (), (steal,)),
    Rung("collect", (collect,), (anywhere, exact, bare, steal)),
    Rung("synchronize", (synchronize,), (anywhere, steal)),
    Rung("give all back", (give_back, siblings), (exact, bare)),
)
SPILL = Rung("spill", (spill,), (anywhere, exact, bare))
APART = (Rung("apart", (), (stray,)),)  # for a finalizer in the middle of a decision
FIRST_RETRY = 2
HOLDERS = 5  # how many lines a refusal names as the largest holders


def climb(stock: Stock, nbytes: int, stream: int) -> Chunk:
    """Return a chunk for a request.

    Raises
    ------
    OutOfMemoryError
        No rung could serve it; the source's own error, if any, is its cause.
    """
    rungs: tuple[Rung, ...] = APART
    reason: MemoryError | None = None
    if stock.tend() is not None:
        rungs = (*RUNGS, SPILL) if hooks.spillers else RUNGS
        stock.waits.meet(stream)
        if stock.budget.excess:
            stock.budget.shrink()
    for number, rung in enumerate(rungs):
        if number == FIRST_RETRY:
            stock.count("retries")
        for step in rung.steps:
            step(stock, nbytes)
        for attempt in rung.tries:
            try:
                chunk = attempt(stock, nbytes, stream)
            except MemoryError as error:
                reason = MemoryError(*error.args)  # without frames: they keep names
                continue
            if chunk is not None:
                return chunk
    raise refusal(stock, nbytes) from reason


def refusal(stock: Stock, nbytes: int, library: str = "") -> OutOfMemoryError:
    """Return the error of a request that could not be served, and count it.

    ``library`` is what a library said that allocates for itself.
    """
    stock.count("refusals")
    holders: tuple[str, ...] = ()
    for listener in stock.listeners:
        listener.refused(stock, nbytes)
        holders = holders or listener.largest(stock, HOLDERS)
    held, limit = stock.ledger, stock.budget.limit
    return OutOfMemoryError(
        stock.name, nbytes, held.allocated, held.reserved, limit, holders, library
    )
