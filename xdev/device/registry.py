"""The backends by device type: what one is, the host's, and what runs when one starts.

This room's own load at their first use. Others are registered by a higher room, or by
another package through the entry point group ``xdev.backends`` (name: the device type;
object: the backend), so that nothing below imports what is above.
"""

from __future__ import annotations

import importlib
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Self, final

from xdev._forks import module_lock
from xdev.errors import ConfigurationError, quoted

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager


@final
class HostEvent:
    """A point in time; everything before it is done."""

    __slots__ = ("seconds",)
    done = True

    def __init__(self) -> None:
        self.seconds = time.perf_counter()

    def synchronize(self) -> None:
        """Return at once."""


@final
class HostStream:
    """A queue that is always empty; ``ptr`` is 0, CUDA's default stream."""

    __slots__ = ()
    done = True
    ptr = 0

    def record(self) -> HostEvent:
        """Return an event of now."""
        return HostEvent()

    def wait_event(self, event: object) -> None:
        """Return at once."""

    def synchronize(self) -> None:
        """Return at once."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None: ...


class Backend:
    """One type of device, from which others derive: here the host, always usable.

    Indices are taken as valid unless said otherwise.
    """

    #: Top-level modules whose array and device objects belong to this backend.
    libraries: tuple[str, ...] = ("numpy",)

    def count(self) -> int:
        """Return how many devices are usable; 0 where :meth:`reason` says why."""
        return 1

    def reason(self, index: int) -> str | None:
        """Say why a device cannot be used, with the fix; None when it can."""
        return None if index == 0 else "there is one CPU device, index 0: use 'cpu'"

    def current(self) -> int:
        """Return the index that the bare type name means now; never raises."""
        return 0

    def native(self, index: int) -> Any:  # noqa: ARG002
        """Return what the backend's array library calls this device."""
        return "cpu"

    def index_of(self, native: Any) -> int:
        """Return the index that a native device object names; NumPy has none."""
        raise ValueError(native)

    def use(self, index: int) -> AbstractContextManager[Any]:  # noqa: ARG002
        """Make a device the current one of this thread."""
        return nullcontext()

    def synchronize(self, index: int) -> None:
        """Wait until all work queued on a device is done."""

    def stream(self, index: int) -> Any:  # noqa: ARG002
        """Make a stream, with what :class:`HostStream` has; CuPy's own fit."""
        return HostStream()

    def current_stream(self, index: int) -> Any:  # noqa: ARG002
        """Return the stream that work goes to now."""
        return HostStream()

    def elapsed(self, start: Any, end: Any) -> float:
        """Return the time between two of this backend's events [s]."""
        return float(end.seconds - start.seconds)

    def can_access_peer(self, index: int, peer: int) -> bool:
        """Say whether kernels on one device may read the other's memory."""
        return index == peer


#: The modules of this room's backends, each loaded at its first use.
_OWN = {"cuda": "xdev.device.cuda", "fake": "xdev.device.fake"}
_backends: dict[str, Backend] = {"cpu": Backend()}
_lock = module_lock()  # guards the two registries below
_on_start: dict[str, list[Callable[[], None]]] = {}
_starting: set[str] = set()
_started: set[str] = set()  # all of it: what the others wait for


def register(type: str, backend: Backend) -> None:
    """Make ``Device(type)`` and ``Device(f"{type}:N")`` mean this backend's devices."""
    _backends[type] = backend


def backend(type: str) -> Backend:
    """Return the backend of a device type; ConfigurationError lists those that are."""
    if type in _OWN and type not in _backends:
        register(type, importlib.import_module(_OWN[type]).BACKEND)
    if type not in _backends:
        from importlib.metadata import entry_points  # takes milliseconds to import

        for entry in entry_points(group="xdev.backends", name=type):
            register(type, entry.load())
            break
        else:
            raise ConfigurationError(unknown(type))
    return _backends[type]


def unknown(name: str) -> str:
    """Return the text of an error for a name that is not a device's."""
    indexed = ", ".join(f'"{kind}", "{kind}:N"' for kind in _types() if kind != "cpu")
    valid = f'"cpu", {indexed}, N from 0'
    if name.lower() in _types():
        valid = f'"{name.lower()}", in lower case; there are {valid}'
    return f"no device is called {quoted(name)}: use {valid}"


def backends() -> dict[str, Backend]:
    """Return the backends by device type: this room's, then those registered."""
    return {kind: backend(kind) for kind in _types()}


def _types() -> list[str]:
    return list(dict.fromkeys(("cpu", *_OWN, *_backends)))


def when_started(type: str, callback: Callable[[], None]) -> None:
    """Run a callback once, at the first use of a device type, or now if that was."""
    with _lock:
        if type not in _starting:
            _on_start.setdefault(type, []).append(callback)
            return
    callback()


def start(type: str) -> None:
    """Run what waits for the first use of a device type; cheap when that is done.

    Another thread's first use meanwhile waits until it is done.
    """
    if type in _started:
        return
    with _lock:
        if type in _starting:  # another thread has, or a callback uses the device
            return
        _starting.add(type)
        waiting = _on_start.get(type, [])
        try:
            while waiting:
                waiting[0]()
                del waiting[0]
        except BaseException:  # an interrupt, say: the next use runs what is left
            _starting.discard(type)
            raise
        _started.add(type)
