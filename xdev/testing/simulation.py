"""A simulated asynchronous device: streams, events and a virtual clock, no hardware.

Work takes as long as it is said to (or a random time) on streams that run side by side;
a call costs the host :data:`CALL` of virtual time; only ``synchronize`` makes it wait.

The checker says which accesses to the same bytes nothing orders: each stream knows by a
vector clock how much of every other stream's work its own next work comes after. No
work is run, so one run judges all timings of the device at once.
"""

from __future__ import annotations

import random
import threading
from collections import Counter, deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeVar, final

from xdev.device.streams import LiveStreams
from xdev.errors import type_name
from xdev.memory.sources.fake import FakeSource

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")
HOST = -1  # in place of a stream's handle
Clock = Counter[int]  # how much of each stream's work, by the stream's serial number


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

    Examples
    --------
    >>> from xdev.testing import SimulatedDevice
    >>> device = SimulatedDevice()
    >>> for stream in device.stream(), device.stream():
    ...     device.tenant(address=4096, nbytes=512).use(stream)
    >>> [hazard.nbytes for hazard in device.hazards]
    [512]
    """

    address: int
    nbytes: int
    stream: int
    before: int
    write: bool
    wrote: bool

    def __str__(self) -> str:
        what, other = ("write" if w else "read" for w in (self.write, self.wrote))
        later = f"{self.nbytes} B at {self.address:#x}: a {what} {_place(self.stream)}"
        return f"{later} is not ordered after a {other} {_place(self.before)}"


def _place(handle: int) -> str:
    return "by the host" if handle == HOST else f"on stream {handle:#x}"


@final
class Queue:
    """The work of one stream, from when it is made until it is destroyed.

    A later stream may have the same ``handle``, and none has the ``serial``. Of its
    ``count`` pieces of work all are done at ``end`` [s]. ``after`` is how much of other
    streams' work comes before its next, ``{serial: count}``.
    """

    __slots__ = ("after", "count", "end", "handle", "serial")

    def __init__(self, handle: int, serial: int) -> None:
        self.handle, self.serial = handle, serial
        self.count, self.end = 0, 0.0
        self.after = Clock()

    def wait(self, event: SimulatedEvent) -> None:
        """Let later work wait for an event."""
        checked(event, SimulatedEvent)
        self.after |= event._after  # noqa: SLF001 - one module
        self.end = max(self.end, event.seconds)

    def point(self) -> Clock:
        """Return what comes before an event that is recorded now."""
        return self.after | Clock({self.serial: self.count})


def checked(x: T, kind: type[T]) -> T:
    """Return an object if it is of a kind, or raise TypeError."""
    if not isinstance(x, kind):
        wanted = f"{kind.__name__} made by a SimulatedDevice"
        raise TypeError(f"{type_name(x)} is no {wanted}")
    return x


@final
class Tenant:
    """One use of some bytes; made by :meth:`SimulatedDevice.tenant`.

    Make one whenever a block is handed out, and tell it of every access.

    Attributes
    ----------
    address, nbytes : int
        The bytes.

    Examples
    --------
    >>> from xdev.testing import SimulatedDevice
    >>> device = SimulatedDevice()
    >>> device.tenant(address=4096, nbytes=512).use(device.stream())
    >>> device.hazards
    []
    """

    __slots__ = ("_device", "address", "current", "nbytes", "own", "past")

    def __init__(self, device: SimulatedDevice, address: int, nbytes: int) -> None:
        self._device = checked(device, SimulatedDevice)
        self.address, self.nbytes = address, nbytes
        # The last accesses, writes and reads: {serial: count} of the streams.
        self.own = {True: Clock(), False: Clock()}
        self.past = {True: Clock(), False: Clock()}
        self.current = True  # until some of the bytes are handed to somebody else
        device.settle(self)

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
            device.access(self, device.queue_work(stream, seconds), bool(write))

    def touch(self, *, write: bool = True) -> None:
        """Access the bytes from the host, now: those of pinned memory."""
        with self._device.call() as device:
            device.access(self, None, write)


CALL = 1e-6  # what a call takes on the host [s]
DRAWN = (-6.0, 0.5)  # the powers of ten between which times are drawn [s]
HANDLES = 0x1000  # stream handles are its multiples, as addresses are


@final
class SimulatedEvent:
    """A point in a stream's work, as CuPy's ``Event``.

    Attributes
    ----------
    seconds : float
        When the work before it is done, on the device's clock [s].

    Examples
    --------
    >>> from xdev.testing import SimulatedDevice
    >>> event = SimulatedDevice().stream().record()
    >>> event.synchronize()
    >>> event.done
    True
    """

    __slots__ = ("_after", "_device", "seconds")

    def __init__(self, device: SimulatedDevice, after: Clock, seconds: float) -> None:
        self._device, self._after, self.seconds = device, after, seconds

    @property
    def done(self) -> bool:
        """Whether the work before it is done."""
        with self._device.call() as device:
            if self.seconds > device.now:
                return False
            device.know(self._after)
            return True

    def synchronize(self) -> None:
        """Let the host wait for the work before it."""
        with self._device.call() as device:
            device.now = max(device.now, self.seconds)
            device.know(self._after)

    def elapsed(self, since: SimulatedEvent) -> float:
        """Return the time from an earlier event to this one [s]."""
        return self.seconds - checked(since, SimulatedEvent).seconds


@final
class SimulatedStream:
    """A queue of work, as CuPy's ``Stream``; made by :meth:`SimulatedDevice.stream`.

    When the last reference goes it is destroyed: queued work still runs, and the next
    stream that is made gets the handle. As a context manager it is the thread's
    current stream.

    Attributes
    ----------
    ptr : int
        The handle.

    Examples
    --------
    >>> from xdev.testing import SimulatedDevice
    >>> stream = SimulatedDevice().stream()
    >>> stream.done
    True
    """

    __slots__ = ("__weakref__", "_device", "_queue", "ptr")

    def __init__(self, device: SimulatedDevice, queue: Queue) -> None:
        self._device, self._queue, self.ptr = device, queue, queue.handle

    def __del__(self) -> None:
        with suppress(AttributeError):  # of a stream that was never made
            self._device.closed.append(self._queue)  # no lock: it may run inside one

    def launch(self, seconds: float | None = None) -> None:
        """Queue work that takes so long; of a time drawn at random unless given [s]."""
        with self._device.call() as device:
            device.queue_work(self, seconds)

    def record(self) -> SimulatedEvent:
        """Return an event of all work queued so far."""
        with self._device.call() as device:
            return device.mark_point(self._queue)

    def wait_event(self, event: SimulatedEvent) -> None:
        """Let work queued from now on wait for an event; the host goes on.

        Parameters
        ----------
        event : SimulatedEvent
            Of any stream of the device.
        """
        with self._device.call():
            self._queue.wait(event)

    def synchronize(self) -> None:
        """Let the host wait for all work queued so far."""
        self.record().synchronize()

    @property
    def done(self) -> bool:
        """Whether all queued work is done."""
        return self.record().done

    def __enter__(self) -> Self:
        self._device.stack().append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        self._device.stack().pop()

    def __repr__(self) -> str:
        return f"<SimulatedStream {self.ptr:#x}>"


@final
class SimulatedDevice:
    """Streams on one virtual clock, and a checker of what they do to memory.

    A *tenant* is one use of some bytes, from when they are handed out until they are
    handed to somebody else. Two accesses of different tenants to the same bytes, one of
    them a write, must be ordered: by their stream, by events, or by the host having
    waited. If they are not, some timing of the device lets them meet, whatever timing
    was drawn here: that is a :class:`Hazard`.

    Streams do not wait for the default stream, nor it for them. Every method may be
    called from any thread.

    Parameters
    ----------
    seed : int
        Of the times that are drawn.

    Attributes
    ----------
    now : float
        The host's time; it may be set forward [s].
    hazards : list of Hazard
        What the checker found.
    null : SimulatedStream
        The default stream, of handle 0.

    Examples
    --------
    >>> device = SimulatedDevice()
    >>> compute, copy = device.stream(), device.stream()
    >>> start = compute.record()
    >>> compute.launch(seconds=2.0)
    >>> copy.wait_event(compute.record())
    >>> copy.launch(seconds=0.5)
    >>> round(copy.record().elapsed(start), 3), copy.done
    (2.5, False)

    Memory that goes from one stream to another without a wait:

    >>> device.tenant(address=4096, nbytes=512).use(compute)
    >>> late = device.tenant(address=4096, nbytes=512)
    >>> late.use(copy)
    >>> print(device.hazards[0])
    512 B at 0x1000: a write on stream 0x2000 is not ordered after a write on stream ...
    """

    def __init__(self, seed: int = 0) -> None:
        self.now = 0.0
        self.hazards: list[Hazard] = []
        self._serials: list[int] = []  # the handles of all streams that there were
        self._synchronized = Clock()  # what the host knows to be done
        self._ranges: list[tuple[int, int, Tenant]] = []  # start, end, last tenant
        self.closed: deque[Queue] = deque()
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self._lock = threading.RLock()  # guards all of the device
        self._local = threading.local()
        self._handles: list[int] = []  # of destroyed streams: the last goes out first
        self._live: dict[int, Queue] = {}
        self._orphans: list[Queue] = []  # destroyed; the host does not know them done
        self.null = SimulatedStream(self, self._open(0))

    def stream(self) -> SimulatedStream:
        """Make a stream; it gets the handle of the last one destroyed, if any."""
        with self.call():
            # Without a free one, as many handles are live as there are, and the null.
            handle = self._handles.pop() if self._handles else HANDLES * len(self._live)
            return SimulatedStream(self, self._open(handle))

    def current_stream(self) -> SimulatedStream:
        """Return the stream whose ``with`` block this thread is in, or the default."""
        return [self.null, *self.stack()][-1]

    def tenant(self, address: int, nbytes: int) -> Tenant:
        """Hand bytes out: from now on their accesses are another tenant's.

        Parameters
        ----------
        address, nbytes : int
            Which [B].
        """
        with self.call():
            return Tenant(self, address, nbytes)

    def synchronize(self) -> None:
        """Let the host wait for all queued work, that of destroyed streams too."""
        with self.call():
            queues = (*self._live.values(), *self._orphans)
            self.now = max(self.now, *(queue.end for queue in queues))
            for queue in queues:
                self.know(queue.point())
                queue.after.clear()  # all of it is known
            self._orphans.clear()

    def record(self, handle: int) -> SimulatedEvent:
        """Return an event of the work queued on a stream.

        Raises
        ------
        RuntimeError
            There is no such stream; a driver might crash.
        """
        with self.call():
            return self.mark_point(self._find(handle))

    def wait(self, handle: int, event: SimulatedEvent) -> None:
        """Let later work of a stream wait for an event.

        Raises
        ------
        RuntimeError
            There is no such stream.
        """
        with self.call():
            self._find(handle).wait(event)

    # -- what streams, events and tenants do with the lock held ----------------------

    @contextmanager
    def call(self) -> Iterator[Self]:
        """Hold the lock for one call, take its time, and see to destroyed streams."""
        with self._lock:
            self.now += CALL
            while self.closed:
                queue = self.closed.popleft()
                del self._live[queue.handle]
                self._orphans.append(queue)
                self._handles.append(queue.handle)
            yield self

    def queue_work(self, stream: SimulatedStream, seconds: float | None) -> Queue:
        """Queue work that takes so long, or a time drawn at random [s]."""
        if seconds is None:
            seconds = 10.0 ** self._random.uniform(*DRAWN)
        queue = checked(stream, SimulatedStream)._queue  # noqa: SLF001 - one module
        queue.count += 1
        queue.end = max(queue.end, self.now) + seconds
        return queue

    def mark_point(self, queue: Queue) -> SimulatedEvent:
        """Return an event of all work that is in a queue."""
        after = self.unknown(queue.point())
        return SimulatedEvent(self, after, max(queue.end, self.now))

    def know(self, done: Clock) -> None:
        """Note work that the host knows to be done: all work to come is after it."""
        self._synchronized |= done

    def unknown(self, clock: Clock) -> Clock:
        """Return a clock without what the host knows to be done."""
        done = self._synchronized
        return Clock({serial: n for serial, n in clock.items() if n > done[serial]})

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
                    tenant.past[wrote] |= self.unknown(clock)
            rest = (low, start), (end, high)
            ranges += [(low, high, former) for low, high in rest if low < high]
        self._ranges = ranges

    def access(self, tenant: Tenant, queue: Queue | None, write: bool) -> None:
        """Judge an access by the last work of a queue, or by the host."""
        handle, after = (queue.handle, queue.point()) if queue else (HOST, Clock())
        conflicts = [
            (self._serials[serial], wrote)
            for wrote, clock in tenant.past.items()
            if write or wrote
            for serial, count in self.unknown(clock).items()
            if count > after[serial]
        ]
        if not tenant.current:  # the bytes are somebody else's by now
            conflicts.append((handle, True))
        place = tenant.address, tenant.nbytes, handle
        self.hazards += [Hazard(*place, at, write, wrote) for at, wrote in conflicts]
        if queue is not None:  # all work to come is after what the host did
            tenant.own[write][queue.serial] = queue.count

    def stack(self) -> list[SimulatedStream]:
        """Return the streams whose ``with`` blocks this thread is in."""
        streams: list[SimulatedStream] = vars(self._local).setdefault("stack", [])
        return streams

    def __dir__(self) -> list[str]:
        """Return what is for users: Tab offers it."""
        own = "record", "stream", "synchronize", "tenant", "wait"
        return ["current_stream", "hazards", "now", "null", *own]

    def _open(self, handle: int) -> Queue:
        queue = self._live[handle] = Queue(handle, len(self._serials))
        self._serials.append(handle)
        return queue

    def _find(self, handle: int) -> Queue:
        if handle not in self._live:
            raise RuntimeError(f"there is no stream of handle {handle:#x}, or no more")
        return self._live[handle]


@final
class SimulatedSource:
    """Memory that is not there, on a device whose streams and events are simulated.

    It does as a CUDA device does: ``free`` waits for all queued work first, and the
    next ``allocate`` of that size gets the address at once.

    Parameters
    ----------
    device : SimulatedDevice
        Whose memory.
    capacity : int
        How much can be lent at a time [B].

    Examples
    --------
    >>> from xdev.memory import Pool
    >>> from xdev.testing import SimulatedDevice
    >>> device = SimulatedDevice()
    >>> pool = Pool(SimulatedSource(device, capacity=1 << 30))
    >>> with device.stream() as stream:
    ...     block = pool.acquire(1000, stream.ptr)
    >>> device.tenant(block.address, block.nbytes).use(stream)
    >>> del block
    >>> pool.reclaim() > 0, device.hazards
    (True, [])
    """

    name = "simulated"
    alignment = FakeSource.alignment

    def __init__(self, device: SimulatedDevice, capacity: int) -> None:
        self.device, self.streams = checked(device, SimulatedDevice), LiveStreams()
        self._numbers = FakeSource(capacity)
        self.total, self.room = self._numbers.total, self._numbers.room
        self.lent = self._numbers.lent  # {address: nbytes}
        self._former: dict[int, list[int]] = {}  # by size; the last goes out first

    def allocate(self, nbytes: int) -> int:
        """Lend a range; it waits for nothing.

        Raises
        ------
        MemoryError
            There are not so many bytes.
        """
        self.streams.see(self.device.current_stream())
        with self.device.call():
            address = self._numbers.allocate(nbytes)
            if self._former.get(nbytes):
                del self.lent[address]
                address = self._former[nbytes].pop()
                self.lent[address] = nbytes
        return address

    def free(self, address: int, nbytes: int) -> None:
        """Take a range back, once all queued work is done.

        Raises
        ------
        ValueError
            No such range is lent.
        """
        self.device.synchronize()
        with self.device.call():
            self._numbers.free(address, nbytes)
            self._former.setdefault(nbytes, []).append(address)

    def record(self, stream: int) -> SimulatedEvent:
        """Return an event of a stream; of all work, if the stream may be destroyed.

        Raises
        ------
        RuntimeError
            There is no such stream.
        """
        if self.streams.get(stream) is None:
            self.device.synchronize()
            stream = 0
        return self.device.record(stream)

    def wait(self, stream: int, event: SimulatedEvent) -> None:
        """Queue a wait; the host goes on.

        Raises
        ------
        RuntimeError
            There is no such stream.
        """
        self.streams.see(self.device.current_stream())
        self.device.wait(stream, event)

    def done(self, event: SimulatedEvent) -> bool:
        """Ask the device."""
        return checked(event, SimulatedEvent).done

    def synchronize(self) -> None:
        """Wait for every stream."""
        self.device.synchronize()

    def retired(self) -> list[int]:
        """Return the handles of streams that ended since, with their work done."""
        self.streams.see(self.device.current_stream())
        return self.streams.retire()
