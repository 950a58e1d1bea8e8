"""NumPy's array buffers, in every thread, by the allocator that NEP 49 describes.

Who owns what, for how long: the host pool owns the segments, and a buffer is a block of
it from ``ndarray``'s making to its end. New arrays of 64 KiB and more are served. The
others stay the allocator's that was there, also where they grow: only that one knows
how large its buffers are.

A thread starts with NumPy's default handler, whichever its parent set, so the bridge
does not set a handler: it puts its functions into the default one. They are machine
code and need neither Python nor its lock. Only where no free block of the very class is
left do they call Python, and the pool's ladder serves: the limit holds, and a refusal
is a ``MemoryError``. The core knows a million blocks at a time
(:data:`~xdev.memory.native.layout.BLOCKS`); buffers beyond come from the allocator that
was there and are not counted.

After ``uninstall`` NumPy allocates as before. The bridge's ``free`` stays in place for
ever, since arrays may: what is not the pool's goes to the ``free`` that was there.
Nothing of it ends with the interpreter.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev._forks import module_lock
from xdev._machine_code import immortal
from xdev.memory import registry
from xdev.memory.arrays import POOLED
from xdev.memory.bridges.misses import serve
from xdev.memory.native import entries
from xdev.memory.native.entries import TABLE_WORDS
from xdev.memory.native.machine import machine
from xdev.memory.native.operations import WORD

if TYPE_CHECKING:
    from xdev.memory.pools import Pool

DEFAULT_HANDLER = 306  # its place in NumPy's table
# A handler: a name of 127 bytes, a version byte, the context and four functions.
CONTEXT_AT = 128
FUNCTIONS = "numpy_malloc", "numpy_calloc", "numpy_realloc", "numpy_free"


@cache
def default_handler() -> int:
    """Return the address of NumPy's default handler."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined] # noqa: SLF001
    table = ctypes.cast(pointer(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    place = ctypes.cast(table[DEFAULT_HANDLER] or 0, ctypes.POINTER(ctypes.py_object))
    return int(pointer(place[0], b"mem_handler"))


@final
class Functions:
    """The bridge's functions in the default handler; put there once a process."""

    def __init__(self) -> None:
        self.table = immortal((ctypes.c_int64 * TABLE_WORDS)())
        found = _words(default_handler() + CONTEXT_AT, 5)
        at = entries.CONTEXT // WORD
        self.table[at : at + 5] = list(found)
        self._set(entries.LEAST, POOLED)
        self._set(entries.FILL_AT, _address(ctypes.memset))
        self._set(entries.COPY_AT, _address(ctypes.memmove))
        ours = ctypes.CDLL(None)
        self._set(entries.ADVISE_AT, _address(getattr(ours, "madvise", 0)))
        self._addresses = [machine().addresses[name] for name in FUNCTIONS]

    def put_in(self) -> None:
        """Have NumPy call them."""
        handler = _words(default_handler() + CONTEXT_AT, 5)
        # The functions that were there take no notice of their context: it goes first.
        handler[0] = ctypes.addressof(self.table)
        handler[1:5] = self._addresses

    def serve(self, core: int) -> None:
        """Serve new arrays from a core."""
        self._set(entries.CORE, core)
        self._set(entries.SERVES, 1)

    def rest(self) -> None:
        """Serve no new array."""
        self._set(entries.SERVES, 0)

    def _set(self, offset: int, value: int) -> None:
        self.table[offset // WORD] = value


_lock = module_lock()  # guards the one below
_functions: list[Functions] = []


@final
class NumpyBridge:
    """NumPy's default allocator.

    Parameters
    ----------
    pool : Pool, optional
        Where buffers come from; the host pool without one.
    """

    def __init__(self, pool: Pool | None = None) -> None:
        self._pool = pool or registry.pool("cpu", "host")

    def install(self) -> str | None:
        """Serve new arrays, unless this thread's handler is not NumPy's default."""
        name = np._core.multiarray.get_handler_name()  # type: ignore[attr-defined] # noqa: SLF001
        if name != "default_allocator":
            return f"NumPy's memory handler was set to {name!r}"
        front = serve(self._pool)
        if front is None:
            policy = self._pool.stock.policy.name
            return f"the host pool keeps nothing under the policy {policy!r}"
        with _lock:
            if not _functions:
                made = Functions()
                if not _functions:  # nor did a finalizer make them meanwhile
                    _functions.append(made)
                    made.put_in()
            _functions[0].serve(front.core)
        return None

    def uninstall(self) -> None:
        """Let NumPy allocate as before."""
        with _lock:
            _functions[0].rest()


def _words(address: int, count: int) -> Any:
    return (ctypes.c_int64 * count).from_address(address)


def _address(function: Any) -> int:
    """Return the address of a C function; 0 for none."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0
