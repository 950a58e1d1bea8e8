"""What happened to the pools, and what they look like, as other tools read it.

A picture shows bytes over time, and where the blocks lie in segments; a snapshot that
was read from a file does as well. The last events are kept raw.
``pickle.dump(snapshot(), file)`` opens in https://pytorch.org/memory_viz.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter, deque
from itertools import accumulate
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Any, NamedTuple, final

from xdev import _optional
from xdev._forks import module_lock
from xdev.memory import hooks, registry, tracking
from xdev.memory.accounting import FREE, LIVE, WAITING, ChunkStates
from xdev.memory.registry import text_of
from xdev.memory.tracking import TRACKER, maker, places_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from xdev.memory.blocks import Chunk, Heap
    from xdev.memory.pools import Pool
    from xdev.memory.tracking import Frames

    Event = Mapping[str, Any]
    #: PyTorch's frames of live blocks, by address.
    _Makers = dict[int, list[dict[str, Any]]]

ENTRIES = 100_000  # events kept without another word


@final
class History(hooks.Listener):
    """Keeps the last events of all pools."""

    def __init__(self) -> None:
        self.happenings: deque[tuple[Any, Event]] = deque()  # a state and its event

    def acquired(self, state: Any, chunk: Chunk) -> None:
        """Note a block handed out, and by whom."""
        at, stream, frames = chunk.address, chunk.stream, tracking.stack(3)
        self._note(state, "alloc", at, chunk.nbytes, stream=stream, frames=frames)

    def released(self, state: Any, chunk: Chunk) -> None:
        """Note a block that came back."""
        at, stream = chunk.address, chunk.stream
        self._note(state, "free_completed", at, chunk.nbytes, stream=stream)

    def refused(self, state: Any, nbytes: int) -> None:
        """Note a request that failed, and whose; the address is what the limit left."""
        limit = state.budget.limit
        left = 0 if limit is None else max(0, limit - state.ledger.reserved)
        self._note(state, "oom", left, nbytes, frames=tracking.stack(3))

    def grown(self, state: Any, address: int, nbytes: int) -> None:
        """Note a segment taken, and for whom."""
        self._note(state, "segment_alloc", address, nbytes, frames=tracking.stack(3))

    def returned(self, state: Any, address: int, nbytes: int) -> None:
        """Note a segment given back."""
        self._note(state, "segment_free", address, nbytes)

    def _note(self, state: Any, action: str, at: int, nbytes: int, **more: Any) -> None:
        event = {
            "action": action,
            "addr": at,
            "size": nbytes,
            "stream": 0,
            "time_us": time_ns() // 1000,
            "frames": [],
            "thread": threading.get_ident(),
            **more,
        }
        self.happenings.append((state, event))


HISTORY = History()
_lock = module_lock()  # guards who listens, and what is kept


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
    if max_entries < 1:
        raise ValueError(f"max_entries={max_entries} keeps nothing: use 1 or more")
    with _lock:
        hooks.subscribe(HISTORY, on=enabled)
        HISTORY.happenings = deque(maxlen=max_entries)


ACTIVE, PENDING, INACTIVE = "active_allocated", "active_pending_free", "inactive"
STATES = {LIVE: ACTIVE, WAITING: PENDING, FREE: INACTIVE}


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

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        There is no such device or kind, or it cannot be used.

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
    with _lock:
        happenings = list(HISTORY.happenings)
    segments, traces = [], []
    for number, pool in enumerate(pools):
        state = pool.state
        mine = [event for owner, event in happenings if owner is state]
        makers = TRACKER.frames_of(state)
        makers |= {e["addr"]: e["frames"] for e in mine if e["action"] == "alloc"}
        described = {at: _frames(frames) for at, frames in makers.items()}
        segments += _segments(pool, number, described)
        traces.append([told for event in mine for told in _events(event)])
    names = [pool.name for pool in pools]
    return {"segments": segments, "device_traces": traces, "pools": names}


def _segments(pool: Pool, number: int, makers: _Makers) -> list[dict[str, Any]]:
    def view(heap: Heap, _: object) -> list[dict[str, Any]]:
        states, segments = ChunkStates(pool.state, heap), []
        for segment in heap:
            blocks = [_block(chunk, states, makers) for chunk in segment]
            used = [b for b in blocks if b["state"] == ACTIVE]
            free = sum(b["size"] for b in blocks if b["state"] == INACTIVE)
            description = {
                "device": number,
                "address": segment.address,
                "total_size": segment.nbytes,
                "allocated_size": sum(b["size"] for b in used),
                "active_size": segment.nbytes - free,
                "requested_size": sum(b["requested_size"] for b in used),
                "stream": segment.first.stream,
                "segment_type": "small" if heap.is_small(segment) else "large",
                "segment_pool_id": (0, 0),
                "is_expandable": False,
                "frames": [],
                "blocks": blocks,
            }
            segments.append(description)
        return segments

    return pool.state.look(view)


def _block(chunk: Chunk, chunk_states: ChunkStates, makers: _Makers) -> dict[str, Any]:
    what = chunk_states.of(chunk)
    free = what == FREE
    asked = chunk.nbytes if chunk.request is None else chunk.request
    return {
        "address": chunk.address,
        "size": chunk.nbytes,
        "requested_size": 0 if free else asked,
        "state": STATES[what],
        "frames": [] if free else makers.get(chunk.address, []),
    }


def _events(event: Event) -> Iterator[dict[str, Any]]:
    """Return an event as PyTorch tells of it."""
    told = {**event, "frames": _frames(event["frames"])}
    if told["action"] == "oom":
        told["device_free"] = told.pop("addr")
    elif told["action"] == "free_completed":
        yield told | {"action": "free_requested"}  # the viewer wants the pair
    yield told


def _frames(frames: Frames) -> list[dict[str, Any]]:
    keys = "filename", "line", "name"
    return [dict(zip(keys, place, strict=True)) for place in places_of(frames)]


#: What events do to the bytes in use, and to the bytes held; the others nothing.
IN_USE = {"alloc": 1, "free_completed": -1}
HELD = {"segment_alloc": 1, "segment_free": -1}


@final
class State(NamedTuple):
    """One pool's memory at a moment: sizes by address [B], and who made the blocks."""

    blocks: dict[int, int]
    segments: dict[int, int]
    frames: dict[int, list[Any]]

    @property
    def allocated(self) -> int:
        """Bytes in use [B]."""
        return sum(self.blocks.values())

    @property
    def reserved(self) -> int:
        """Bytes held from the source [B]."""
        return sum(self.segments.values())


