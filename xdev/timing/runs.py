"""Runs: calls between two moments when their device is idle, by three clocks."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, repeat as times
from typing import TYPE_CHECKING, final

from xdev.device import current_stream, registry, synchronize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from xdev.device import Device, Event
    from xdev.timing.probes import Probe
    from xdev.timing.statements import Loop

# The device is kept busy for so many launches' time while the next are queued.
AHEAD = 2
LONGEST_HOLD = 0.01  # [s]


@final
@dataclass(frozen=True, slots=True)
class Run:
    """The time of one run [s] by each clock; on a CPU the first three are one.

    ``spent``: what the run took with all that is between its calls.
    """

    launch: float
    device: float
    wall: float
    spent: float


@contextmanager
def collector_off() -> Iterator[None]:
    """Keep the garbage collector off, and afterwards as it was."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@final
class Stopwatch:
    """Starts when a device is idle, and takes the times of what was queued since."""

    __slots__ = ("_begin", "_clock", "_device", "_started")

    def __init__(self, device: Device, clock: Callable[[], float]) -> None:
        self._device, self._clock = device, clock

    def start(self) -> float:
        """Wait until the device is idle; return the time."""
        synchronize(self._device)
        self._begin = record(self._device)
        self._started = self._clock()
        return self._started

    def stop(self, returned: float) -> Run:
        """Wait until the work is done; ``returned``: when the last call returned."""
        end = record(self._device)
        synchronize(self._device)
        wall = self._clock() - self._started
        busy = end.elapsed(self._begin)
        return Run(returned - self._started, busy, wall, wall)


def record(device: Device) -> Event:
    """Record an event on the current stream of a device, current or not."""
    with registry.backend(device.type).use(device.index):
        return current_stream(device).record()


def run_hot(loop: Loop, number: int, device: Device, clock: Callable[[], float]) -> Run:
    """Call ``number`` times without a pause, from idle device to idle device."""
    with collector_off():
        rounds = times(None, number)
        if device.type == "cpu":
            start, end, _ = loop(rounds, clock, clock)
            return Run(end - start, end - start, end - start, end - start)
        watch = Stopwatch(device, clock)
        return watch.stop(loop(rounds, watch.start, clock)[1])


def launch_time(
    loop: Loop, number: int, device: Device, clock: Callable[[], float]
) -> float:
    """Return the host's time for a call that does not wait [s]: the mean of ``number``.

    A call before them meets the idle device, after which a launch can take several
    times as long as one that follows another.
    """
    started = 0.0

    def first() -> Iterator[None]:
        nonlocal started
        synchronize(device)
        yield None
        started = clock()

    with collector_off():
        returned: float = loop(chain(first(), times(None, number)), clock, clock)[1]
        synchronize(device)
    return (returned - started) / number


def run_cold(
    loop: Loop, number: int, device: Device, clock: Callable[[], float], probe: Probe
) -> Run:
    """Call ``number`` times, each after the device's caches were overwritten.

    Launch and wall time are of calls on an idle device. For the device's own time
    the calls are made once more, queued behind work that outlasts their launch, since
    an idle device would wait for it between the two events.
    """
    began, launch, wall = clock(), 0.0, 0.0
    with collector_off():
        for _ in times(None, number):
            start, returned, _ = loop((None,), _idle(device, clock, probe), clock)
            synchronize(device)
            launch += returned - start
            wall += (clock() if device.type != "cpu" else returned) - start
        busy = wall
        if device.type != "cpu":
            busy = _queued_cold(loop, number, device, probe, launch / number)
    return Run(launch, busy, wall, clock() - began)


def _idle(
    device: Device, clock: Callable[[], float], probe: Probe
) -> Callable[[], float]:
    def start() -> float:
        probe.flush()
        synchronize(device)
        return clock()

    return start


def _queued_cold(
    loop: Loop, number: int, device: Device, probe: Probe, launch: float
) -> float:
    begins: list[Event] = []

    def start() -> float:
        probe.hold(min(AHEAD * launch, LONGEST_HOLD))
        probe.flush()
        begins.append(record(device))
        return 0.0

    seconds = 0.0
    for _ in times(None, number):
        end: Event = loop((None,), start, lambda: record(device))[1]
        seconds += end.elapsed(begins.pop())
    return seconds
