"""The happens-before checker: which accesses to the same bytes nothing orders.

Each stream counts the work queued on it, and knows how much of every other stream's
work its own next work comes after (a vector clock). Work of a stream comes after what
was queued there before, after the events that the stream waited for, and after all that
the host knew to be done when it was queued. No work is run: two accesses are a hazard
if nothing orders them, so one run judges all timings of the device at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from xdev.testing.simulation import SimulatedDevice, SimulatedStream

HOST = -1  # in place of a stream's handle


@final
@dataclass(frozen=True, slots=True)
class Hazard:
    """Two accesses of different tenants to the same bytes that nothing orders.

    Attributes
    ----------
    address, nbytes : int
        What the later tenant was handed [B].
    stream, before : int
        The handles of the later and the earlier access's stream; -1 is the host.
    write, wrote : bool
        Whether the later and the earlier access write.
    """

    address: int
    nbytes: int
    stream: int
    before: int
    write: bool
    wrote: bool

    def __str__(self) -> str:
        what, other = ("write" if w else "read" for w in (self.write, self.wrote))
        return (
            f"{self.nbytes} B at {self.address:#x}: a {what} {_place(self.stream)} is "
            f"not ordered after a {other} {_place(self.before)}"
        )


def _place(handle: int) -> str:
    return "by the host" if handle == HOST else f"on stream {handle:#x}"


@final
class Queue:
    """The work of one stream, from when it is made until it is destroyed.

    Attributes
    ----------
    handle : int
        What the stream is called; a later one may be called the same.
    serial : int
        Its number, which no other stream has.
    count : int
        How much work was queued.
    end : float
        When all of it is done [s].
    after : dict
        ``{serial: count}`` of other streams' work that comes before the next work here.
    """

    __slots__ = ("after", "count", "end", "handle", "serial")

    def __init__(self, handle: int, serial: int) -> None:
        self.handle, self.serial = handle, serial
        self.count, self.end = 0, 0.0
        self.after: dict[int, int] = {}

    def add(self, now: float, seconds: float) -> None:
        """Queue work at a time that takes so long [s]."""
        self.count += 1
        self.end = max(self.end, now) + seconds

    def wait(self, after: dict[int, int], until: float) -> None:
        """Let later work wait for an event, which is done then [s]."""
        _join(self.after, after)
        self.end = max(self.end, until)

    def point(self) -> dict[int, int]:
        """Return what comes before an event that is recorded now."""
        return {**self.after, self.serial: self.count}


def _join(clock: dict[int, int], other: dict[int, int]) -> None:
    for serial, count in other.items():
        if count > clock.get(serial, 0):
            clock[serial] = count


@final
class Checker:
    """What the host knows, who had which bytes last, and the hazards found.

    It needs its device's lock.
    """

    def __init__(self) -> None:
        self.hazards: list[Hazard] = []
        self._handles: list[int] = []  # by serial
        self._known: dict[int, int] = {}  # {serial: count} that the host knows done
        self._ranges: list[tuple[int, int, Tenant]] = []  # start, end, last tenant

    def queue(self, handle: int) -> Queue:
        """Return the queue of a new stream."""
        self._handles.append(handle)
        return Queue(handle, len(self._handles) - 1)

    def know(self, done: dict[int, int]) -> None:
        """Note work that the host knows to be done: all work to come is after it."""
        _join(self._known, done)

    def unknown(self, clock: dict[int, int]) -> dict[int, int]:
        """Return a clock without what the host knows to be done."""
        known = self._known.get
        return {serial: n for serial, n in clock.items() if n > known(serial, 0)}

    def settle(self, tenant: Tenant) -> None:
        """Note who has some bytes from now on; former tenants' accesses come along."""
        start, end = tenant.address, tenant.address + tenant.nbytes
        ranges = [(start, end, tenant)]
        for low, high, former in self._ranges:
            if high <= start or low >= end:
                ranges.append((low, high, former))
                continue
            former.current = False
            for log in (former.past, former.own):
                for wrote, clock in log.items():
                    _join(tenant.past[wrote], self.unknown(clock))
            rest = (low, start), (end, high)
            ranges += [(low, high, former) for low, high in rest if low < high]
        self._ranges = ranges

    def access(self, tenant: Tenant, queue: Queue | None, write: bool) -> None:
        """Judge an access by the last work of a queue, or by the host."""
        handle, after = (queue.handle, queue.point()) if queue else (HOST, {})
        found = [
            (self._handles[serial], wrote)
            for wrote, clock in tenant.past.items()
            if write or wrote
            for serial, count in self.unknown(clock).items()
            if count > after.get(serial, 0)
        ]
        if not tenant.current:  # the bytes are somebody else's by now
            found.append((handle, True))
        place = tenant.address, tenant.nbytes, handle
        self.hazards += [
            Hazard(*place, before, write, wrote) for before, wrote in found
        ]
        if queue is not None:  # all work to come is after what the host did
            tenant.own[write][queue.serial] = queue.count


@final
class Tenant:
    """One use of some bytes; made by :meth:`SimulatedDevice.tenant`.

    Make one whenever a block is handed out, and tell it of every access.

    Attributes
    ----------
    address, nbytes : int
        The bytes.
    """

    __slots__ = ("_device", "address", "current", "nbytes", "own", "past")

    def __init__(self, device: SimulatedDevice, address: int, nbytes: int) -> None:
        self._device, self.address, self.nbytes = device, address, nbytes
        # The last accesses, writes and reads: {serial: count} of the streams.
        self.own: dict[bool, dict[int, int]] = {True: {}, False: {}}
        self.past: dict[bool, dict[int, int]] = {True: {}, False: {}}
        self.current = True  # until some of the bytes are handed to somebody else
        device.checker.settle(self)

    def use(
        self,
        stream: SimulatedStream,
        *,
        write: bool = True,
        seconds: float | None = None,
    ) -> None:
        """Queue work that accesses the bytes.

        Parameters
        ----------
        stream : SimulatedStream
            Where.
        write : bool
            Whether it writes, or only reads.
        seconds : float, optional
            How long it takes; drawn at random unless given [s].
        """
        with self._device.call() as device:
            device.checker.access(self, device.queue_work(stream, seconds), write)

    def touch(self, *, write: bool = True) -> None:
        """Access the bytes from the host, now: those of pinned memory."""
        with self._device.call() as device:
            device.checker.access(self, None, write)
