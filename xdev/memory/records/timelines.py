"""What a snapshot's events say about the memory at each moment.

A snapshot (:func:`~xdev.memory.snapshot`) holds the last state and what led to it. The
state before an event follows from undoing it, so no event from before the record is
needed. Nothing here asks a pool: a snapshot read from a file does as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from collections.abc import Mapping

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

    def do(self, event: Event) -> None:
        """Change as an event did."""
        self._change(event, 1)
        if event["action"] == "alloc":
            self.frames[event["addr"]] = event["frames"]

    def undo(self, event: Event) -> None:
        """Change to what was before an event."""
        self._change(event, -1)
        if event["action"] == "alloc":
            self.frames.pop(event["addr"], None)

    def _change(self, event: Event, direction: int) -> None:
        for signs, sizes in ((IN_USE, self.blocks), (HELD, self.segments)):
            sign = direction * signs.get(event["action"], 0)
            if sign > 0:
                sizes[event["addr"]] = event["size"]
            elif sign < 0:
                sizes.pop(event["addr"], None)


@final
@dataclass(frozen=True, slots=True)
class Timeline:
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


def final_state(snapshot: Mapping[str, Any], number: int) -> State:
    """Return what a snapshot shows of its pool of a number."""
    state = State()
    for segment in snapshot["segments"]:
        if segment["device"] != number:
            continue
        state.segments[segment["address"]] = segment["total_size"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                state.blocks[block["address"]] = block["size"]
                state.frames[block["address"]] = block["frames"]
    return state


def first_state(snapshot: Mapping[str, Any], number: int) -> State:
    """Return what was before the first recorded event of a pool."""
    state = final_state(snapshot, number)
    for event in reversed(snapshot["device_traces"][number]):
        state.undo(event)
    return state


def state_after(snapshot: Mapping[str, Any], number: int, count: int) -> State:
    """Return what was after the first ``count`` events of a pool."""
    state = first_state(snapshot, number)
    for event in snapshot["device_traces"][number][:count]:
        state.do(event)
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
    state = first_state(snapshot, number)
    events = snapshot["device_traces"][number]
    in_use = [IN_USE.get(event["action"], 0) * event["size"] for event in events]
    held = [HELD.get(event["action"], 0) * event["size"] for event in events]
    return Timeline(
        [(event["time_us"] - events[0]["time_us"]) / 1e6 for event in events],
        list(accumulate(in_use, initial=state.allocated))[1:],
        list(accumulate(held, initial=state.reserved))[1:],
    )
