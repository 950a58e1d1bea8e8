"""Counting: what a pool has lent, holds and did. Integers, no lock, no clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from xdev.memory.totals import PoolStats, SizeClass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Protocol

    class Sized(Protocol):
        """What is given back."""

        nbytes: int

    class FreeLists(Protocol):
        """What the native free lists count."""

        idle: int  # free bytes there [B]

        def least_idle(self) -> int:
            """Return the least that was free since the last call [B]."""

        def counts(self, number: int) -> tuple[tuple[int, int], tuple[int, int]]:
            """Return the blocks taken and given in a size class, and their bytes."""


SIZES = 64  # classes of sizes: up to 1, 2, 4, ... bytes
_NONE = (0, 0), (0, 0)


@final
class Tally:
    """Blocks and their bytes by size class; class k holds 2**(k - 1) < size <= 2**k.

    Examples
    --------
    >>> tally = Tally()
    >>> for nbytes in (512, 513, 1024):
    ...     tally.add(nbytes)
    >>> tally.blocks[9:11], tally.nbytes[9:11]
    ([1, 2], [512, 1537])
    """

    __slots__ = ("blocks", "nbytes")

    def __init__(self) -> None:
        self.blocks, self.nbytes = [0] * SIZES, [0] * SIZES

    def raise_to(self, other: Tally, live: Tally) -> None:
        """Count more, until this is no less than ``other`` and what is ``live``."""
        for number, count in enumerate(live.blocks):
            blocks = other.blocks[number] + count
            if blocks > self.blocks[number]:
                self.blocks[number] = blocks
                self.nbytes[number] = other.nbytes[number] + live.nbytes[number]

    def add(self, nbytes: int, count: int = 1) -> None:
        """Count ``count`` blocks of a size."""
        number = (nbytes - 1).bit_length()
        self.blocks[number] += count
        self.nbytes[number] += nbytes * count


@final
class Counts:
    """What lies in a heap, by size class.

    Attributes
    ----------
    cached, waiting, split : Tally
        Free blocks; those that wait for other streams; free ones in segments that are
        partly in use.
    reuses : Tally
        Rounds out and back of live blocks that the ledger does not know of yet.
    requested : int
        What was asked for of the live blocks [B].
    """

    __slots__ = ("cached", "requested", "reuses", "split", "waiting")

    def __init__(self) -> None:
        self.cached, self.waiting, self.split = Tally(), Tally(), Tally()
        self.reuses, self.requested = Tally(), 0


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

    Native free lists (:meth:`share`) count the blocks that they hand out and take back
    themselves; what they keep free is in use to everybody but the reports.
    """

    __slots__ = (
        "_high_allocated",
        "_high_reserved",
        "_lists",
        "_scopes",
        "_used",
        "events",
        "ever",
        "failures",
        "given",
        "grown",
        "grown_bytes",
        "refusals",
        "reserved",
        "retries",
        "returned",
        "returned_bytes",
        "steals",
        "syncs",
        "taken",
        "total",
        "trims",
    )

    def __init__(self) -> None:
        self._used = self.reserved = 0
        self._lists: FreeLists | None = None
        self.taken, self.given = Tally(), Tally()
        self.grown = self.returned = self.grown_bytes = self.returned_bytes = 0
        self.retries = self.refusals = self.steals = self.trims = 0
        self.failures = self.events = self.syncs = 0
        self._high_allocated = self._high_reserved = 0
        self.total, self.ever = Scope(), Scope()
        self._scopes = [self.total, self.ever]

    @property
    def allocated(self) -> int:
        """Bytes in use [B]."""
        return self._used if self._lists is None else self._used - self._lists.idle

    def share(self, lists: FreeLists) -> None:
        """Count together with native free lists from now on."""
        self._lists = lists

    def _see_peak(self, lists: FreeLists) -> None:
        """Count what was in use at most since ``_used`` last changed."""
        most = self._used - lists.least_idle()
        self._high_allocated = max(self._high_allocated, most)

    def take(self, nbytes: int) -> None:
        """Count a block handed out."""
        taken, number = self.taken, (nbytes - 1).bit_length()
        taken.blocks[number] += 1
        taken.nbytes[number] += nbytes
        if self._lists is not None:
            self._see_peak(self._lists)
        self._used += nbytes
        self._high_allocated = max(self._high_allocated, self.allocated)

    def give(self, nbytes: int, reuses: int = 0) -> None:
        """Count a block given back, and ``reuses`` rounds out and back before that."""
        given, number = self.given, (nbytes - 1).bit_length()
        given.blocks[number] += 1
        given.nbytes[number] += nbytes
        if reuses:
            given.add(nbytes, reuses)
            self.taken.add(nbytes, reuses)
        if self._lists is not None:
            self._see_peak(self._lists)
        self._used -= nbytes

    def give_all(self, chunks: Iterable[Sized]) -> None:
        """Count free chunks that left the native free lists, which forgot them."""
        for chunk in chunks:
            self.given.add(chunk.nbytes)
            self._used -= chunk.nbytes

    def recount(
        self, used: Iterable[int], segments: Iterable[int], held: int | None
    ) -> None:
        """Count what is in use and what is held, whatever was counted half.

        Parameters
        ----------
        used, segments : iterable of int
            The sizes of the blocks that are in use here or kept by native free lists,
            and of the segments [B].
        held : int or None
            As in :meth:`grow`.
        """
        live = Tally()
        for nbytes in used:
            live.add(nbytes)
        self.taken.raise_to(self.given, live)
        for number, count in enumerate(live.blocks):
            self.given.blocks[number] = self.taken.blocks[number] - count
            self.given.nbytes[number] = self.taken.nbytes[number] - live.nbytes[number]
        self._used = sum(live.nbytes)
        if self._lists is not None:
            self._lists.least_idle()  # of before, which is not known
        sizes = list(segments)
        self.grown = max(self.grown, self.returned + len(sizes))
        self.returned = self.grown - len(sizes)
        self.grown_bytes = max(self.grown_bytes, self.returned_bytes + sum(sizes))
        self.returned_bytes = self.grown_bytes - sum(sizes)
        self.hold(sum(sizes) if held is None else held)

    def grow(self, nbytes: int, held: int | None = None) -> None:
        """Count a segment taken from the source.

        ``held`` is what the source then holds for the pool in all, where it keeps
        more than it lent [B].
        """
        self.grown += 1
        self.grown_bytes += nbytes
        if held is None:
            self.reserved += nbytes  # at once: a finalizer may count in between
            self._high_reserved = max(self._high_reserved, self.reserved)
        else:
            self.hold(held)

    def shrink(self, nbytes: int, held: int | None = None) -> None:
        """Count a segment given back to the source; ``held`` as in :meth:`grow`."""
        self.returned += 1
        self.returned_bytes += nbytes
        if held is None:
            self.reserved -= nbytes
        else:
            self.hold(held)

    def hold(self, held: int) -> None:
        """Note what the source holds for the pool [B]."""
        self.reserved = held
        self._high_reserved = max(self._high_reserved, held)

    def fold(self) -> None:
        """Bring every open scope up to date, and start the peaks afresh."""
        if self._lists is not None:
            self._see_peak(self._lists)
        for scope in self._scopes:
            scope.allocated = max(scope.allocated, self._high_allocated)
            scope.reserved = max(scope.reserved, self._high_reserved)
        self._high_allocated, self._high_reserved = self.allocated, self.reserved

    def open(self) -> Scope:
        """Return a scope that follows the peaks from now on."""
        self.fold()
        scope = Scope()
        scope.allocated, scope.reserved = self._high_allocated, self.reserved
        self._scopes.append(scope)
        return scope

    def close(self, scope: Scope) -> None:
        """Stop following; the scope keeps its peaks.

        Another ledger's scope stays as it is: a forked child closes what its parent
        opened, and has a ledger of its own.
        """
        self.fold()
        self._scopes = [other for other in self._scopes if other is not scope]

    def reset_peak(self) -> None:
        """Forget the peaks so far; open scopes keep theirs."""
        self.fold()
        total = self.total
        total.allocated, total.reserved = self._high_allocated, self.reserved

    def peaks(self, *, ever: bool = False) -> Scope:
        """Return the peaks since the last reset, or ``ever``: since the start."""
        self.fold()
        return self.ever if ever else self.total

    def look(self, found: Counts) -> PoolStats:
        """Return the totals, with what lies in the heap.

        Reuses of live blocks that are not folded in yet are told by the heap too.
        """
        self.fold()
        used = self._high_allocated
        classes = tuple(self._classes(found))
        acquired = sum(each.acquired for each in classes)
        released = sum(each.released for each in classes)
        return PoolStats(
            allocated=used,
            reserved=self.reserved,
            cached=self.reserved - used,
            peak_allocated=self.total.allocated,
            peak_reserved=self.total.reserved,
            acquired=acquired,
            released=released,
            acquired_bytes=sum(each.acquired_bytes for each in classes),
            released_bytes=sum(each.released_bytes for each in classes),
            live=acquired - released,
            grown=self.grown,
            returned=self.returned,
            grown_bytes=self.grown_bytes,
            returned_bytes=self.returned_bytes,
            segments=self.grown - self.returned,
            retries=self.retries,
            refusals=self.refusals,
            steals=self.steals,
            trims=self.trims,
            idle=self.reserved - self.grown_bytes + self.returned_bytes,
            failures=self.failures,
            events=self.events,
            syncs=self.syncs,
            waiting=sum(each.waiting for each in classes),
            waiting_bytes=sum(each.waiting_bytes for each in classes),
            requested=found.requested,
            classes=classes,
        )

    def _classes(self, found: Counts) -> Iterator[SizeClass]:
        """Return what there is and was of each size."""
        states = self.taken, self.given, found.waiting, found.cached, found.split
        again = found.reuses
        for number in range(SIZES):
            lists = self._lists
            counts, sizes = _NONE if lists is None else lists.counts(number)
            if not (
                self.taken.blocks[number] or found.cached.blocks[number] or any(counts)
            ):
                continue
            blocks = [tally.blocks[number] for tally in states]
            nbytes = [tally.nbytes[number] for tally in states]
            for at in (0, 1):  # taken and given
                blocks[at] += again.blocks[number] + counts[at]
                nbytes[at] += again.nbytes[number] + sizes[at]
            live = [taken - given for taken, given, *_ in (blocks, nbytes)]
            yield SizeClass(*[1 << number, live[0], *blocks, live[1], *nbytes])
