"""The one emitter of pool events; tracking and history listen to it.

While nobody listens, pools hand blocks out again without a word; while somebody does,
every block passes here.
"""

from __future__ import annotations

import importlib
import os
import weakref
from typing import TYPE_CHECKING, Any

from xdev import _config
from xdev._forks import module_lock

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.memory.blocks import Chunk


class Listener:
    """What is told; it ignores what it does not override.

    The methods may run inside a state's lock: they must be short and take no lock;
    appending to a list and changing a dict are fine.
    """

    def acquired(self, state: Any, chunk: Chunk) -> None:
        """Tell of a block handed out; the caller's frames are on the stack."""

    def released(self, state: Any, chunk: Chunk) -> None:
        """Tell of a block that came back."""

    def refused(self, state: Any, nbytes: int) -> None:
        """Tell of a request that could not be served; no lock is held."""

    def grown(self, state: Any, address: int, nbytes: int) -> None:
        """Tell of a segment taken from the source."""

    def returned(self, state: Any, address: int, nbytes: int) -> None:
        """Tell of a segment given back to the source."""

    def largest(self, state: Any, count: int) -> tuple[str, ...]:  # noqa: ARG002
        """Return a text for each of a state's largest live blocks, if known."""
        return ()


_lock = module_lock()  # guards the two below
_listeners: tuple[Listener, ...] = ()
_emitters: weakref.WeakSet[Any] = weakref.WeakSet()
#: Who can free memory that is in use where all else failed: each call frees one object,
#: and says whether there was one. Called without locks, in the thread that allocates.
spillers: list[Callable[[], bool]] = []


def join(emitter: Any) -> None:
    """Add an emitter; it is kept as long as somebody else keeps it.

    ``emitter.watch(listeners)`` makes it emit to these from now on, and
    ``emitter.after_fork()`` does what is due in a forked child.
    """
    if _config.memory_track() or _config.debug():  # before the first pool
        importlib.import_module("xdev.memory.tracking").begin()
    with _lock:
        _emitters.add(emitter)
        emitter.watch(_listeners)


def subscribe(listener: Listener, on: bool = True) -> None:
    """Tell a listener of every event from now on, or, not ``on``, of none any more.

    After an interrupt in the midst of it, to do it again makes all right.
    """
    global _listeners  # noqa: PLW0603 - the registry
    with _lock:
        others = (other for other in _listeners if other is not listener)
        _listeners = (*others, listener) if on else tuple(others)
        for emitter in list(_emitters):
            emitter.watch(_listeners)  # a finalizer may have changed them meanwhile


def _after_fork_in_child() -> None:
    """Start a forked child with empty pools; it frees nothing twice."""
    for emitter in list(_emitters):
        emitter.after_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)
