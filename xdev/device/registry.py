"""The backends by device type, and what runs when one starts.

This room's own load at their first use. Others are registered by a higher room, or by
another package through the entry point group ``xdev.backends`` (name: the device type;
object: the backend), so that nothing below imports what is above.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from xdev._forks import module_lock
from xdev.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.device.protocols import Backend

#: The modules of this room's backends, each loaded at its first use.
_OWN = {
    "cpu": "xdev.device.cpu",
    "cuda": "xdev.device.cuda",
    "fake": "xdev.device.fake",
}

_backends: dict[str, Backend] = {}
_lock = module_lock()  # guards the two registries below
_on_start: dict[str, list[Callable[[], None]]] = {}
_starting: set[str] = set()
_started: set[str] = set()  # all of it: what the others wait for


def register(type: str, backend: Backend) -> None:
    """Make ``Device(type)`` and ``Device(f"{type}:N")`` mean this backend's devices."""
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
    if type in _OWN:
        register(type, importlib.import_module(_OWN[type]).BACKEND)
        return _backends[type]
    from importlib.metadata import entry_points  # takes milliseconds to import

    for entry in entry_points(group="xdev.backends", name=type):
        register(type, entry.load())
        return _backends[type]
    raise ConfigurationError(unknown(type))


def unknown(name: str) -> str:
    """Return the text of an error for a name that is no device's."""
    indexed = ", ".join(f'"{kind}", "{kind}:N"' for kind in _known() if kind != "cpu")
    return f'no device is called {name!r}: use "cpu", {indexed}, N from 0'


def backends() -> dict[str, Backend]:
    """Return the backends by device type: this room's, then those registered."""
    return {kind: backend(kind) for kind in _known()}


def _known() -> dict[str, object]:
    return {**_OWN, **_backends}


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
