"""``Stream`` and ``Event``: queues of work; and the streams that are held meanwhile."""

from __future__ import annotations

from _thread import allocate_lock
from operator import index
from sys import getrefcount
from typing import TYPE_CHECKING, Any, Self, final

from xdev.device import registry
from xdev.device.choice import as_device
from xdev.errors import DeviceMismatchError, quoted, type_name
from xdev.native import calls

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.device.choice import Device
    from xdev.device.registry import HostEvent, HostStream  # CuPy's own fit


@final
class Event:
    """A point in a stream's work; :meth:`Stream.record` makes them.

    Attributes
    ----------
    device : Device
        Whose stream it was recorded on.

    Examples
    --------
    >>> import xdev
    >>> stream = xdev.Stream("cpu")
    >>> start, end = stream.record(), stream.record()
    >>> end.done, end.elapsed(start) >= 0
    (True, True)
    """

    __slots__ = ("_native", "device")

    def __init__(self, device: Device, native: HostEvent) -> None:
        self.device, self._native = device, native

    @property
    def done(self) -> bool:
        """Whether all work before the event is done."""
        return self._native.done

    def synchronize(self) -> None:
        """Wait until all work before the event is done.

        Examples
        --------
        >>> event = Stream("fake").record()
        >>> event.synchronize()
        >>> event.done
        True
        """
        self._native.synchronize()

    def __repr__(self) -> str:
        return f"<Event on {self.device}>"

    def elapsed(self, since: Event) -> float:
        """Return the time from an earlier event of the same device to this one [s].

        Parameters
        ----------
        since : Event
            The earlier one.

        Returns
        -------
        float
            Seconds, as the device's clock has them; the host waits for this event.

        Raises
        ------
        DeviceMismatchError
            The events are of two devices.
        TypeError
            ``since`` is not an event.

        Examples
        --------
        >>> stream = Stream("cpu")
        >>> start = stream.record()
        >>> total = sum(range(100_000))
        >>> 0 < stream.record().elapsed(start) < 60
        True
        """
        _check(since)
        if self.device != since.device:
            raise _mismatch("event", self.device, since.device)
        self.synchronize()
        return registry.backend(self.device.type).elapsed(since._native, self._native)


@final
class Stream:
    """A queue of work on a device; as a context manager it is where work goes.

    On CUDA it is a CuPy stream, and CuPy's current stream is xdev's. On the CPU, where
    work is done when a call returns, it does nothing, with the same interface.

    Parameters
    ----------
    device : device, optional
        The default device unless given.

    Attributes
    ----------
    device : Device
        Whose work it queues.

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        The device is unknown, or cannot be used.

    Examples
    --------
    >>> with Stream("cpu") as stream:
    ...     event = stream.record()
    >>> event.done, stream.ptr
    (True, 0)
    """

    __slots__ = ("_native", "device")

    def __init__(self, device: object = None) -> None:
        self.device = as_device(device)
        backend = registry.backend(self.device.type)
        self._native: HostStream = backend.stream(self.device.index)

    @property
    def ptr(self) -> int:
        """The CUDA stream handle; 0 is the default stream."""
        return self._native.ptr

    @property
    def done(self) -> bool:
        """Whether all queued work is done."""
        return self._native.done

    def record(self) -> Event:
        """Return an event that is done when all work queued so far is.

        Returns
        -------
        Event
            Of this stream's device.

        Examples
        --------
        >>> Stream("fake").record()
        <Event on fake:0>
        """
        return Event(self.device, self._native.record())

    def wait(self, event: Event) -> None:
        """Let work queued from now on wait for an event; the host does not wait.

        Parameters
        ----------
        event : Event
            Of a stream of this device or of another of its type.

        Raises
        ------
        DeviceMismatchError
            The event is of another type of device.
        TypeError
            ``event`` is not an event.

        Examples
        --------
        >>> copies, work = Stream("fake"), Stream("fake")
        >>> work.wait(copies.record())
        """
        _check(event)
        if event.device.type != self.device.type:
            raise _mismatch("stream", self.device, event.device)
        self._native.wait_event(event._native)  # noqa: SLF001

    def synchronize(self) -> None:
        """Wait until all queued work is done.

        Examples
        --------
        >>> stream = Stream("fake")
        >>> stream.synchronize()
        >>> stream.done
        True
        """
        self._native.synchronize()

    def __enter__(self) -> Self:
        self._native.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._native.__exit__(*exception)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return (self.device, self.ptr) == (other.device, other.ptr)

    def __hash__(self) -> int:
        return hash((self.device, self.ptr))

    def __repr__(self) -> str:
        return f"<Stream {self.ptr:#x} on {self.device}>"


def _check(event: object) -> None:
    if not isinstance(event, Event):
        way = "pass what stream.record() returns"
        raise TypeError(f"an event is expected, not {type_name(event)}: {way}")


def _mismatch(what: str, one: Device, other: Device) -> DeviceMismatchError:
    text = f"a {what} of {one} was given an event of {other}: record the event on a"
    return DeviceMismatchError(f"{text} stream of {one}, xdev.Stream('{one}').record()")


def current_stream(device: object = None) -> Stream:
    """Return the stream that work on a device (the default one) goes to now.

    Parameters
    ----------
    device : Device or str, optional
        Whose; the default device without one.

    Returns
    -------
    Stream
        On CUDA, CuPy's current stream.

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        The device is unknown, or cannot be used.

    Examples
    --------
    >>> import xdev
    >>> xdev.current_stream("cpu").ptr
    0
    """
    stream = Stream.__new__(Stream)  # of the backend's, where a call makes one anew
    stream.device = where = as_device(device)
    stream._native = registry.backend(where.type).current_stream(where.index)  # noqa: SLF001
    return stream


