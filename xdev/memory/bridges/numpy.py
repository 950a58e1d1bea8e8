"""NumPy's array buffers, in every thread, by the allocator that NEP 49 describes.

Who owns what, for how long: the host pool owns the segments, and a buffer is a block of
it from ``ndarray``'s making to its end. New arrays of 64 KiB and more are served. The
others stay the allocator's that was there, also where they grow: only that one knows
how large its buffers are.

A thread starts with NumPy's default handler, whichever its parent set, so the bridge
does not set a handler: it puts the native tier's functions into the default one. They
need neither Python nor its lock. Only where no free block of the very class is left do
they call Python, and the pool's ladder serves: the limit holds, and a refusal is a
``MemoryError``.

After ``uninstall`` NumPy allocates as before. The bridge's ``free`` stays in place for
ever, since arrays may: what is not the pool's goes to the ``free`` that was there.
Nothing of it ends with the interpreter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev._forks import module_lock
from xdev.memory import registry
from xdev.memory.arrays import POOLED
from xdev.memory.bridges import native_functions, serve

if TYPE_CHECKING:
    from xdev.memory.pools import Pool

_lock = module_lock()  # guards the one below
_handlers: list[Any] = []  # the one that NumPy has, from the first time on


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
        tier = native_functions("numpy")
        lists = serve(self._pool)
        if lists is None:
            policy = self._pool.state.policy.name
            return f"the host pool keeps nothing under the policy {policy!r}"
        with _lock:
            if not _handlers:
                handler = tier.NumpyHandler(POOLED)
                handler.serve(lists)
                if not _handlers:  # nor did a finalizer make it meanwhile
                    _handlers.append(handler)
                    handler.install()
            _handlers[0].serve(lists)
        return None

    def uninstall(self) -> None:
        """Let NumPy allocate as before."""
        with _lock:
            _handlers[0].serve(None)
