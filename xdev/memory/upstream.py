"""How a pool borrows from its source, within the limit of its device.

A plain source has lent all that it holds for the pool. One in stream order (policy
``async``) also keeps what it was given back: the budget counts that too, so it follows
what the source says that it holds.
"""

from __future__ import annotations

import threading
import weakref
from contextlib import suppress
from math import inf
from operator import index
from typing import TYPE_CHECKING, Any, final

from xdev import _config
from xdev.errors import ConfigurationError, XdevError, quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.memory.blocks import Policy, Segment
    from xdev.memory.sources import AsyncSource, Source
    from xdev.memory.state import PoolState

ADDRESSES = 1 << 64  # every address is below
METHODS = "allocate", "free", "record", "wait", "done", "synchronize"  # of a source


@final
class Upstream:
    """What a state borrows from a source; what it gets is looked at before.

    The methods are called without the lock of the state's ledger, but for
    :meth:`borrow` in a finalizer. A source in stream order keeps what it is given back.
    """

    def __init__(self, state: PoolState) -> None:
        self._source: Any = state.source
        self._budget, self._name, self._count = state.budget, state.name, state.count
        self._in_order = state.policy.asynchronous
        self._alignment: int = getattr(state.source, "alignment", 1)
        #: What the source has lent and not got back: its size, and stream if it has
        #: one, by address.
        self.lent: dict[int, tuple[int, ...]] = {}
        #: Orders and what came of them, until it is lent; by identity.
        self._orders: dict[int, tuple[tuple[int, ...], list[Any]]] = {}
        self.drawn = 0  # what the budget counts of it [B]
        self._used = 0  # of what is drawn, of a source in stream order

    @property
    def idle(self) -> int:
        """What the source keeps beside what it has lent, when last asked [B]."""
        return self.drawn - self._used if self._in_order else 0

    def borrow(self, size: int, stream: int) -> int | MemoryError | None:
        """Return the address of fresh memory, or why the source has none.

        None where the budget has no room. What the source keeps may serve, at no charge
        to the budget. A source that breaks its promise is an XdevError.
        """
        fresh = max(0, size - self.idle)
        if not (self._budget.admits(size) and self._budget.draw(self, fresh)):
            return None
        try:
            address = self._fetch(size, *[stream] * self._in_order)
        except BaseException:  # others draw on the budget too
            self._budget.draw(self, -fresh)
            raise
        if isinstance(address, MemoryError):
            self._budget.draw(self, -fresh)
            self.update_budget()
        elif self._in_order:
            self._used += size
            if not self._budget.draw(self, self._source.held() - self.drawn):
                self._undo(address, size, stream)
                return None
        return address

    def _undo(self, address: int, size: int, stream: int) -> None:
        """Get below the limit again: what was kept did not do, and more is too much."""
        try:
            self._free(address, size, stream)
            self._used -= size
            self._source.synchronize()
            self._count("syncs")
            self._source.trim(self.drawn)
        finally:
            self.update_budget()

    def take_back(self, segment: Segment) -> int:
        """Give a segment back; return how much of it left the pool's hands [B]."""
        nbytes = segment.nbytes
        if self._in_order:
            self._free(segment.address, nbytes, segment.first.stream)
            self._used -= nbytes
            return 0
        self._free(segment.address, nbytes)
        self._budget.draw(self, -nbytes)
        return nbytes

    def trim(self, nbytes: float) -> int:
        """Have the source give back at least so much, or all, of what it keeps.

        Return how much went: the difference of what it held is exact [B].
        """
        if not self._in_order:
            return 0
        before = self._source.held()
        self._source.trim(max(0, before - nbytes))
        self.update_budget()
        return int(before - self.drawn)

    def update_budget(self) -> None:
        """Bring the budget up to date: what a source keeps it alone knows."""
        if self._in_order:
            self._budget.note(self, self._source.held())

    def recount(self) -> None:
        """Count what is lent, whatever was half done; nobody borrows meanwhile.

        Orders of which nothing came yet may be another thread's, and stay.
        """
        for order in list(self._orders.values()):
            if order[1]:
                with suppress(XdevError):  # it is not an address
                    self._enter(order)
        used = -1
        while used != self._lent():  # a finalizer may borrow meanwhile
            self._used = used = self._lent()
            if not self._in_order:
                self._budget.note(self, used)
        self.update_budget()

    def _lent(self) -> int:
        return sum(order[0] for order in list(self.lent.values()))

    def _fetch(self, *order: int) -> int | MemoryError:
        """Allocate a size, in the order of a stream if any; return an address, or why
        not.
        """
        entry: tuple[tuple[int, ...], list[Any]] = (order, [])
        self._orders[id(entry)] = entry
        try:  # in one step of C's from the source's return on: it is never lost
            entry[1].extend(map(self._source.allocate, *zip(order)))
        except BaseException as error:
            if not entry[1]:
                self._orders.pop(id(entry), None)
            if not isinstance(error, MemoryError):
                raise
            self._count("failures")
            return MemoryError(*error.args)  # without frames: they keep names
        address = self._enter(entry)
        if address == 0:
            self._count("failures")
            return MemoryError(f"{self._name}: the source returned no address")
        return address

    def _enter(self, entry: tuple[tuple[int, ...], list[Any]]) -> int:
        """Note what the source lent; return its address, 0 where it lent nothing."""
        order, (value,) = entry
        says = f"{self._name}: the source returned"
        try:
            address = 0 if value is None else index(value)
        except TypeError:
            address = -1
        if not 0 <= address < ADDRESSES:
            self._orders.pop(id(entry), None)
            raise XdevError(f"{says} {quoted(value)}, which is not an address")
        if address:
            self.lent[address] = order
        self._orders.pop(id(entry), None)  # another thread may have recounted
        if address % self._alignment:
            self._free(address, *order)
            aligned = f"not aligned to {self._alignment} B"
            raise XdevError(f"{says} {address:#x}, {aligned}")
        return address

    def _free(self, address: int, *order: int) -> None:
        """Give back what was lent, in one step with its being so."""
        freed = map(self._source.free, (address,), *zip(order))
        list(map(self.lent.pop, (address,), freed))


