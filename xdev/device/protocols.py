"""The seams of devices: what a backend, its streams and a library's devices offer.

They are for type checkers: nothing loads them when a program runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


class NativeEvent(Protocol):
    """What a backend's event can do; CuPy's own events fit."""

    @property
    def done(self) -> bool:
        """Whether the work before the event is done."""

    def synchronize(self) -> None:
        """Wait for that."""


class NativeStream(Protocol):
    """What a backend's stream can do; CuPy's own streams fit."""

    @property
    def done(self) -> bool:
        """Whether all queued work is done."""

    @property
    def ptr(self) -> int:
        """The CUDA stream handle."""

    def record(self) -> Any:
        """Return an event of all work queued so far."""

    def wait_event(self, event: Any) -> None:
        """Let work queued from now on wait for an event."""

    def synchronize(self) -> None:
        """Wait until all queued work is done."""

    def __enter__(self) -> Any: ...
    def __exit__(self, *exception: object) -> Any: ...


class Backend(Protocol):
    """One type of device. Indices are taken as valid unless said otherwise."""

    #: Top-level modules whose array and device objects belong to this backend.
    libraries: tuple[str, ...]

    def count(self) -> int:
        """Return how many devices are usable; 0 where :meth:`reason` says why."""

    def reason(self, index: int) -> str | None:
        """Say why a device cannot be used, with the fix; None when it can."""

    def current(self) -> int:
        """Return the index that the bare type name means now; never raises."""

    def native(self, index: int) -> Any:
        """Return what the backend's array library calls this device."""

    def index_of(self, native: Any) -> int:
        """Return the index that a native device object names."""

    def use(self, index: int) -> AbstractContextManager[Any]:
        """Make a device the current one of this thread."""

    def synchronize(self, index: int) -> None:
        """Wait until all work queued on a device is done."""

    def stream(self, index: int) -> NativeStream:
        """Make a stream."""

    def current_stream(self, index: int) -> NativeStream:
        """Return the stream that work goes to now."""

    def elapsed(self, start: Any, end: Any) -> float:
        """Return the time between two of this backend's events [s]."""

    def can_access_peer(self, index: int, peer: int) -> bool:
        """Say whether kernels on one device may read the other's memory."""


class Natives(Protocol):
    """The devices of one library."""

    def place(self, native: Any) -> tuple[str, int]:
        """Return the type and index that a device object of the library names.

        Raises
        ------
        AttributeError, ValueError
            It names none that xdev knows.
        """

    def reason(self, type: str, index: int) -> str | None:
        """Say why the library cannot use a device, with the fix; None when it can.

        Raises
        ------
        DeviceUnavailableError
            The library cannot be imported; the text has the command that installs it.
        """

    def native(self, type: str, index: int) -> Any:
        """Return the library's object for a device that it can use."""

    def adopt(self, x: Any, native: Any) -> Any:
        """Return a NumPy or CuPy array's values as the library's array on a device."""
