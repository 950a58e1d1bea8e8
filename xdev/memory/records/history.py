"""What happened to the pools, and what they look like, as other tools read it.

The last events are kept raw. ``pickle.dump(snapshot(), file)`` opens in
https://pytorch.org/memory_viz, and RMM's replay benchmark reads the text of
:func:`snapshot_csv`.
"""

from __future__ import annotations

import threading
from collections import deque
from datetime import UTC, datetime
from itertools import chain
from operator import itemgetter
from time import time_ns
from typing import TYPE_CHECKING, Any, NamedTuple, final

from xdev._forks import module_lock
from xdev.memory import hooks, registry
from xdev.memory.accounting import ChunkStates
from xdev.memory.records import tracking
from xdev.memory.records.plots import state_after
from xdev.memory.records.tracking import TRACKER, Places

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from xdev.memory.blocks import Chunk
    from xdev.memory.heap import Heap
    from xdev.memory.pools import Pool
    from xdev.memory.records.tracking import Frames

    #: PyTorch's frames of live blocks, by address.
    _Makers = dict[int, list[dict[str, Any]]]


ENTRIES = 100_000  # events kept without another word


class Happening(NamedTuple):
    """One event of a pool."""

    state: Any
    action: str  # as PyTorch calls it
    address: int
    nbytes: int
    stream: int
    nanoseconds: int
    thread: int
    frames: tracking.Frames


