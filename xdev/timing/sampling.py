"""Candidates: what is timed, how many calls make a run, and the runs so far."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, final

from xdev.device import Device, as_device, default_device, device_of, synchronize
from xdev.errors import ConfigurationError
from xdev.timing.probes import Probe, probe
from xdev.timing.result import Timing
from xdev.timing.runs import Run, launch_time, run_cold, run_hot
from xdev.timing.statements import Loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from xdev.device import Event
    from xdev.timing.statements import Code

MOST_LOOPS = 10**9
RUN_SECONDS = 0.2  # IPython's
# A stream's queue is finite, of about 1000 launches: once it is full, a launch waits
# for the device. So launches are timed in short runs after one call on an idle one.
# None takes under a microsecond: a run of this time [s] does not fill it.
BURST_SECONDS = 1e-3
MOST_IN_BURST = 100
# A stream is held this much longer than a call takes, to see if the call waits for it.
HOLD_TIMES, HOLD_LEAST, HOLD_MOST = 4, 2e-3, 1.0  # the last two in seconds
TRIALS = 3
SLOWED = 0.95  # of the fastest clock seen
PARTS = 16  # of a list or dict, that are asked for their device


@final
@dataclass(slots=True)
class Candidate:
    """What is timed, and its runs so far.

    Parameters
    ----------
    loop : Loop
        Makes the calls.
    device : Device
        Whose work is waited for.
    queued : bool
        Whether its arrays are on a device that works while the host goes on.
    first : float
        Time of the first call [s].
    cold : bool
        Whether each call finds the device's caches overwritten.
    clock : callable
        Returns the host's time [s].
    """

    loop: Loop
    device: Device
    queued: bool
    first: float
    cold: bool = False
    clock: Callable[[], float] = time.perf_counter
    number: int = 1
    burst: int = 1
    waits: bool | None = None
    runs: list[Run] = field(default_factory=list)
    launches: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    slowed_by: set[str] = field(default_factory=set)
    probe: Probe = field(init=False)

    def __post_init__(self) -> None:
        self.probe = probe(self.device)

    def call(self) -> None:
        """Make one call, untimed."""
        self.loop((None,), self.clock, self.clock)

    def run(self, number: int) -> Run:
        """Make one run, which is not kept."""
        if self.cold:
            return run_cold(self.loop, number, self.device, self.clock, self.probe)
        return run_hot(self.loop, number, self.device, self.clock)

    def settle(
        self,
        number: int | None,
        seconds: float,
        steps: tuple[int, ...] = (1, 2, 5),
        tell: Callable[[int, float], object] = lambda *_: None,
    ) -> None:
        """Fix how many calls make a run, and find out whether a call waits.

        Parameters
        ----------
        number : int or None
            How many; None for the smallest whose run takes ``seconds``, of the
            ``steps`` times 1, 10, 100 ...
        seconds : float
            How long a run takes at least [s].
        steps : tuple of int
            From 1 to 9, in order.
        tell : callable
            Is given each number that was tried, and its time [s].
        """
        if number is None:
            number = self._enough(seconds, steps, tell)
        self.number = number
        self.get_ready()

    def _enough(
        self,
        seconds: float,
        steps: tuple[int, ...],
        tell: Callable[[int, float], object],
    ) -> int:
        scale = 1
        while scale < MOST_LOOPS:
            for step in steps:
                spent = self.run(scale * step).spent
                tell(scale * step, spent)
                if spent >= seconds:
                    return scale * step
            scale *= 10
        return MOST_LOOPS

    def get_ready(self) -> None:
        """Find out what needs a call apart: its launch time, and if it waits."""
        if self.device.type == "cpu":
            return
        # By this clock, whatever the runs': what sleeps takes no time of a processor.
        launch = launch_time(self.loop, 1, self.device, time.perf_counter)
        most = BURST_SECONDS / launch if launch > 0 else MOST_IN_BURST
        self.burst = max(1, min(self.number, MOST_IN_BURST, int(most)))
        self.waits = self._waits(launch)

    def _waits(self, launch: float) -> bool | None:
        """Hold the stream, and see if a call returns before it is let go."""
        seconds = max(HOLD_LEAST, HOLD_TIMES * launch)
        if seconds > HOLD_MOST:
            return None
        waited: bool | None = None
        for _ in range(TRIALS):  # a host that was busy elsewhere is no call that waits
            waited = self._returns_late(seconds)
            if not waited:
                break
            seconds *= 2
        return waited

    def _returns_late(self, seconds: float) -> bool | None:
        """Say whether a call returned only after the stream was let go."""
        gates: list[Event | None] = []

        def start() -> float:
            synchronize(self.device)
            gates.append(self.probe.hold(seconds))
            return 0.0

        late: bool | None = self.loop(
            (None,), start, lambda: gates[0].done if gates[0] else None
        )[1]
        synchronize(self.device)
        return late

    def sample(self) -> None:
        """Add one run."""
        one = self.run(self.number)
        launch = one.launch / self.number
        if self.queued and not self.cold and self.number > 1:
            launch = launch_time(self.loop, self.burst, self.device, self.clock)
        self.runs.append(one)
        self.launches.append(launch)
        rate = self.probe.clock_rate()
        if rate is not None:
            self.rates.append(rate)
            if rate < SLOWED * max(self.rates):
                self.slowed_by.update(self.probe.slowed_by())

    def timing(self, precision: int = 3) -> Timing:
        """Return what the runs say."""
        walls = [one.wall for one in self.runs]
        return Timing(
            loops=self.number,
            repeat=len(walls),
            best=min(walls) / self.number,
            worst=max(walls) / self.number,
            all_runs=walls,
            compile_time=self.first,
            precision=precision,
            launch=self.launches,
            device=[one.device / self.number for one in self.runs],
            queued=self.queued,
            cold=self.cold,
            waits=self.waits,
            rates=self.rates,
            slowed_by=tuple(sorted(self.slowed_by)),
        )


def begin(
    call: Callable[[], object],
    device: Device | str | None = None,
    arguments: Iterable[object] = (),
    **how: Any,
) -> tuple[Candidate, object]:
    """Make a function's first call; return the candidate and the call's result.

    Parameters
    ----------
    call : callable
        What is timed, without arguments.
    device : Device or str, optional
        Whose work is waited for.
    arguments : iterable
        What may tell the device, beside the result.
    **how
        ``clock`` and ``cold`` of the :class:`Candidate`.
    """
    results: list[object] = []
    first = Loop(lambda: results.append(call()), "pass", {})
    loops = (Loop(call, "pass", {}), first)
    return _begin(loops, device, tuple(arguments), results, how), results[0]


def begin_code(
    code: Code,
    setup: Code,
    namespace: dict[str, Any],
    device: Device | str | None = None,
    **how: Any,
) -> Candidate:
    """Do so with a statement and its setup."""
    loop = Loop(code, setup, namespace)
    return _begin((loop, loop), device, loop.globals_named(), (), how)


def _begin(
    loops: tuple[Loop, Loop],
    device: Device | str | None,
    before: Iterable[object],
    results: Iterable[object],
    how: dict[str, Any],
) -> Candidate:
    loop, first = loops
    clock = how.setdefault("clock", time.perf_counter)
    given = None if device is None else as_device(device)  # refused before the call
    known = given or _holder(before)
    if known:
        synchronize(known)  # of others' work
    start, _, variables = first((None,), clock, clock)
    holder = _holder((*before, *results, *variables.values()))
    # An array on the CPU does not decide: a call on it may use another device.
    where = given or holder or default_device()
    synchronize(where)
    return Candidate(loop, where, holder is not None, clock() - start, **how)


def _holder(objects: Iterable[object]) -> Device | None:
    """Return the device other than the CPU that holds one of the objects."""
    for thing in objects:
        for part in _parts(thing):
            try:
                device = device_of(part)
            except (TypeError, ConfigurationError):  # no array
                continue
            if device.type != "cpu":
                return device
    return None


def _parts(thing: object) -> Iterable[object]:
    if isinstance(thing, dict):
        return islice(thing.values(), PARTS)
    return islice(thing, PARTS) if isinstance(thing, tuple | list) else (thing,)
