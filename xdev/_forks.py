"""What lives as long as the process: locks that a forked child finds free, and more."""

from __future__ import annotations

import ctypes
import os
from _thread import RLock  # threading's own: that module takes 0.5 ms to load
from typing import TypeVar

T = TypeVar("T")


def module_lock() -> RLock:
    """Return a lock that lives as long as the process, and one of its own in a child.

    Another thread of the parent may hold it at the fork; that thread is not in the
    child, where the lock is free then. It may be entered again by the thread that has
    it, since the garbage collector may run a finalizer under it.
    """
    lock = RLock()

    def renew() -> None:
        if lock.acquire(blocking=False):  # free, or the forking thread's own
            lock.release()
        else:
            lock._at_fork_reinit()  # type: ignore[attr-defined] # noqa: SLF001

    os.register_at_fork(after_in_child=renew)
    return lock


def immortal(kept: T) -> T:
    """Keep an object that C code points to until the process is gone, and return it.

    A list in a module would not do: the interpreter empties its modules at the end,
    and arrays that are still alive then are given back after that.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    return kept
