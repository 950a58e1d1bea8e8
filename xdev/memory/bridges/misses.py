"""Serving the requests of C clients that no free block of the class could."""

from __future__ import annotations

import atexit
import ctypes
from functools import partial
from typing import TYPE_CHECKING

from xdev.memory.native import entries, layout

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


def _miss(pool: Pool, nbytes: int, stream: int, place: int) -> None:
    chunk, fresh = pool.take_fresh(nbytes, stream)
    answer = (ctypes.c_int64 * layout.ANSWER).from_address(place)
    answer[layout.ADDED] = entries.FRESH if fresh else 0
    if not pool.stock.clients.hand_over(chunk, free=False, answer=place):
        chunk.give(chunk)
        answer[0] = entries.NOT_SERVED
