"""Staged copies of packed memory: one call of machine code, no Python meanwhile.

Kernels that other threads launch, and all else they do in Python, go on beside it.
"""

from __future__ import annotations

from array import array
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from xdev import _config
from xdev.compile.team import stations
from xdev.compile.team.plain import Code
from xdev.compile.team.threads import c_address, work
from xdev.errors import OutOfMemoryError, XdevError
from xdev.memory.native.operations import WORD
from xdev.transfer import lanes, schedule

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from xdev.transfer.schedule import Plan

    Array = np.ndarray[Any, Any]

CODE = Code("staged copies", (stations, lanes), {lanes.run: 2})


class Line(Protocol):
    """One stream of a device, and packed memory there, for machine code.

    Attributes
    ----------
    name : str
        The device's, for messages.
    threads : int
        How many of them may use it at a time.
    address, stream, context : int
        Of the memory, and the driver's handles.
    enter, up, down, record, wait : int
        The addresses of the driver's functions: they make a context the thread's,
        queue a copy to the device and from it, record an event, wait for one.
    """

    name: str
    threads: int
    address: int
    stream: int
    context: int
    enter: int
    up: int
    down: int
    record: int
    wait: int

    def slots(self, count: int, nbytes: int) -> Array:
        """Return uint8 memory of that shape that the device copies from and to.

        Raises
        ------
        OutOfMemoryError
            There is none.
        """

    def take_events(self, count: int) -> Sequence[int]:
        """Return events that nobody uses."""

    def give_events(self, events: Sequence[int]) -> None:
        """Take them back; they may have been recorded."""

    def explain(self, status: int) -> str:
        """Return what an error of the driver means."""

    def synchronize(self) -> None:
        """Wait for everything that is queued."""


def send(host: Array, line: Line) -> Array:
    """Queue the copy of a C-contiguous array to a device.

    Returns
    -------
    uint8 array
        The slots, which are in use until the stream is done; ``host`` is not.

    Raises
    ------
    OutOfMemoryError
        There is no room for a slot.
    XdevError
        The driver refused; nothing is queued that uses the slots.
    """
    return _copy(host, line, line.up, up=True)


def fetch(host: Array, line: Line) -> None:
    """Copy from a device into a C-contiguous array; errors are :func:`send`'s."""
    _copy(host, line, line.down, up=False)


def _copy(host: Array, line: Line, copy: int, *, up: bool) -> Array:
    threads = min(line.threads, _config.num_threads())
    plan = schedule.plan(host.nbytes, threads, schedule.PACKED)
    count, slots = _ring(plan, line)
    events = line.take_events(len(slots))
    job = array("q", bytes(WORD * stations.HEAD))
    job.extend([
        *(0, -(-host.nbytes // plan.chunk), plan.chunk, host.nbytes),
        *(host.ctypes.data, line.address, line.stream, line.context),
        *(up, plan.slots, slots.ctypes.data, 0, 0, 0),
        *(line.enter, copy, line.record, line.wait, c_address("memcpy")),
    ])  # fmt: skip
    tables = array("q", [*events, *events])  # with room for what is in the slots
    start, count_of_words = tables.buffer_info()
    job[lanes.EVENTS] = start
    job[lanes.TAKEN] = start + WORD * count_of_words // 2
    status = work(job, CODE.address(lanes.run), count)
    if status:
        with suppress(Exception):  # a device that is lost: the first error says it
            line.synchronize()
    line.give_events(events)
    if status:
        begin = max(0, int(job[lanes.FAILED]) - 1) * plan.chunk
        message = (
            f"{line.name}: a copy of {host.nbytes:,} B failed at byte {begin:,}: "
            f"{line.explain(status)}"
        )
        raise XdevError(message)
    return slots


def _ring(plan: Plan, line: Line) -> tuple[int, Array]:
    """Return how many lanes there are, fewer under a tight limit, and all slots."""
    count = plan.lanes
    while True:
        try:
            return count, line.slots(count * plan.slots, plan.chunk)
        except OutOfMemoryError:
            if count == 1:
                raise
            count //= 2