def state_after(snapshot: Event, number: int, count: int | None = None) -> State:
    """Return what was after the first ``count`` recorded events of a pool.

    None: after all, as the snapshot shows it.
    """
    mine = [each for each in snapshot["segments"] if each["device"] == number]
    used = [b for each in mine for b in each["blocks"] if b["state"] == ACTIVE]
    blocks = {block["address"]: block["size"] for block in used}
    segments = {each["address"]: each["total_size"] for each in mine}
    frames = {block["address"]: block["frames"] for block in used}
    events = snapshot["device_traces"][number]
    for event in reversed([] if count is None else events[count:]):
        for signs, sizes in ((IN_USE, blocks), (HELD, segments)):
            sign = signs.get(event["action"])
            if sign == 1:
                sizes.pop(event["addr"], None)
            elif sign == -1:
                sizes[event["addr"]] = event["size"]
        if event["action"] == "alloc":
            frames.pop(event["addr"], None)
    allocs = (event for event in events[:count] if event["action"] == "alloc")
    frames |= {event["addr"]: event["frames"] for event in allocs}
    return State(blocks, segments, frames)


def timeline(snapshot: Event, number: int) -> tuple[list[float], list[int], list[int]]:
    """Return when each recorded event of a pool was, since the first [s].

    And the bytes in use and the bytes held after it [B].
    """
    state = state_after(snapshot, number, 0)
    events = snapshot["device_traces"][number]
    in_use = [IN_USE.get(event["action"], 0) * event["size"] for event in events]
    held = [HELD.get(event["action"], 0) * event["size"] for event in events]
    return (
        [(event["time_us"] - events[0]["time_us"]) / 1e6 for event in events],
        list(accumulate(in_use, initial=state.allocated))[1:],
        list(accumulate(held, initial=state.reserved))[1:],
    )


#: Of the lines that hold the most; Okabe & Ito's, told apart by all eyes.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#f0e442")
OTHER, UNUSED, EDGE, USED = "#888888", "#e4e4e4", "#444444", "#b0c4d8"
MIB = 1 << 20