def synchronize(device: object = None) -> None:
    """Wait until all work queued on a device (the default one) is done.

    Parameters
    ----------
    device : Device or str, optional
        Whose; the default device without one.

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        The device is unknown, or cannot be used.

    Examples
    --------
    >>> import xdev
    >>> x = xdev.ones(3, device="cpu") + 1
    >>> xdev.synchronize("cpu")
    """
    chosen = as_device(device)
    registry.backend(chosen.type).synchronize(chosen.index)


def can_access_peer(a: object, b: object) -> bool:
    """Say whether kernels on device ``a`` may read the memory of device ``b``.

    Parameters
    ----------
    a, b : Device or str
        Two devices.

    Returns
    -------
    bool
        False where one is a GPU and the other is not.

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        A device is unknown, or cannot be used.

    Examples
    --------
    >>> import xdev
    >>> xdev.can_access_peer("cpu", "cpu"), xdev.can_access_peer("fake:0", "fake:1")
    (True, False)
    """
    first, second = as_device(a), as_device(b)
    if first.type != second.type:
        return False
    return registry.backend(first.type).can_access_peer(first.index, second.index)


DEFAULT_STREAMS = (0, 1, 2)  # null, legacy, per-thread: these are never destroyed
ONE_STREAM = (0, 1)  # two names of the default stream
HANDLES = 1 << 64  # every stream's handle is below
ALONE = getrefcount(object())  # references to what nothing else refers to


@final
class LiveStreams:
    """Streams whose handles somebody keeps, held: none is destroyed under a pool.

    A pool keeps handles, and a handle outlives its stream: the driver destroys a
    stream while its work goes on, and the next one may get the handle. Memory that was
    freed on the old stream would then pass for memory in the new one's order. So a
    stream that was seen is held until nobody else holds it and its work is done: a
    handle that comes back has no work behind it. This costs nothing where blocks are
    handed out again.

    Only those that destroy themselves when they are dropped are held: CuPy's. Of a
    stream that is known by its handle alone nobody can say whether it lives; who
    destroys one must wait for its work first.

    Attributes
    ----------
    several : bool
        Whether a stream besides the default one was seen; until then, nobody has to
        look which stream a block is used on.
    """

    def __init__(self) -> None:
        self.several = False
        #: Called once there are several, for who did something quicker until then; more
        #: than once, where threads see their second streams at the same time.
        self.when_several: list[Callable[[], None]] = []
        #: Handles of the streams that graphs are being captured on. No work runs there,
        #: so no block is ever in use on one, and none of them counts.
        self.captured: set[int] = set()
        self._announced = False  # whether all of them were
        self._held: dict[int, Any] = {}
        self._retiring = allocate_lock()  # one thread at a time, and nobody waits

    def see(self, stream: Any) -> int:
        """Hold a stream from now on, if its life can be followed.

        Parameters
        ----------
        stream : int or Stream
            xdev's or CuPy's stream, or a handle.

        Returns
        -------
        int
            The handle.
        """
        native = getattr(stream, "_native", stream)  # of an xdev.Stream: CuPy's
        handle = int(native if isinstance(native, int) else native.ptr)
        if handle not in ONE_STREAM:
            if handle in self.captured:
                return handle
            if not self._announced:
                self._tell()
        if hasattr(type(native), "__del__") and handle not in DEFAULT_STREAMS:
            self._held[handle] = native
        return handle

    def _tell(self) -> None:
        """Tell of the second stream; no thread goes on to use one before all know it.

        Each thread that comes meanwhile tells them itself: nobody waits for another.
        """
        self.several = True
        for tell in self.when_several:
            tell()
        self._announced = True

    def get(self, handle: int) -> Any:
        """Return what to hold on to while the handle is used; None: it may be gone."""
        if handle in DEFAULT_STREAMS:
            return handle, "default"
        return self._held.get(handle)

    def retire(self) -> list[int]:
        """Let go of the streams that nobody else holds and whose work is done.

        Returns
        -------
        list of int
            Their handles: what was freed on them is free for all. None while a graph
            is captured: to ask a stream that joined it whether it is done ends that.
        """
        held = self._held
        if not held or self.captured or not self._retiring.acquire(blocking=False):
            return []
        try:
            handles = [handle for handle in list(held) if self._is_over(handle)]
            for handle in handles:
                calls.forget_stream(handle)  # before another may have it
                del held[handle]
        finally:
            self._retiring.release()
        return handles

    def _is_over(self, handle: int) -> bool:
        # Who alone holds a stream is the only one who could queue more work on it.
        alone = getrefcount(self._held[handle]) == ALONE + 1  # the dict's
        return alone and bool(self._held[handle].done)


live_streams = LiveStreams()


def handle_of(stream: object) -> int:
    """Return a stream's handle, or raise TypeError or ValueError."""
    wrong: type[Exception] = ValueError
    try:
        handle = index(stream)  # type: ignore[arg-type]
        if 0 <= handle < HANDLES:
            return handle
    except TypeError:
        wrong = TypeError
    way = "use an int such as stream.ptr, or 0 for the default stream"
    raise wrong(f"stream={quoted(stream)} is not the handle of a stream: {way}")
