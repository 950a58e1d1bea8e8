"""What happened to the pools, and what they look like, in PyTorch's snapshot format.

``pickle.dump(snapshot(), file)`` opens in https://pytorch.org/memory_viz.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from time import time_ns
from typing import TYPE_CHECKING, Any, final

from xdev.memory import hooks, registry, tracking

if TYPE_CHECKING:
    from xdev.memory.blocks import Chunk, Segment
    from xdev.memory.pools import Pool

ENTRIES = 100_000  # events kept without another word


@final
@dataclass(frozen=True, slots=True)
class Happening:
    """One event of a pool."""

    stock: Any
    action: str
    address: int
    nbytes: int
    stream: int
    microseconds: int
    frames: tuple[tuple[Any, int], ...]


@final
class History:
    """Keeps the last events of all pools."""

    def __init__(self, entries: int) -> None:
        self.happenings: deque[Happening] = deque(maxlen=entries)

    def acquired(self, stock: Any, chunk: Chunk) -> None:
        """Note a block handed out, and by whom."""
        self._note(stock, "alloc", chunk.address, chunk.nbytes, chunk.stream)

    def released(self, stock: Any, chunk: Chunk) -> None:
        """Note a block that came back."""
        self._note(stock, "free_completed", chunk.address, chunk.nbytes, chunk.stream)

    def grown(self, stock: Any, address: int, nbytes: int) -> None:
        """Note a segment taken."""
        self._note(stock, "segment_alloc", address, nbytes, 0)

    def returned(self, stock: Any, address: int, nbytes: int) -> None:
        """Note a segment given back."""
        self._note(stock, "segment_free", address, nbytes, 0)

    def largest(self, stock: Any, count: int) -> tuple[str, ...]:  # noqa: ARG002
        """Return nothing: the tracker knows what is live."""
        return ()

    def _note(
        self, stock: Any, action: str, address: int, nbytes: int, stream: int
    ) -> None:
        now = time_ns() // 1000
        frames = tracking.stack(3) if action in ("alloc", "segment_alloc") else ()
        self.happenings.append(
            Happening(stock, action, address, nbytes, stream, now, frames)
        )


_recording: list[History] = []  # one at most


def record_history(enabled: bool = True, *, max_entries: int = ENTRIES) -> None:
    """Keep the pools' events for :func:`snapshot`, or stop and forget them.

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
    """
    if max_entries < 1:
        message = f"max_entries={max_entries} keeps nothing: use 1 or more"
        raise ValueError(message)
    while _recording:
        hooks.unsubscribe(_recording.pop())
    if enabled:
        history = History(max_entries)
        _recording.append(history)
        hooks.subscribe(history)


def snapshot(device: object = None, kind: str | None = None) -> dict[str, Any]:
    """Return the pools' segments and recorded events as PyTorch's dictionary.

    Parameters
    ----------
    device : Device or str, optional
        Whose memory; the default device without one.
    kind : {"host", "pinned", "device"}, optional
        Which memory; None takes all kinds, one trace each.

    Returns
    -------
    dict
        ``segments`` (each with ``address``, ``total_size`` and ``blocks``) and
        ``device_traces`` (a list of events a pool). Sizes in bytes, times in
        microseconds since 1970.
    """
    pools = registry.existing(device, kind)
    segments = [s for at, pool in enumerate(pools) for s in _segments(pool, at)]
    history = list(_recording[0].happenings) if _recording else []
    return {
        "segments": segments,
        "device_traces": [
            [_event(h) for h in history if h.stock is pool.stock] for pool in pools
        ],
    }


def _segments(pool: Pool, number: int) -> list[dict[str, Any]]:
    def view(heap: Any, _: object) -> list[dict[str, Any]]:
        free = {id(c) for c in heap.binned()}
        return [_segment(segment, number, free) for segment in heap]

    return pool.stock.look(view)


def _segment(segment: Segment, number: int, binned: set[int]) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    for chunk in segment:
        free = chunk.shelved or id(chunk) in binned
        blocks.append(
            {
                "address": chunk.address,
                "size": chunk.nbytes,
                "requested_size": 0 if free else max(chunk.request, 0),
                "state": "inactive" if free else "active_allocated",
                "frames": [],
            }
        )
    active = sum(b["size"] for b in blocks if b["state"] == "active_allocated")
    return {
        "device": number,
        "address": segment.address,
        "total_size": segment.nbytes,
        "allocated_size": active,
        "active_size": active,
        "requested_size": sum(b["requested_size"] for b in blocks),
        "stream": segment.first.stream,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": blocks,
    }


def _event(happening: Happening) -> dict[str, Any]:
    return {
        "action": happening.action,
        "addr": happening.address,
        "size": happening.nbytes,
        "stream": happening.stream,
        "time_us": happening.microseconds,
        "frames": [
            {
                "filename": code.co_filename,
                "line": tracking.line_of(code, instruction),
                "name": code.co_name,
            }
            for code, instruction in happening.frames
        ],
    }
