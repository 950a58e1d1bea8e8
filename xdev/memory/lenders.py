"""Lenders: how a stock borrows from its source within its budget.

A plain source has lent all that it holds for the pool. One in stream order (policy
``async``) also keeps what it was given back: the budget counts that too, so it follows
what the source says that it holds.
"""

from __future__ import annotations

from contextlib import suppress
from operator import index
from typing import TYPE_CHECKING, Any, final

from xdev.errors import XdevError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from xdev.memory.blocks import Segment
    from xdev.memory.budgets import Budget
    from xdev.memory.policies import Policy
    from xdev.memory.sources import Source
    from xdev.memory.sources.asynchronous import AsyncSource

    class Lender(Protocol):
        """What a stock asks.

        The methods are called without the lock of its ledger, but for :meth:`borrow` in
        a finalizer.
        """

        #: What the budget counts of it [B].
        drawn: int

        @property
        def lent(self) -> dict[int, tuple[int, ...]]:
            """What the source has lent and not got back: its size first, by address."""

        @property
        def held(self) -> int | None:
            """What the source holds in all, or None: what it has lent [B]."""

        def borrow(self, size: int, stream: int) -> int | MemoryError | None:
            """Return the address of fresh memory, or why the source has none.

            None where the budget has no room.

            Raises
            ------
            XdevError
                The source broke its promise.
            """

        def take_back(self, segment: Segment) -> int:
            """Give a segment back; return how much of it left the pool's hands [B]."""

        def trim(self, nbytes: int | None) -> int:
            """Have the source give back at least so much (None: all) of what it keeps.

            Return how much went [B].
            """

        def settle(self) -> None:
            """Bring the budget up to date."""

        def recount(self) -> None:
            """Count what is lent, whatever was half done; nobody borrows meanwhile."""


ADDRESSES = 1 << 64  # every address is below
METHODS = "allocate", "free", "record", "wait", "done", "synchronize"  # of a source


@final
class Desk:
    """Where a source's memory is looked at before anybody gets it.

    Parameters
    ----------
    source : Source or AsyncSource
        Its ``alignment`` is what it promises.
    name : str
        Whose memory it is, for messages.
    count : callable
        ``count("failures")`` is called where the source has none.
    """

    def __init__(self, source: Any, name: str, count: Callable[[str], object]) -> None:
        self._source, self._name, self._count = source, name, count
        self._alignment: int = getattr(source, "alignment", 1)
        #: What is lent: size, and stream if it has one, by address.
        self.lent: dict[int, tuple[int, ...]] = {}
        #: Orders and what came of them, until it is lent; by identity.
        self._orders: dict[int, tuple[tuple[int, ...], list[Any]]] = {}

    def fetch(self, size: int, *stream: int) -> int | MemoryError:
        """Allocate in the order of a stream, if any; return an address, or why not."""
        order: tuple[tuple[int, ...], list[Any]] = ((size, *stream), [])
        self._orders[id(order)] = order
        try:  # in one step of C's from the source's return on: it is never lost
            order[1].extend(map(self._source.allocate, *zip(order[0])))
        except MemoryError as error:
            self._orders.pop(id(order), None)
            self._count("failures")
            return MemoryError(*error.args)  # without frames: they keep names
        address = self._enter(order)
        if address == 0:
            self._count("failures")
            return MemoryError(f"{self._name}: the source returned no address")
        return address

    def _enter(self, order: tuple[tuple[int, ...], list[Any]]) -> int:
        """Note what came of an order as lent; 0 where it is no memory."""
        found = order[1][0]
        says = f"{self._name}: the source returned"
        try:
            address = 0 if found is None else index(found)
        except TypeError:
            address = -1
        if not 0 <= address < ADDRESSES:
            self._orders.pop(id(order), None)
            raise XdevError(f"{says} {found!r}, which is not an address")
        if address:
            self.lent[address] = order[0]
        self._orders.pop(id(order), None)  # another thread may have recounted
        if address % self._alignment:
            self.free(address, *order[0])
            aligned = f"not aligned to {self._alignment} B"
            raise XdevError(f"{says} {address:#x}, {aligned}")
        return address

    def free(self, address: int, *order: int) -> None:
        """Give back what was lent, in one step with its being so."""
        freed = map(self._source.free, (address,), *zip(order))
        list(map(self.lent.pop, (address,), freed))

    def recount(self) -> int:
        """Enter what came of orders; return how much is lent [B].

        Orders of which nothing came yet may be another thread's, and stay.
        """
        for order in list(self._orders.values()):
            if order[1]:
                with suppress(XdevError):  # it is no memory
                    self._enter(order)
        return sum(order[0] for order in list(self.lent.values()))


