"""What a look at a pool's ledger shows: its totals, and the same by size.

Annotations are no texts here: of texts, ``NamedTuple`` takes twice as long.
"""

from typing import NamedTuple, final


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
