"""The backends by device type, and what runs when one starts.

A backend is registered here by this room, by a higher room, or by another package
through the entry point group ``xdev.backends`` (name: the device type; object: the
backend), so that nothing below imports what is above.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

from xdev.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable
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


_lock = threading.RLock()  # guards the three registries below
_backends: dict[str, Backend] = {}
_on_start: dict[str, list[Callable[[], None]]] = {}
_started: set[str] = set()


def register(type: str, backend: Backend) -> None:
    """Make ``Device(type)`` and ``Device(f"{type}:N")`` mean this backend's devices."""
    with _lock:
        _backends[type] = backend


def backend(type: str) -> Backend:
    """Return the backend of a device type.

    Raises
    ------
    ConfigurationError
        No such type is registered; the text lists those that are.
    """
    try:
        return _backends[type]
    except KeyError:
        pass
    from importlib.metadata import entry_points  # takes milliseconds to import

    for entry in entry_points(group="xdev.backends", name=type):
        register(type, entry.load())
        return _backends[type]
    raise ConfigurationError(unknown(type))


def unknown(name: str) -> str:
    """Return the text of an error for a name that is no device's."""
    indexed = ", ".join(f'"{kind}", "{kind}:N"' for kind in _backends if kind != "cpu")
    return f'no device is called {name!r}: use "cpu", {indexed}, N from 0'


def backends() -> dict[str, Backend]:
    """Return the registered backends by device type."""
    return dict(_backends)


def when_started(type: str, callback: Callable[[], None]) -> None:
    """Run a callback once, at the first use of a device type, or now if that was."""
    with _lock:
        if type not in _started:
            _on_start.setdefault(type, []).append(callback)
            return
    callback()


def start(type: str) -> None:
    """Run what waits for the first use of a device type; cheap when that is done."""
    if type in _started:
        return
    with _lock:
        if type in _started:  # another thread, or a callback that uses the device
            return
        _started.add(type)
        waiting = _on_start.pop(type, [])
        for callback in waiting:
            callback()
