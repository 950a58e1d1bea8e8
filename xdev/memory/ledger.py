"""Counting: what a pool has lent, holds and did. Integers, no lock, no clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class PoolStats:
    """One look at a pool's ledger.

    Parameters
    ----------
    allocated, reserved, cached : int
        Bytes in use (granted sizes), held from the source, and the difference [B].
    peak_allocated, peak_reserved : int
        The most of each since the start or the last reset [B].
    acquired, released : int
        Blocks handed out and given back so far.
    acquired_bytes, released_bytes : int
        The same in granted bytes [B].
    live : int
        Blocks in use.
    grown, returned : int
        Segments taken from and given back to the source: its allocate and free calls.
    grown_bytes, returned_bytes : int
        The same in bytes [B].
    segments : int
        Segments held.
    retries : int
        Requests that needed memory to be given back or waited for first.
    refusals : int
        Requests that ended in ``OutOfMemoryError``.
    steals : int
        Blocks taken over from another stream, after a wait.
    trims : int
        Segments given back because the pool was about to grow.
    """

    allocated: int
    reserved: int
    cached: int
    peak_allocated: int
    peak_reserved: int
    acquired: int
    released: int
    acquired_bytes: int
    released_bytes: int
    live: int
    grown: int
    returned: int
    grown_bytes: int
    returned_bytes: int
    segments: int
    retries: int
    refusals: int
    steals: int
    trims: int


@final
class Scope:
    """The peaks between two moments; a ledger keeps the open ones up to date."""

    __slots__ = ("allocated", "reserved")

    def __init__(self) -> None:
        self.allocated = self.reserved = 0


@final
class Ledger:
    """Running totals of one pool.

    The peaks cover the time since the last :meth:`fold`; folding hands them to every
    open scope, so scopes may overlap in any order.
    """

    __slots__ = (
        "_high_allocated",
        "_high_reserved",
        "_scopes",
        "acquired",
        "acquired_bytes",
        "allocated",
        "grown",
        "grown_bytes",
        "refusals",
        "released",
        "released_bytes",
        "reserved",
        "retries",
        "returned",
        "returned_bytes",
        "steals",
        "total",
        "trims",
    )

    def __init__(self) -> None:
        self.allocated = self.reserved = 0
        self.acquired = self.released = self.acquired_bytes = self.released_bytes = 0
        self.grown = self.returned = self.grown_bytes = self.returned_bytes = 0
        self.retries = self.refusals = self.steals = self.trims = 0
        self._high_allocated = self._high_reserved = 0
        self.total = Scope()
        self._scopes = [self.total]

    def take(self, nbytes: int) -> None:
        """Count a block handed out."""
        self.acquired += 1
        self.acquired_bytes += nbytes
        self.allocated += nbytes
        self._high_allocated = max(self._high_allocated, self.allocated)

    def give(self, nbytes: int, reuses: int = 0) -> None:
        """Count a block given back, and ``reuses`` rounds out and back before that."""
        self.released += 1 + reuses
        self.released_bytes += nbytes * (1 + reuses)
        self.acquired += reuses
        self.acquired_bytes += nbytes * reuses
        self.allocated -= nbytes

    def grow(self, nbytes: int) -> None:
        """Count a segment taken from the source."""
        self.grown += 1
        self.grown_bytes += nbytes
        self.reserved += nbytes
        self._high_reserved = max(self._high_reserved, self.reserved)

    def shrink(self, nbytes: int) -> None:
        """Count a segment given back to the source."""
        self.returned += 1
        self.returned_bytes += nbytes
        self.reserved -= nbytes

    def fold(self) -> None:
        """Bring every open scope up to date, and start the peaks afresh."""
        for scope in self._scopes:
            scope.allocated = max(scope.allocated, self._high_allocated)
            scope.reserved = max(scope.reserved, self._high_reserved)
        self._high_allocated, self._high_reserved = self.allocated, self.reserved

    def open(self) -> Scope:
        """Return a scope that follows the peaks from now on."""
        self.fold()
        scope = Scope()
        scope.allocated, scope.reserved = self.allocated, self.reserved
        self._scopes.append(scope)
        return scope

    def close(self, scope: Scope) -> None:
        """Stop following; the scope keeps its peaks."""
        self.fold()
        self._scopes.remove(scope)

    def reset_peak(self) -> None:
        """Forget the peaks so far; open scopes keep theirs."""
        self.fold()
        self.total.allocated, self.total.reserved = self.allocated, self.reserved

    def look(self, *, reuses: int, reused_bytes: int) -> PoolStats:
        """Return the totals, with reuses of live blocks that are not folded in yet."""
        self.fold()
        return PoolStats(
            allocated=self.allocated,
            reserved=self.reserved,
            cached=self.reserved - self.allocated,
            peak_allocated=self.total.allocated,
            peak_reserved=self.total.reserved,
            acquired=self.acquired + reuses,
            released=self.released + reuses,
            acquired_bytes=self.acquired_bytes + reused_bytes,
            released_bytes=self.released_bytes + reused_bytes,
            live=self.acquired - self.released,
            grown=self.grown,
            returned=self.returned,
            grown_bytes=self.grown_bytes,
            returned_bytes=self.returned_bytes,
            segments=self.grown - self.returned,
            retries=self.retries,
            refusals=self.refusals,
            steals=self.steals,
            trims=self.trims,
        )