@final
class History(hooks.Listener):
    """Keeps the last events of all pools."""

    def __init__(self, entries: int) -> None:
        self.happenings: deque[Happening] = deque(maxlen=entries)

    def acquired(self, state: Any, chunk: Chunk) -> None:
        """Note a block handed out, and by whom."""
        made = tracking.stack(3)
        self._note(state, "alloc", chunk.address, chunk.nbytes, chunk.stream, made)

    def released(self, state: Any, chunk: Chunk) -> None:
        """Note a block that came back."""
        self._note(state, "free_completed", chunk.address, chunk.nbytes, chunk.stream)

    def refused(self, state: Any, nbytes: int) -> None:
        """Note a request that failed, and whose; the address is what the limit left."""
        limit = state.budget.limit
        left = 0 if limit is None else max(0, limit - state.ledger.reserved)
        self._note(state, "oom", left, nbytes, made=tracking.stack(3))

    def grown(self, state: Any, address: int, nbytes: int) -> None:
        """Note a segment taken, and for whom."""
        self._note(state, "segment_alloc", address, nbytes, made=tracking.stack(3))

    def returned(self, state: Any, address: int, nbytes: int) -> None:
        """Note a segment given back."""
        self._note(state, "segment_free", address, nbytes)

    def _note(
        self,
        state: Any,
        action: str,
        address: int,
        nbytes: int,
        stream: int = 0,
        made: tracking.Frames | None = None,
    ) -> None:
        now, thread = time_ns(), threading.get_ident()
        self.happenings.append(
            Happening(state, action, address, nbytes, stream, now, thread, made or [])
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


LIVE, LATE, FREE = "active_allocated", "active_pending_free", "inactive"
RMM_HEADER = "Thread,Time,Action,Pointer,Size,Stream"
#: PyTorch's name of an event, and RMM's; the others are not in RMM's log.
RMM = {
    "alloc": "allocate",
    "free_completed": "free",
    "oom": "allocate failure",
}


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
        ``device_traces`` (a list of events a pool; none but while
        :func:`record_history` is on), as ``torch.cuda.memory._snapshot`` returns them;
        a segment's ``device`` is the number of its pool. Beside PyTorch's: ``pools``,
        their names, and each event's ``thread``. Sizes are granted sizes in bytes,
        times are in microseconds since 1970.

    Examples
    --------
    >>> import xdev
    >>> x = xdev.empty(100_000, device="cpu")
    >>> found = snapshot("cpu", "host")
    >>> found["pools"], sorted(found["segments"][0]["blocks"][0])
    (['cpu'], ['address', 'frames', 'requested_size', 'size', 'state'])
    """
    return snapshot_of(registry.existing(device, kind))


def snapshot_of(pools: Iterable[Pool]) -> dict[str, Any]:
    """Return :func:`snapshot`'s dictionary of these pools."""
    pools = list(pools)
    for pool in pools:
        pool.state.process_pending()  # what was dropped is an event of its own
    happenings, places = recorded(), Places()
    segments, traces = [], []
    for number, pool in enumerate(pools):
        state = pool.state
        mine = [happening for happening in happenings if happening.state is state]
        makers = TRACKER.frames_of(state)
        makers |= {h.address: h.frames for h in mine if h.action == "alloc"}
        described = {at: _frames(places, made) for at, made in makers.items()}
        segments += _segments(pool, number, described)
        traces.append([event for h in mine for event in _events(places, h)])
    return {
        "segments": segments,
        "device_traces": traces,
        "pools": [pool.name for pool in pools],
    }


def _segments(pool: Pool, number: int, makers: _Makers) -> list[dict[str, Any]]:
    state = pool.state

    def view(heap: Heap, _: object) -> list[dict[str, Any]]:
        chunk_states, small = ChunkStates(state, heap), 2 * heap.policy.small
        return [
            {
                "device": number,
                "address": segment.address,
                "total_size": segment.nbytes,
                "stream": segment.first.stream,
                "segment_type": "small" if segment.nbytes <= small else "large",
                "segment_pool_id": (0, 0),
                "is_expandable": False,
                "frames": [],
                "blocks": [_block(chunk, chunk_states, makers) for chunk in segment],
            }
            for segment in heap
        ]

    found = state.look(view)
    for segment in found:
        blocks = segment["blocks"]
        used = [b for b in blocks if b["state"] == LIVE]
        segment["allocated_size"] = sum(b["size"] for b in used)
        segment["active_size"] = sum(b["size"] for b in blocks if b["state"] != FREE)
        segment["requested_size"] = sum(b["requested_size"] for b in used)
    return found


def _block(chunk: Chunk, chunk_states: ChunkStates, makers: _Makers) -> dict[str, Any]:
    free = chunk_states.is_free(chunk)
    asked = chunk.nbytes if chunk.request is None else chunk.request
    return {
        "address": chunk.address,
        "size": chunk.nbytes,
        "requested_size": 0 if free else asked,
        "state": FREE if free else LATE if chunk_states.is_late(chunk) else LIVE,
        "frames": [] if free else makers.get(chunk.address, []),
    }


def _events(places: Places, happening: Happening) -> Iterator[dict[str, Any]]:
    event = {
        "action": happening.action,
        "addr": happening.address,
        "size": happening.nbytes,
        "stream": happening.stream,
        "time_us": happening.nanoseconds // 1000,
        "frames": _frames(places, happening.frames),
        "thread": happening.thread,
    }
    if happening.action == "oom":
        event["device_free"] = event.pop("addr")
    elif happening.action == "free_completed":
        yield event | {"action": "free_requested"}  # the viewer wants the pair
    yield event


def _frames(places: Places, made: Frames) -> list[dict[str, Any]]:
    return [
        {"filename": file, "line": line, "name": name}
        for file, line, name in places.of(made)
    ]


def snapshot_csv(device: object = None, kind: str | None = None) -> str:
    """Return the recorded events as the log that RMM's logging adaptor writes.

    The blocks that were in use when the record began come first, so the sizes of
    ``allocate`` less those of ``free`` are :func:`~xdev.memory.allocated`.

    Parameters are :func:`snapshot`'s.

    Returns
    -------
    str
        Comma-separated values under a header: thread, time of day, ``allocate``,
        ``free`` or ``allocate failure``, address, granted size [B], stream.

    Examples
    --------
    >>> import xdev
    >>> from xdev import memory
    >>> x = xdev.empty(100_000, device="cpu")
    >>> memory.record_history()
    >>> print(snapshot_csv("cpu", "host"))
    Thread,Time,Action,Pointer,Size,Stream
    ...,allocate,0x...,800000,0...
    >>> memory.record_history(False)
    """
    return csv_of(snapshot(device, kind))


def csv_of(found: dict[str, Any]) -> str:
    """Return :func:`snapshot_csv`'s text of a snapshot."""
    traces = found["device_traces"]
    now = time_ns() // 1000
    begun = min((event["time_us"] for event in chain(*traces)), default=now)
    earlier = [
        {"action": "alloc", "addr": address, "size": size, "time_us": begun}
        for number in range(len(traces))
        for address, size in state_after(found, number, 0).blocks.items()
    ]
    events = sorted(chain(earlier, *traces), key=itemgetter("time_us"))
    return "\n".join((RMM_HEADER, *(_row(e) for e in events if e["action"] in RMM)))


def _row(event: Mapping[str, Any]) -> str:
    time = datetime.fromtimestamp(event["time_us"] / 1e6, tz=UTC).astimezone()
    address, stream = event.get("addr"), event.get("stream", 0)
    values = (
        event.get("thread", 0),
        f"{time:%H:%M:%S.%f}",
        RMM[event["action"]],
        "(nil)" if address is None else f"{address:#x}",
        event["size"],
        f"{stream:#x}" if stream else 0,
    )
    return ",".join(map(str, values))
