"""Lenders: how a stock borrows from its source within its budget.

A plain source has lent all that it holds for the pool. One in stream order (policy
``async``) also keeps what it was given back: the budget counts that too, so it follows
what the source says that it holds.
"""

from __future__ import annotations

import threading
from collections import deque
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

        @property
        def held(self) -> int | None:
            """What the source holds in all, or None: what it has lent [B]."""

        def borrow(self, size: int, stream: int) -> int | None:
            """Return the address of fresh memory; None where the budget has no room.

            Raises
            ------
            MemoryError
                The source has none.
            XdevError
                It broke its promise.
            """

        def take_back(self, segment: Segment) -> int:
            """Give a segment back; return how much of it left the pool's hands [B]."""

        def trim(self, nbytes: int | None) -> int:
            """Have the source give back at least so much (None: all) of what it keeps.

            Return how much went [B].
            """

        def settle(self) -> None:
            """Bring the budget up to date."""


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

    def fetch(self, size: int, *order: int) -> int:
        """Allocate in the ``order`` of a stream, if any; return an address."""
        try:
            found = self._source.allocate(size, *order)
        except MemoryError:
            self._count("failures")
            raise
        if found is None or found == 0:
            self._count("failures")
            raise MemoryError(f"{self._name}: the source returned no address")
        try:
            address = index(found)
        except TypeError:
            address = -1
        says = f"{self._name}: the source returned"
        if not 0 < address < ADDRESSES:
            raise XdevError(f"{says} {found!r}, which is not an address")
        if address % self._alignment:
            self._source.free(address, size, *order)
            aligned = f"not aligned to {self._alignment} B"
            raise XdevError(f"{says} {address:#x}, {aligned}")
        return address


@final
class PlainLender:
    """Borrows from a source that keeps nothing."""

    held = None

    def __init__(self, source: Source, budget: Budget, desk: Desk) -> None:
        self._source, self._budget, self._desk = source, budget, desk

    def borrow(self, size: int, stream: int) -> int | None:  # noqa: ARG002
        """Allocate."""
        if not self._budget.draw(size):
            return None
        address = None
        try:
            address = self._desk.fetch(size)
        finally:
            if address is None:
                self._budget.refund(size)
        return address

    def take_back(self, segment: Segment) -> int:
        """Free: all of it is gone."""
        self._source.free(segment.address, segment.nbytes)
        self._budget.refund(segment.nbytes)
        return segment.nbytes

    def trim(self, nbytes: int | None) -> int:  # noqa: ARG002
        """Do nothing: nothing is kept."""
        return 0

    def settle(self) -> None:
        """Do nothing: what is lent is what is drawn."""


@final
class AsyncLender:
    """Borrows from a source in stream order.

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
        self._counts = threading.RLock()  # guards the two below; no call but budget's
        self._held = self._lent = 0
        #: Address, size and stream of what nobody has got, until it is freed.
        self._owed: deque[tuple[int, int, int]] = deque()

    @property
    def held(self) -> int:
        """What the source held when last asked [B]."""
        return self._held

    def borrow(self, size: int, stream: int) -> int | None:
        """Allocate; what the source keeps may serve, at no charge to the budget."""
        fresh = max(0, size - (self._held - self._lent))
        if not (self._budget.admits(size) and self._draw(fresh)):
            return None
        address = None
        try:
            address = self._desk.fetch(size, stream)
        finally:
            if address is None:
                self.settle()
        with self._counts:
            self._lent += size
        drawn = False
        try:
            drawn = self._draw(self._source.held() - self._held)
        finally:
            if not drawn:
                self._undo(address, size, stream)
        return address if drawn else None

    def _undo(self, address: int, size: int, stream: int) -> None:
        """Get below the limit again: what was kept did not do, and more is too much."""
        self._owed.append((address, size, stream))
        try:
            self._repay()
            self._source.synchronize()
            self._count("syncs")
            self._source.trim(self._held)
        finally:
            self.settle()

    def _repay(self) -> None:
        """Free what nobody has got; what cannot be freed waits for the next time."""
        while self._owed:
            try:
                loan = self._owed.popleft()
            except IndexError:  # a finalizer in this thread was faster
                break
            try:
                self._source.free(*loan)
            except BaseException:
                self._owed.append(loan)
                raise
            with self._counts:
                self._lent -= loan[1]

    def _draw(self, nbytes: int) -> bool:
        with self._counts:
            drawn = nbytes <= 0 or self._budget.draw(nbytes)
            if nbytes < 0:
                self._budget.refund(-nbytes)
            if drawn:
                self._held += nbytes
            return drawn

    def take_back(self, segment: Segment) -> int:
        """Free: the source keeps it."""
        self._source.free(segment.address, segment.nbytes, segment.first.stream)
        with self._counts:
            self._lent -= segment.nbytes
        return 0

    def trim(self, nbytes: int | None) -> int:
        """Have the source give back; the difference of what it held is exact."""
        before = self._source.held()
        try:
            self._repay()
            self._source.trim(0 if nbytes is None else max(0, before - nbytes))
        finally:
            self.settle()
        return before - self._held

    def settle(self) -> None:
        """Free what nobody has got, and count what the source holds now."""
        try:
            self._repay()
        finally:
            held = self._source.held()
            with self._counts:
                change = held - self._held
                self._held = held
                self._budget.refund(-change)


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
    return PlainLender(source, budget, desk)


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