@final
class PlainLender:
    """Borrows from a source that keeps nothing."""

    held = None

    def __init__(self, budget: Budget, desk: Desk) -> None:
        self._budget, self._desk = budget, desk
        self.lent, self.drawn = desk.lent, 0

    def borrow(self, size: int, stream: int) -> int | MemoryError | None:  # noqa: ARG002
        """Allocate."""
        if not self._budget.draw(self, size):
            return None
        try:
            found = self._desk.fetch(size)
        except BaseException:
            self.recount()
            raise
        if isinstance(found, MemoryError):
            self._budget.draw(self, -size)
        return found

    def take_back(self, segment: Segment) -> int:
        """Free: all of it is gone."""
        self._desk.free(segment.address, segment.nbytes)
        self._budget.draw(self, -segment.nbytes)
        return segment.nbytes

    def trim(self, nbytes: int | None) -> int:  # noqa: ARG002
        """Do nothing: nothing is kept."""
        return 0

    def settle(self) -> None:
        """Do nothing: what is lent is what is drawn."""

    def recount(self) -> None:
        """Draw what is lent."""
        while self.drawn != self._desk.recount():  # a finalizer may borrow meanwhile
            self._budget.note(self, self._desk.recount())


@final
class AsyncLender:
    """Borrows from a source in stream order; what it holds is drawn.

    ``count("syncs")`` is called for each wait for all queued work.
    """

    def __init__(
        self,
        source: AsyncSource,
        budget: Budget,
        desk: Desk,
        count: Callable[[str], object],
    ) -> None:
        self._source, self._budget, self._desk = source, budget, desk
        self._count = count
        self.lent, self.drawn = desk.lent, 0
        self._used = 0  # of what is drawn

    @property
    def held(self) -> int:
        """What the source held when last asked [B]."""
        return self.drawn

    def borrow(self, size: int, stream: int) -> int | MemoryError | None:
        """Allocate; what the source keeps may serve, at no charge to the budget."""
        fresh = max(0, size - (self.drawn - self._used))
        if not (self._budget.admits(size) and self._budget.draw(self, fresh)):
            return None
        try:
            found = self._desk.fetch(size, stream)
        except BaseException:
            self.recount()
            raise
        if isinstance(found, MemoryError):
            self.settle()
            return found
        self._used += size
        if self._budget.draw(self, self._source.held() - self.drawn):
            return found
        self._undo(found, size, stream)
        return None

    def _undo(self, address: int, size: int, stream: int) -> None:
        """Get below the limit again: what was kept did not do, and more is too much."""
        try:
            self._desk.free(address, size, stream)
            self._used -= size
            self._source.synchronize()
            self._count("syncs")
            self._source.trim(self.drawn)
        finally:
            self.settle()

    def take_back(self, segment: Segment) -> int:
        """Free: the source keeps it."""
        self._desk.free(segment.address, segment.nbytes, segment.first.stream)
        self._used -= segment.nbytes
        return 0

    def trim(self, nbytes: int | None) -> int:
        """Have the source give back; the difference of what it held is exact."""
        before = self._source.held()
        try:
            self._source.trim(0 if nbytes is None else max(0, before - nbytes))
        finally:
            self.settle()
        return before - self.drawn

    def settle(self) -> None:
        """Count what the source holds now."""
        self._budget.note(self, self._source.held())

    def recount(self) -> None:
        """Count what is lent, and what the source holds."""
        while self._used != self._desk.recount():  # likewise
            self._used = self._desk.recount()
        self.settle()


def lender_of(
    source: Any,
    policy: Policy,
    budget: Budget,
    name: str,
    count: Callable[[str], object],
) -> Lender:
    """Return what borrows from a source that fits a policy."""
    desk = Desk(source, name, count)
    if policy.asynchronous:
        return AsyncLender(source, budget, desk, count)
    return PlainLender(budget, desk)


def lent_by(source: Source, policy: Policy) -> Source | AsyncSource:
    """Return what a pool borrows from: beside a plain source, its one in stream order.

    Raises
    ------
    TypeError
        It is no source.
    ConfigurationError
        The policy needs one in stream order, and there is none.
    """
    if isinstance(source, type) or not all(hasattr(source, each) for each in METHODS):
        needs = f"an object with the methods {', '.join(METHODS)}"
        raise TypeError(f"{source!r} is not a source of memory: give {needs}")
    if not policy.asynchronous:
        return source
    from xdev.memory.sources.asynchronous import in_stream_order

    return in_stream_order(source)
