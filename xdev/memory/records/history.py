"""What happened to the pools: the last events, kept raw."""

from __future__ import annotations

import threading
from collections import deque
from time import time_ns
from typing import TYPE_CHECKING, Any, NamedTuple, final

from xdev._forks import module_lock
from xdev.memory import hooks
from xdev.memory.records import frames

if TYPE_CHECKING:
    from xdev.memory.blocks import Chunk

ENTRIES = 100_000  # events kept without another word


class Happening(NamedTuple):
    """One event of a pool."""

    stock: Any
    action: str  # as PyTorch calls it
    address: int
    nbytes: int
    stream: int
    nanoseconds: int
    thread: int
    frames: frames.Frames


@final
class History:
    """Keeps the last events of all pools."""

    def __init__(self, entries: int) -> None:
        self.happenings: deque[Happening] = deque(maxlen=entries)

    def acquired(self, stock: Any, chunk: Chunk) -> None:
        """Note a block handed out, and by whom."""
        made = frames.stack(3)
        self._note(stock, "alloc", chunk.address, chunk.nbytes, chunk.stream, made)

    def released(self, stock: Any, chunk: Chunk) -> None:
        """Note a block that came back."""
        self._note(stock, "free_completed", chunk.address, chunk.nbytes, chunk.stream)

    def refused(self, stock: Any, nbytes: int) -> None:
        """Note a request that failed, and whose; the address is what the limit left."""
        limit = stock.budget.limit
        left = 0 if limit is None else max(0, limit - stock.ledger.reserved)
        self._note(stock, "oom", left, nbytes, 0, frames.stack(3))

    def grown(self, stock: Any, address: int, nbytes: int) -> None:
        """Note a segment taken, and for whom."""
        self._note(stock, "segment_alloc", address, nbytes, 0, frames.stack(3))

    def returned(self, stock: Any, address: int, nbytes: int) -> None:
        """Note a segment given back."""
        self._note(stock, "segment_free", address, nbytes, 0)

    def largest(self, stock: Any, count: int) -> tuple[str, ...]:  # noqa: ARG002
        """Return nothing: the tracker knows what is live."""
        return ()

    def _note(
        self,
        stock: Any,
        action: str,
        address: int,
        nbytes: int,
        stream: int,
        made: frames.Frames | None = None,
    ) -> None:
        now, thread = time_ns(), threading.get_ident()
        self.happenings.append(
            Happening(stock, action, address, nbytes, stream, now, thread, made or [])
        )


_lock = module_lock()  # guards the one below
_recording: History | None = None


def record_history(enabled: bool = True, *, max_entries: int = ENTRIES) -> None:
    """Keep the pools' events for :func:`snapshot`, or stop and forget them.

    Blocks dropped by the garbage collector are noted when the pool is next asked for
    something, by the thread that asks.

    Parameters
    ----------
    enabled : bool
        Whether to record from now on.
    max_entries : int
        How many of the last events to keep.

    Raises
    ------
    ValueError
        ``max_entries`` is not positive.

    Examples
    --------
    >>> import xdev
    >>> from xdev import memory
    >>> record_history()
    >>> x = xdev.empty(100_000, device="cpu")
    >>> events = memory.snapshot("cpu")["device_traces"][0]
    >>> "alloc" in {event["action"] for event in events}
    True
    >>> record_history(False)
    """
    global _recording  # noqa: PLW0603 - the one that is kept
    if max_entries < 1:
        message = f"max_entries={max_entries} keeps nothing: use 1 or more"
        raise ValueError(message)
    with _lock:
        _recording = History(max_entries) if enabled else None
        hooks.replace(History, _recording)


def recorded() -> list[Happening]:
    """Return the events kept, the oldest first."""
    with _lock:
        return [] if _recording is None else list(_recording.happenings)
