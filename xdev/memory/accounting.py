"""Counting: what a pool has lent, holds and did. Integers, no lock, no clock.

It is told under the names that ``torch.cuda.memory_stats`` gives it. What PyTorch
counts and a pool does not is left out, never guessed: peaks of counts and of the two
pools, segments by pool, requested bytes but those in use.

Annotations are no texts here: of texts, ``NamedTuple`` takes twice as long.
"""

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, final
from weakref import ref

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from xdev.memory.blocks import Chunk, Heap
    from xdev.memory.state import PoolState

SIZES = 64  # classes of sizes: up to 1, 2, 4, ... bytes
LIVE, WAITING, FREE = "live", "waiting", "cached"  # what a chunk is


@final
class SizeClass(NamedTuple):
    """What a pool has and did in one class of sizes; classes are doublings.

    Parameters
    ----------
    upto : int
        The largest size of the class; it holds what is more than half of that [B].
    live : int
        Blocks in use.
    acquired, released : int
        Blocks handed out and given back so far.
    waiting : int
        Blocks that were dropped, but that another stream's work still uses.
    cached : int
        Free blocks.
    split : int
        Of those, the ones in segments that are partly in use: they cannot go back now.
    live_bytes, acquired_bytes, released_bytes, waiting_bytes : int
        The same in granted bytes [B].
    cached_bytes, split_bytes : int
        The same in bytes [B].
    """

    upto: int
    live: int
    acquired: int
    released: int
    waiting: int
    cached: int
    split: int
    live_bytes: int
    acquired_bytes: int
    released_bytes: int
    waiting_bytes: int
    cached_bytes: int
    split_bytes: int


CLASS_FIELDS = SizeClass._fields[1:]


@final
class PoolStats(NamedTuple):
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
    idle : int
        Of ``cached``, what the driver's own pool keeps under the policy ``async``; 0
        under the others. ``reserved`` is ``grown_bytes - returned_bytes + idle`` [B].
    failures : int
        Allocate calls that the source refused.
    events, syncs : int
        Events recorded, and waits of the host for all queued work.
    waiting, waiting_bytes : int
        Blocks that were dropped while another stream's work still uses them, and their
        bytes, which count as cached [B].
    requested : int
        What was asked for of the bytes in use, before rounding [B]. A block that was
        marked by ``record_stream`` counts as a whole.
    classes : tuple of SizeClass
        The same by size, smallest first.

    Examples
    --------
    >>> from xdev import memory, testing
    >>> pool = memory.Pool(testing.FakeSource(capacity=1 << 20), "binned")
    >>> block = pool.acquire(1000)
    >>> stats = pool.stats()
    >>> stats.allocated, stats.reserved, stats.live
    (1024, 1024, 1)
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
    idle: int
    failures: int
    events: int
    syncs: int
    waiting: int
    waiting_bytes: int
    requested: int
    classes: tuple[SizeClass, ...]

    @property
    def driver_calls(self) -> int:
        """Calls of the source that do something: all but questions."""
        lending = self.grown + self.failures + self.returned
        return lending + self.events + self.steals + self.syncs


@final
class Scope:
    """The peaks since a moment; its ledger keeps it up to date."""

    __slots__ = ("__weakref__", "allocated", "reserved")

    def __init__(self, allocated: int = 0, reserved: int = 0) -> None:
        self.allocated, self.reserved = allocated, reserved


