"""How long the memory of queued copies lives: until the device is done with it.

A block of xdev's pools is noted there: dropped, it waits for the stream before it is
handed out again, and the pool's reports see to that. Memory of others is kept here,
with an event, and let go of at a later copy. No host thread waits for either.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.memory.owners import HostLease, find
from xdev.memory.sources.pinned import PinnedSource, on_device
from xdev.memory.streams import live_streams

if TYPE_CHECKING:
    from xdev.memory.blocks import Chunk

PER_THREAD = 2  # a stream handle that means another stream in every thread

#: Memory of others, with the event that it is kept for.
_under_way: deque[tuple[Any, Any]] = deque()


def keep(queue: Any, index: int, *arrays: Any) -> None:
    """Keep arrays' memory, once they are dropped, until a stream's work so far is done.

    Parameters
    ----------
    queue : cupy.cuda.Stream
        A stream of the current device.
    index : int
        That device.
    *arrays : numpy.ndarray or cupy.ndarray
        Page-locked host memory; or memory of a device, which is of no pool or marked as
        used on the stream (:func:`xdev.memory.owners.mark_uses`).
    """
    if queue.ptr in live_streams.captured:  # who replays a graph keeps what it works on
        return
    others = [x for x in arrays if not _noted(x, queue, index)]
    if _under_way:
        drop_done()
    if others:
        _under_way.append((queue.record(), others))


def _noted(x: Any, queue: Any, index: int) -> bool:
    """Say whether an array's memory is a pool's, and note the stream there."""
    if not isinstance(x, np.ndarray):
        chunk = getattr(x.data.mem, "xdev_chunk", None)  # quicker than a search
        return chunk is not None or find(x.data.ptr, "device") is not None
    pinned = pinned_chunk(x)
    if pinned is None or queue.ptr == PER_THREAD:
        return False
    name = on_device(live_streams.see(queue), index)
    if name not in (pinned.uses or ()):
        stock: Any = pinned.segment.owner
        stock.mark(pinned, (name,))
    return True


def pinned_chunk(x: np.ndarray[Any, Any]) -> Chunk | None:
    """Return the chunk of the pinned pool that an array lies in, or None."""
    lease = getattr(x.base, "base", None)  # quicker than a search
    if isinstance(lease, HostLease) and is_pinned_lease(lease):
        return lease.chunk
    found = find(x.ctypes.data, "pinned")
    return None if found is None else found[1]


def is_pinned_lease(lease: HostLease) -> bool:
    """Say whether a block of host memory is of the pinned pool."""
    stock: Any = lease.chunk.segment.owner
    return isinstance(stock.source, PinnedSource)


def drop_done() -> None:
    """Let go of what was kept for copies that are done."""
    for _ in range(len(_under_way)):
        try:
            event, others = _under_way.popleft()
        except IndexError:  # another thread was faster
            return
        if not event.done:
            _under_way.append((event, others))
