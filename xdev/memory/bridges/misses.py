"""Serving the requests of C clients that no free block of the class could."""

from __future__ import annotations

import atexit
from functools import partial
from typing import TYPE_CHECKING

from xdev.errors import OutOfMemoryError
from xdev.memory.native import entries

if TYPE_CHECKING:
    from xdev.memory.native.front import Front
    from xdev.memory.pools import Pool


def serve(pool: Pool) -> Front | None:
    """Have a pool's front serve C clients, their misses too; None: it keeps nothing.

    Misses are served as long as there is an interpreter.
    """
    front = pool.stock.clients.make_front()
    if front is not None:
        front.serve(partial(_miss, pool))
        atexit.register(front.retire)
    return front


def _miss(pool: Pool, nbytes: int, stream: int) -> int:
    try:
        chunk, fresh = pool.take_fresh(nbytes, stream)
    except OutOfMemoryError:
        return entries.REFUSED
    if not pool.stock.clients.hand_over(chunk, free=False):
        chunk.give(chunk)
        return entries.NOT_SERVED
    return chunk.address + (entries.FRESH if fresh else 0)