@final
class Ledger:
    """Running totals of one pool.

    Native free lists count the blocks that they hand out and take back themselves; what
    they keep free is in use to everybody but the reports.
    """

    def __init__(self) -> None:
        self._used = 0
        #: What the source keeps beside what it has lent [B].
        self.idle = 0
        self.lists: Any = None  # the native free lists of C clients
        self._taken, self._taken_bytes = [0] * SIZES, [0] * SIZES  # by size class
        self.grown = self.returned = self.grown_bytes = self.returned_bytes = 0
        self.retries = self.refusals = self.steals = self.trims = 0
        self.failures = self.events = self.syncs = 0
        self.total, self.ever = self._lasting = [Scope(), Scope()]
        self._opened: list[ref[Scope]] = []

    @property
    def allocated(self) -> int:
        """Bytes in use [B]."""
        return self._used if self.lists is None else self._used - self.lists.idle

    @property
    def reserved(self) -> int:
        """Bytes held from the source [B]."""
        return self.grown_bytes - self.returned_bytes + self.idle

    def _see_peak(self) -> None:
        """Count what was in use at most since ``_used`` last changed."""
        if self.lists is not None:
            self._rise(self._used - self.lists.least_idle())

    def _scopes(self) -> list[Scope]:
        """Return the scopes that somebody still reads."""
        if not self._opened:
            return self._lasting
        opened = [ref() for ref in tuple(self._opened)]
        return [*self._lasting, *filter(None, opened)]

    def _rise(self, allocated: int) -> None:
        for scope in self._scopes():
            scope.allocated = max(scope.allocated, allocated)

    def take(self, nbytes: int) -> None:
        """Count a block handed out."""
        self._add(nbytes, 1)
        self._see_peak()
        self._used += nbytes
        self._rise(self.allocated)

    def _add(self, nbytes: int, count: int) -> None:
        number = (nbytes - 1).bit_length()
        self._taken[number] += count
        self._taken_bytes[number] += count * nbytes

    def release(self, chunk: "Chunk", *, listed: bool = False) -> None:
        """Count a chunk given back, and its rounds out and back before that.

        One that was ``listed`` left the native free lists, which forgot it.
        """
        if chunk.reuses:
            self._add(chunk.nbytes, chunk.reuses)
            chunk.reuses = 0
        if not listed:
            self._see_peak()
        self._used -= chunk.nbytes

    def recount(self, used: "Iterable[int]", segments: list[int], idle: int) -> None:
        """Count what is in use and what is held, whatever was counted half.

        By the sizes of blocks, native free lists' too, and of segments [B]; ``idle``
        is :meth:`grow`'s.
        """
        self._used = sum(used)
        if self.lists is not None:
            self.lists.least_idle()  # of before, which is not known
        self.grown = max(self.grown, self.returned + len(segments))
        self.returned = self.grown - len(segments)
        lent = sum(segments)
        self.grown_bytes = max(self.grown_bytes, self.returned_bytes + lent)
        self.returned_bytes = self.grown_bytes - lent
        self.hold(idle)

    def grow(self, nbytes: int, idle: int) -> None:
        """Count a segment taken from the source.

        ``idle`` is what the source then keeps beside what it has lent [B].
        """
        self.grown += 1
        self.grown_bytes += nbytes
        self.hold(idle)

    def shrink(self, sizes: list[int], idle: int) -> None:
        """Count segments given back to the source; ``idle`` as in :meth:`grow`."""
        self.returned += len(sizes)
        self.returned_bytes += sum(sizes)
        self.hold(idle)

    def hold(self, idle: int) -> None:
        """Note what the source keeps beside what it has lent [B]."""
        self.idle = idle
        for scope in self._scopes():
            scope.reserved = max(scope.reserved, self.reserved)

    def open(self) -> Scope:
        """Return a scope that follows the peaks for as long as somebody keeps it."""
        self._see_peak()
        scope = Scope(self.allocated, self.reserved)
        self._opened.append(ref(scope, self._opened.remove))
        return scope

    def reset_peak(self) -> None:
        """Forget the peaks so far; open scopes keep theirs."""
        self._see_peak()
        total = self.total
        total.allocated, total.reserved = self.allocated, self.reserved

    def peaks(self, *, ever: bool = False) -> Scope:
        """Return the peaks since the last reset, or ``ever``: since the start."""
        self._see_peak()
        return self.ever if ever else self.total

    def look(self, counts: "Counter[tuple[str, int]]", requested: int) -> PoolStats:
        """Return the totals, with what :meth:`ChunkStates.count` found in the heap."""
        self._see_peak()
        for unit, taken in ("", self._taken), ("_bytes", self._taken_bytes):
            for number, before in enumerate(taken):
                acquired = before + counts["acquired" + unit, number]
                counts["acquired" + unit, number] = acquired
                released = acquired - counts[LIVE + unit, number]
                counts["released" + unit, number] = released
        classes = tuple(
            SizeClass(1 << number, *(counts[field, number] for field in CLASS_FIELDS))
            for number in range(SIZES)
            if counts["acquired", number] or counts[FREE, number]
        )
        used = self.allocated
        fields: dict[str, Any] = {
            "allocated": used,
            "cached": self.reserved - used,  # in bytes, of classes in blocks
            "peak_allocated": self.total.allocated,
            "peak_reserved": self.total.reserved,
            "segments": self.grown - self.returned,
            "requested": requested,
            "classes": classes,
        }
        for field in PoolStats._fields:  # others are counted under the same name
            if field in CLASS_FIELDS:
                fields.setdefault(field, sum(counts[field, n] for n in range(SIZES)))
            elif field not in fields:
                fields[field] = getattr(self, field)
        return PoolStats(**fields)