def draw(snapshot: Mapping[str, Any], path: Path) -> None:
    """Draw a snapshot into a PNG file; DeviceUnavailableError without matplotlib.

    A pool has a timeline, and maps of its segments at the peak and at the end, one a
    row, with the blocks in use coloured by the line that made them.
    """
    numbers = range(len(snapshot["device_traces"]))
    inches = 12.0, 7.0 * max(1, len(numbers))
    figure = _optional.matplotlib_figure().Figure(inches, layout="constrained")
    if not numbers:
        figure.suptitle("no pool is in use")
    else:
        parts = figure.subfigures(len(numbers), 1, squeeze=False)
        for number in numbers:
            _draw_pool(parts[number, 0], snapshot, number)
    figure.savefig(path, format="png", dpi=100)


def _draw_pool(part: Any, snapshot: Mapping[str, Any], number: int) -> None:
    seconds, allocated, reserved = timeline(snapshot, number)
    axes = part.subplot_mosaic([["time", "time"], ["peak", "end"]])
    part.suptitle(snapshot["pools"][number], parse_math=False)
    end = peak = state_after(snapshot, number)
    time = axes["time"]
    if allocated:
        at = max(range(len(allocated)), key=allocated.__getitem__)
        peak = state_after(snapshot, number, 1 + at)
        time.step(seconds, _mib(reserved), color=EDGE, where="post", label="reserved")
        step = {"step": "post", "linewidth": 0}
        time.fill_between(seconds, _mib(allocated), color=USED, label="in use", **step)
        time.axvline(seconds[at], color=EDGE, linestyle=":", label="most in use")
        time.set_ylim(bottom=0)
        time.set(xlabel="time [s]", ylabel="memory [MiB]")
    else:
        time.set_title("no events: record_history() was not on")
    colours = _colours([peak, end])
    _draw_map(axes["peak"], "most in use", peak, colours)
    _draw_map(axes["end"], "at the end", end, colours)
    shown, names = time.get_legend_handles_labels()
    for name, colour in (*colours.items(), ("free", UNUSED)):
        shown.append(axes["end"].fill_between([], [], color=colour))
        names.append(name)
    legend = part.legend(shown, names, loc="outside lower center", ncols=4)
    for text in legend.get_texts():
        text.set_parse_math(False)  # a file's name is no formula


def _draw_map(axes: Any, title: str, state: State, colours: Mapping[str, str]) -> None:
    segments = sorted(state.segments.items(), key=lambda item: (-item[1], item[0]))
    starts = sorted(state.blocks)
    for row, (start, nbytes) in enumerate(segments):
        first, last = (bisect_left(starts, at) for at in (start, start + nbytes))
        blocks = starts[first:last]
        spans = [_mib((at - start, state.blocks[at])) for at in blocks]
        shades = [colours.get(_line(state, at), OTHER) for at in blocks]
        edges, place = {"edgecolor": EDGE, "linewidth": 0.2}, (row, 0.8)
        axes.broken_barh([_mib((0, nbytes))], place, facecolor=UNUSED)
        axes.broken_barh(spans, place, facecolors=shades, **edges)
    axes.invert_yaxis()
    axes.yaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    axes.set(xlabel="offset in the segment [MiB]", ylabel="segment")
    used, held = text_of(state.allocated), text_of(state.reserved)
    axes.set_title(f"{title}: {used} of {held} in {len(segments)} segments")


def _mib(sizes: Iterable[int]) -> list[float]:
    return [nbytes / MIB for nbytes in sizes]


def _line(state: State, address: int) -> str:
    """Return file name and line that made a block."""
    frames = state.frames.get(address)
    if not frames:
        return "not recorded"
    return Path(maker((f["filename"], f["line"], f["name"]) for f in frames)).name


def _colours(states: Iterable[State]) -> dict[str, str]:
    """Return a colour for each of the lines that hold the most."""
    held: Counter[str] = Counter()
    for state in states:
        for address, nbytes in state.blocks.items():
            held[_line(state, address)] += nbytes
    most = [line for line, _ in held.most_common(len(COLOURS))]
    colours = dict(zip(most, COLOURS, strict=False))
    return colours if len(held) == len(most) else colours | {"other lines": OTHER}
