"""Spares: the memory of recent results, at hand for the next ones of their shapes.

To take a block from a pool and make an array of it is Python's work, and longer than
NumPy takes to add 5,000 numbers. So the hidden arrays of a few results (``.base``, see
:class:`~xdev.memory.owners.HostLease`) are kept in a list that machine code reads: one
that nothing else refers to is free, and the next result may be a view of it.

To the pool their blocks are in use, as are those that were dropped since it last
looked. So it lets go of them wherever it takes those in: no request is refused for
them, no report tells of them, no peak has them in it. :func:`~xdev.memory.free`, which
counts references, lets go of them too, and so does a forked child: they are its
parent's.

Threads: each change of the list is one step under the interpreter's lock, and machine
code holds that from its look at the list until its view is there.
"""

from __future__ import annotations

from typing import Any

from xdev._machine_code import immortal

# Larger results are worth a look at the pool. Python without its lock, whose objects
# are larger, has no moment at which nobody else can refer to one [B].
MOST = 1 << 20 if object.__basicsize__ == 16 else 0  # noqa: PLR2004
PLACES = 4  # z = f(g(x), h(x)) in a loop has so many at once: the old z is alive
# For ever: finalizers call until the very end. Who lets go of all clears it.
KEPT: list[Any] = immortal([])


def keep(hidden: Any) -> None:
    """Keep the hidden array of a new result; the oldest makes room."""
    KEPT.append(hidden)
    del KEPT[:-PLACES]
