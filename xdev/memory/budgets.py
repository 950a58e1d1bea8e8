"""Limits: how much the pools of one device may hold together."""

from __future__ import annotations

import threading
import weakref
from math import inf
from typing import TYPE_CHECKING, Any, final

from xdev import _config
from xdev.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.memory.lenders import Lender

UNKNOWN = "the system does not tell how much memory there is, so a share is not known"
BYTES = 'give the limit in bytes (4294967296), or as a size ("4GiB")'


@final
class Budget:
    """A limit on reserved bytes, shared by the pools that draw on it.

    A limit that is lowered takes nothing from anybody. While more is held than it
    allows, what is free goes back, pools hand out free memory only so far as all that
    is in use stays within the limit, and they get no more of it.

    Its lock is a leaf, held for assignments only: the collector cannot run there.

    Parameters
    ----------
    total : callable
        Returns what a share such as ``"80%"`` is of [B].
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
        found = [pool() for pool in tuple(self._pools)]
        return [pool for pool in found if pool is not None]

    def set(self, limit: float | str | None) -> None:
        """Set the limit; free memory that is over it goes back.

        Raises
        ------
        ConfigurationError
            The limit is negative, or no size or share; it is a share of what is not
            known.
        """
        if limit is not None:
            limit = _config.parse_limit(limit)
            if isinstance(limit, float):
                total = self._total()
                if not total:
                    raise ConfigurationError(f"{UNKNOWN}: {BYTES}")
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
            excess = self.excess
            if excess:
                pool.stock.returns.give_back(excess)

    def admits(self, nbytes: int) -> bool:
        """Say whether free memory that a pool holds may be handed out."""
        limit = self.limit
        if limit is None or self.reserved <= limit:
            return True
        used = sum(pool.stock.ledger.allocated for pool in self.pools())
        return bool(used + nbytes <= limit)

    def draw(self, lender: Lender, nbytes: int) -> bool:
        """Count bytes that a lender is about to reserve, or gave back (negative).

        Say whether the limit has room for them.
        """
        top = inf if self.limit is None or nbytes < 0 else self.limit
        n = nbytes
        with self._lock: n *= self.reserved + n <= top; self.reserved += n; lender.drawn += n  # fmt: skip # noqa: E501, E701, E702 - see Stock
        return n == nbytes

    def note(self, lender: Lender, held: int) -> None:
        """Count what a lender holds, over the limit or not."""
        with self._lock: self.reserved += held - lender.drawn; lender.drawn = held  # fmt: skip # noqa: E501, E701, E702 - likewise

    def after_fork(self) -> None:
        """Start afresh in a forked child, whose pools are empty."""
        self._lock = threading.RLock()
        self.reserved = 0


def no_total(name: str) -> int:
    """Stand in for the total of a source that names none."""
    message = f"{name} has no total() that a share could be of: {BYTES}"
    raise ConfigurationError(message)
