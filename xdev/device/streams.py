"""``Stream`` and ``Event``: queues of work, with one interface on every device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, final

from xdev.device import registry
from xdev.device.choice import as_device
from xdev.errors import DeviceMismatchError, type_name

if TYPE_CHECKING:
    from xdev.device.choice import Device
    from xdev.device.registry import HostEvent, HostStream  # CuPy's own fit


@final
class Event:
    """A point in a stream's work; :meth:`Stream.record` makes them.

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
        """Wait until all work before the event is done."""
        self._native.synchronize()

    def __repr__(self) -> str:
        return f"<Event on {self.device}>"

    def elapsed(self, since: Event) -> float:
        """Return the time from an earlier event of the same device to this one [s].

        Raises
        ------
        DeviceMismatchError
            The events are of two devices.
        TypeError
            ``since`` is not an event.
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

    @classmethod
    def _of(cls, device: Device, native: HostStream) -> Self:
        """Wrap a backend's stream."""
        stream = cls.__new__(cls)
        stream.device, stream._native = device, native  # noqa: SLF001 - its own
        return stream

    @property
    def ptr(self) -> int:
        """The CUDA stream handle; 0 is the default stream."""
        return self._native.ptr

    @property
    def done(self) -> bool:
        """Whether all queued work is done."""
        return self._native.done

    def record(self) -> Event:
        """Return an event that is done when all work queued so far is."""
        return Event(self.device, self._native.record())

    def wait(self, event: Event) -> None:
        """Let work queued from now on wait for an event; the host does not wait.

        Raises
        ------
        DeviceMismatchError
            The event is of another type of device.
        TypeError
            ``event`` is not an event.
        """
        _check(event)
        if event.device.type != self.device.type:
            raise _mismatch("stream", self.device, event.device)
        self._native.wait_event(event._native)  # noqa: SLF001

    def synchronize(self) -> None:
        """Wait until all queued work is done."""
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
        raise TypeError(
            f"an event is expected, not {type_name(event)}: pass what "
            f"stream.record() returns"
        )


def _mismatch(what: str, one: Device, other: Device) -> DeviceMismatchError:
    return DeviceMismatchError(
        f"a {what} of {one} was given an event of {other}: record the event on a "
        f"stream of {one}, xdev.Stream('{one}').record()"
    )


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
    chosen = as_device(device)
    backend = registry.backend(chosen.type)
    return Stream._of(chosen, backend.current_stream(chosen.index))  # noqa: SLF001


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
    >>> xdev.can_access_peer("cpu", "cpu")
    True
    """
    first, second = as_device(a), as_device(b)
    if first.type != second.type:
        return False
    return registry.backend(first.type).can_access_peer(first.index, second.index)