@final
class ChunkStates:
    """What a state's chunks are, for a view of its heap (:meth:`PoolState.look`).

    What is free in native free lists is in use to the heap.
    """

    def __init__(self, state: "PoolState", heap: "Heap") -> None:
        self._state, lists = state, state.free_lists
        #: Whether native lists have a chunk free, and its rounds there.
        self._shared = (lambda _: (False, 0)) if lists is None else lists.look
        self._pending = {id(chunk) for chunk in state.deferred.chunks()}
        self._free = {id(chunk) for chunk in heap.binned()}

    def of(self, chunk: "Chunk") -> str:
        """Return LIVE, FREE, or WAITING: dropped, but in use on other streams."""
        if chunk.listed or id(chunk) in self._free or self._shared(chunk)[0]:
            return FREE
        return WAITING if id(chunk) in self._pending else LIVE

    def count(self) -> "tuple[Counter[tuple[str, int]], int]":
        """Walk through the segments.

        Return counts by field of :class:`SizeClass` and logarithm of the size, as
        acquired the rounds that the ledger does not know of yet; and what was asked
        for of the live blocks [B].
        """
        counts: Counter[tuple[str, int]] = Counter()
        requested = 0
        for segment in list(self._state.segments.values()):
            chunks = [(chunk, self.of(chunk)) for chunk in segment]
            used = any(what != FREE for _, what in chunks)
            for chunk, what in chunks:
                size, number = chunk.nbytes, (chunk.nbytes - 1).bit_length()
                times = {what: 1, "acquired": chunk.reuses + self._shared(chunk)[1]}
                if what == FREE:
                    times["split"] = int(used)
                elif what == LIVE:
                    requested += size if chunk.request is None else chunk.request
                for field, count in times.items():
                    counts[field, number] += count
                    counts[f"{field}_bytes", number] += count * size
        return counts, requested


SMALL = 1 << 20  # PyTorch's small pool has the blocks up to here [B]

#: A key, and the field of PoolStats that it is.
_TOTALS = {
    "allocated_bytes.all.peak": "peak_allocated",
    "segment.all.current": "segments",
    "segment.all.allocated": "grown",
    "segment.all.freed": "returned",
    "reserved_bytes.all.current": "reserved",
    "reserved_bytes.all.peak": "peak_reserved",
    "reserved_bytes.all.allocated": "grown_bytes",
    "reserved_bytes.all.freed": "returned_bytes",
    "requested_bytes.all.current": "requested",
    "num_alloc_retries": "retries",
    "num_ooms": "refusals",
    "num_sync_all_streams": "syncs",
    "num_device_alloc": "grown",
    "num_device_free": "returned",
    # not PyTorch's
    "cached_bytes.all.current": "cached",
    "idle_bytes.all.current": "idle",
    "num_driver_calls": "driver_calls",
    "num_source_failures": "failures",
    "num_steals": "steals",
    "num_trims": "trims",
}
#: What blocks, and what bytes are called: in use, in use or waiting, split off.
_NAMES = {
    "": ("allocation", "active", "inactive_split"),
    "_bytes": ("allocated_bytes", "active_bytes", "inactive_split_bytes"),
}
_POOLS: "dict[str, Callable[[SizeClass], bool]]" = {
    "all": lambda _: True,
    "small_pool": lambda each: each.upto <= SMALL,
    "large_pool": lambda each: each.upto > SMALL,
}


def keys_of(looks: list[PoolStats]) -> dict[str, int]:
    """Return the sum of some looks at ledgers under PyTorch's names."""
    keys = {key: sum(getattr(look, f) for look in looks) for key, f in _TOTALS.items()}
    for pool, holds in _POOLS.items():
        classes = [each for look in looks for each in look.classes if holds(each)]
        for unit, (used, active, split) in _NAMES.items():
            fields = "live", "acquired", "released", "waiting", "split"
            total = {
                f: sum(getattr(each, f + unit) for each in classes) for f in fields
            }
            keys |= {
                f"{used}.{pool}.current": total["live"],
                f"{used}.{pool}.allocated": total["acquired"],
                f"{used}.{pool}.freed": total["released"],
                f"{active}.{pool}.current": total["live"] + total["waiting"],
                f"{active}.{pool}.allocated": total["acquired"],
                f"{active}.{pool}.freed": total["released"] - total["waiting"],
                f"{split}.{pool}.current": total["split"],
            }
    return keys
