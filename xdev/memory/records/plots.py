"""A picture of a snapshot: bytes over time, and where the blocks lie in segments.

A snapshot that was read from a file does as well.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

from xdev import _optional
from xdev.memory.records.tracking import maker
from xdev.memory.reports import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Event = Mapping[str, Any]


#: What events do to the bytes in use, and to the bytes held; the others nothing.
IN_USE = {"alloc": 1, "free_completed": -1}
HELD = {"segment_alloc": 1, "segment_free": -1}


@final
@dataclass(slots=True)
class State:
    """The memory of one pool at a moment.

    Parameters
    ----------
    blocks, segments : dict
        Size of each block in use, and of each segment, by address [B].
    frames : dict
        Who made the blocks, as far as it is known, by address.
    """

    blocks: dict[int, int] = field(default_factory=dict)
    segments: dict[int, int] = field(default_factory=dict)
    frames: dict[int, list[Any]] = field(default_factory=dict)

    @property
    def allocated(self) -> int:
        """Bytes in use [B]."""
        return sum(self.blocks.values())

    @property
    def reserved(self) -> int:
        """Bytes held from the source [B]."""
        return sum(self.segments.values())

    def undo(self, event: Event) -> None:
        """Change to what was before an event."""
        for signs, sizes in ((IN_USE, self.blocks), (HELD, self.segments)):
            sign = signs.get(event["action"])
            if sign == 1:
                sizes.pop(event["addr"], None)
            elif sign == -1:
                sizes[event["addr"]] = event["size"]
        if event["action"] == "alloc":
            self.frames.pop(event["addr"], None)


@final
class Timeline(NamedTuple):
    """One pool from the first recorded event on.

    Parameters
    ----------
    seconds : list of float
        When each event was, since the first [s].
    allocated, reserved : list of int
        Bytes in use and bytes held after each event [B].
    """

    seconds: list[float]
    allocated: list[int]
    reserved: list[int]


def state_after(
    snapshot: Mapping[str, Any], number: int, count: int | None = None
) -> State:
    """Return what was after the first ``count`` recorded events of a pool.

    None: after all, as the snapshot shows it.
    """
    state, events = State(), snapshot["device_traces"][number]
    for segment in snapshot["segments"]:
        if segment["device"] != number:
            continue
        state.segments[segment["address"]] = segment["total_size"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                state.blocks[block["address"]] = block["size"]
                state.frames[block["address"]] = block["frames"]
    count = len(events) if count is None else count
    for event in reversed(events[count:]):
        state.undo(event)
    for event in events[:count]:
        if event["action"] == "alloc":
            state.frames[event["addr"]] = event["frames"]
    return state


def timeline(snapshot: Mapping[str, Any], number: int) -> Timeline:
    """Return a pool's bytes over time.

    Examples
    --------
    >>> event = {"action": "alloc", "addr": 64, "size": 512, "time_us": 0, "frames": []}
    >>> late = {"action": "segment_free", "addr": 0, "size": 4096, "time_us": 2_000_000}
    >>> timeline({"segments": [], "device_traces": [[event, late]]}, 0)
    Timeline(seconds=[0.0, 2.0], allocated=[512, 512], reserved=[4096, 0])
    """
    state = state_after(snapshot, number, 0)
    events = snapshot["device_traces"][number]
    in_use = [IN_USE.get(event["action"], 0) * event["size"] for event in events]
    held = [HELD.get(event["action"], 0) * event["size"] for event in events]
    return Timeline(
        [(event["time_us"] - events[0]["time_us"]) / 1e6 for event in events],
        list(accumulate(in_use, initial=state.allocated))[1:],
        list(accumulate(held, initial=state.reserved))[1:],
    )


#: Of the lines that hold the most; Okabe & Ito's, told apart by all eyes.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#f0e442")
OTHER, FREE, EDGE, USED = "#888888", "#e4e4e4", "#444444", "#b0c4d8"
MIB = 1 << 20
SIZE = 12.0, 7.0  # of a pool [inch]


def draw(snapshot: Mapping[str, Any], path: Path) -> None:
    """Draw a snapshot into a PNG file.

    Each pool has a timeline of bytes in use and reserved, and two maps of its segments,
    one a row, with the blocks in use coloured by the line that made them: when the most
    was in use, and at the end.

    Parameters
    ----------
    snapshot : dict
        From :func:`~xdev.memory.snapshot`.
    path : Path
        Where to.

    Raises
    ------
    DeviceUnavailableError
        There is no matplotlib; the text has the command that installs it.
    OSError
        The file cannot be written.
    """
    numbers = range(len(snapshot["device_traces"]))
    width, height = SIZE
    figure = _optional.matplotlib_figure().Figure(
        figsize=(width, height * max(1, len(numbers))), layout="constrained"
    )
    if not numbers:
        figure.suptitle("no pool is in use")
    else:
        parts = figure.subfigures(len(numbers), 1, squeeze=False)
        for number in numbers:
            _draw_pool(parts[number, 0], snapshot, number)
    figure.savefig(path, format="png", dpi=100)


def _draw_pool(part: Any, snapshot: Mapping[str, Any], number: int) -> None:
    line = timeline(snapshot, number)
    axes = part.subplot_mosaic([["time", "time"], ["peak", "end"]])
    part.suptitle(snapshot["pools"][number])
    end = state_after(snapshot, number)
    peak = end
    if line.allocated:
        count = 1 + max(range(len(line.allocated)), key=line.allocated.__getitem__)
        peak = state_after(snapshot, number, count)
        _draw_timeline(axes["time"], line, line.seconds[count - 1])
    else:
        axes["time"].set_title("no events: record_history() was not on")
    colours = _colours([peak, end])
    _draw_map(axes["peak"], "most in use", peak, colours)
    _draw_map(axes["end"], "at the end", end, colours)
    for name, colour in (*colours.items(), ("free", FREE)):
        axes["end"].fill_between([], [], color=colour, label=name)
    part.legend(loc="outside lower center", ncols=4)


def _draw_timeline(axes: Any, line: Timeline, peak: float) -> None:
    reserved, in_use = _mib(line.reserved), _mib(line.allocated)
    axes.step(line.seconds, reserved, color=EDGE, where="post", label="reserved")
    axes.fill_between(
        line.seconds, in_use, color=USED, step="post", linewidth=0, label="in use"
    )
    axes.axvline(peak, color=EDGE, linestyle=":", label="most in use")
    axes.set_ylim(bottom=0)
    axes.set(xlabel="time [s]", ylabel="memory [MiB]")


def _draw_map(axes: Any, title: str, state: State, colours: Mapping[str, str]) -> None:
    segments = sorted(state.segments.items(), key=lambda item: (-item[1], item[0]))
    starts = sorted(state.blocks)
    for row, (start, nbytes) in enumerate(segments):
        blocks = list(_within(starts, start, start + nbytes))
        spans = [_mib((at - start, state.blocks[at])) for at in blocks]
        shades = [colours.get(_line(state, at), OTHER) for at in blocks]
        axes.broken_barh([_mib((0, nbytes))], (row, 0.8), facecolor=FREE)
        axes.broken_barh(
            spans, (row, 0.8), facecolors=shades, edgecolor=EDGE, linewidth=0.2
        )
    axes.invert_yaxis()
    axes.yaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    axes.set(xlabel="offset in the segment [MiB]", ylabel="segment")
    used, held = text_of(state.allocated), text_of(state.reserved)
    axes.set_title(f"{title}: {used} of {held} in {len(segments)} segments")


def _mib(sizes: Iterable[int]) -> list[float]:
    return [nbytes / MIB for nbytes in sizes]


def _within(starts: list[int], start: int, stop: int) -> Iterable[int]:
    return starts[bisect_left(starts, start) : bisect_left(starts, stop)]


def _line(state: State, address: int) -> str:
    """Return file name and line that made a block."""
    found = state.frames.get(address)
    if not found:
        return "not recorded"
    return Path(maker((f["filename"], f["line"], f["name"]) for f in found)).name


def _colours(states: Iterable[State]) -> dict[str, str]:
    """Return a colour for each of the lines that hold the most."""
    held: Counter[str] = Counter()
    for state in states:
        for address, nbytes in state.blocks.items():
            held[_line(state, address)] += nbytes
    most = [line for line, _ in held.most_common(len(COLOURS))]
    found = dict(zip(most, COLOURS, strict=False))
    return found if len(held) == len(most) else found | {"other lines": OTHER}