def source_for(source: Source, policy: Policy) -> Source | AsyncSource:
    """Return what a pool borrows from: a source, or its one in stream order."""
    if isinstance(source, type) or not all(hasattr(source, each) for each in METHODS):
        needs = f"an object with the methods {', '.join(METHODS)}"
        raise TypeError(f"{quoted(source)} is not a source of memory: give {needs}")
    if not policy.asynchronous:
        return source
    if not hasattr(source, "in_stream_order"):
        name = getattr(source, "name", type(source).__name__)
        text = f"{name} has no memory in stream order, which policy 'async' needs"
        raise ConfigurationError(f"{text}: use 'split', 'binned', 'simple' or 'none'")
    stream_ordered: AsyncSource = source.in_stream_order()
    return stream_ordered


UNKNOWN = (
    "neither the source nor the system tells how much memory there is in total, so a "
    "share is not known: give the limit in bytes (4294967296), or as a size ('4GiB')"
)


@final
class Budget:
    """A limit on reserved bytes, shared by the pools that draw on it.

    A limit that is lowered takes nothing from anybody. While more is held than it
    allows, what is free goes back, pools hand out free memory only so far as all that
    is in use stays within the limit, and they get no more of it. ``total()`` is what a
    share such as ``"80%"`` is of [B].

    Its lock is a leaf, held for assignments only: the collector cannot run there.
    """

    def __init__(self, total: Callable[[], int]) -> None:
        self._lock = threading.RLock()
        self._total = total
        self.limit: int | None = None
        self.reserved = 0  # what the pools hold together [B]
        self._pools: list[weakref.ref[Any]] = []

    def join(self, pool: Any) -> None:
        """Count a pool among those that draw; somebody else keeps it."""
        self._pools.append(weakref.ref(pool, self._pools.remove))

    def pools(self) -> list[Any]:
        """Return the pools that draw."""
        pools = [pool() for pool in tuple(self._pools)]
        return [pool for pool in pools if pool is not None]

    def set(self, limit: float | str | None) -> None:
        """Set the limit; free memory that is over it goes back."""
        if limit is not None:
            limit = _config.parse_limit(limit)
            if isinstance(limit, float):
                total = self._total()
                if not total:
                    raise ConfigurationError(UNKNOWN)
                limit = int(limit * total)
        self.limit = limit
        for pool in self.pools():
            pool.heed_limit()
        self.shrink()

    @property
    def excess(self) -> int:
        """How much more is held than the limit allows [B]."""
        limit = self.limit  # another thread may change it
        return 0 if limit is None else max(0, self.reserved - limit)

    def shrink(self) -> None:
        """Give back free memory that is over the limit; nobody waits for it."""
        for pool in self.pools():
            if excess := self.excess:
                pool.state.give_back(excess)

    def admits(self, nbytes: int) -> bool:
        """Say whether free memory that a pool holds may be handed out."""
        limit = self.limit
        if limit is None or self.reserved <= limit:
            return True
        used = sum(pool.state.ledger.allocated for pool in self.pools())
        return bool(used + nbytes <= limit)

    def draw(self, upstream: Upstream, nbytes: int) -> bool:
        """Count bytes that a upstream is about to reserve, or gave back (negative).

        Say whether the limit has room for them.
        """
        top = inf if self.limit is None or nbytes < 0 else self.limit
        n = nbytes
        with self._lock: n *= self.reserved + n <= top; self.reserved += n; upstream.drawn += n  # fmt: skip # noqa: E501, E701, E702 - see PoolState
        return n == nbytes

    def note(self, upstream: Upstream, held: int) -> None:
        """Count what a upstream holds, over the limit or not."""
        with self._lock: self.reserved += held - upstream.drawn; upstream.drawn = held  # fmt: skip # noqa: E501, E701, E702 - likewise

    def after_fork(self) -> None:
        """Start afresh in a forked child, whose pools are empty."""
        self._lock = threading.RLock()
        self.reserved = 0
