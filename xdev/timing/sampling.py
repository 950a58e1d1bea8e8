"""Runs: one function called many times between two moments when its device is idle."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat as times
from typing import TYPE_CHECKING, final

from xdev.device import (
    Device,
    as_device,
    current_stream,
    default_device,
    device_of,
    synchronize,
)
from xdev.errors import ConfigurationError
from xdev.timing.result import Timing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MOST_LOOPS = 10**9
# A stream's queue is finite: once it is full, a launch waits for the device. So
# launches are timed in short runs that start with an empty queue.
BURST = 100


@dataclass(frozen=True, slots=True)
class Run:
    """The time of one run [s] by each clock; on a CPU the three are one."""

    launch: float
    device: float
    wall: float


def run(call: Callable[[], object], number: int, device: Device) -> Run:
    """Call ``number`` times, collector off, from idle device to idle device."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        if device.type == "cpu":
            return _run_here(call, number)
        return _run_queued(call, number, device)
    finally:
        if collecting:
            gc.enable()


def _run_here(call: Callable[[], object], number: int) -> Run:
    start = time.perf_counter()
    for _ in times(None, number):
        call()
    seconds = time.perf_counter() - start
    return Run(seconds, seconds, seconds)


def _run_queued(call: Callable[[], object], number: int, device: Device) -> Run:
    stream = current_stream(device)
    synchronize(device)
    begin = stream.record()
    start = time.perf_counter()
    for _ in times(None, number):
        call()
    returned = time.perf_counter()
    end = stream.record()
    synchronize(device)
    done = time.perf_counter()
    return Run(returned - start, end.elapsed(begin), done - start)


def choose_number(call: Callable[[], object], device: Device, seconds: float) -> int:
    """Return the smallest power of ten of calls whose run takes ``seconds``."""
    number = 1
    while number < MOST_LOOPS and run(call, number, device).wall < seconds:
        number *= 10
    return number


@final
@dataclass(slots=True)
class Candidate:
    """A function under measurement and its runs so far.

    ``queued``: its arrays are on a device that works while the host goes on.
    """

    call: Callable[[], object]
    device: Device
    queued: bool
    first: float
    number: int = 1
    runs: list[Run] = field(default_factory=list)
    launches: list[float] = field(default_factory=list)

    def sample(self) -> None:
        """Add one run."""
        one = run(self.call, self.number, self.device)
        burst = min(self.number, BURST)
        if self.queued and burst < self.number:
            self.launches.append(run(self.call, burst, self.device).launch / burst)
        else:
            self.launches.append(one.launch / self.number)
        self.runs.append(one)

    def timing(self) -> Timing:
        """Return what the runs say."""
        walls = [one.wall for one in self.runs]
        return Timing(
            loops=self.number,
            repeat=len(walls),
            best=min(walls) / self.number,
            worst=max(walls) / self.number,
            all_runs=walls,
            compile_time=self.first,
            launch=self.launches,
            device=[one.device / self.number for one in self.runs],
        )


def begin(
    call: Callable[[], object],
    device: Device | str | None,
    arguments: tuple[object, ...] = (),
) -> tuple[Candidate, object]:
    """Make the first call, and return the candidate and the call's result."""
    given = None if device is None else as_device(device)  # refused before the call
    start = time.perf_counter()
    result = call()
    parts = result if isinstance(result, tuple | list) else (result,)
    holder = _holder((*arguments, *parts))
    # An array on the CPU does not decide: a call on it may use another device.
    where = given or holder or default_device()
    synchronize(where)
    first = time.perf_counter() - start
    return Candidate(call, where, holder is not None, first), result


def _holder(objects: Iterable[object]) -> Device | None:
    """Return the device other than the CPU that holds one of the objects."""
    for thing in objects:
        try:
            device = device_of(thing)
        except (TypeError, ConfigurationError):  # no array
            continue
        if device.type != "cpu":
            return device
    return None


def checked_counts(number: int | None, repeat: int) -> None:
    """Refuse counts that are no positive whole numbers."""
    for name, count in (
        ("number", 1 if number is None else number),
        ("repeat", repeat),
    ):
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise ValueError(
                f"{name} must be a whole number of at least 1, not {count!r}"
            )


def timeit(
    f: Callable[..., object],
    *args: object,
    number: int | None = None,
    repeat: int = 7,
    device: Device | str | None = None,
) -> Timing:
    """Time ``f(*args)`` as IPython's ``%timeit`` does, to the end of the work.

    The first call, which compiles and fills pools, is timed apart. Each run starts
    and ends with the device idle and has the garbage collector off. Give it random
    data: processors draw less power, and so run faster, on zeros.

    Parameters
    ----------
    f : callable
        What is timed.
    *args : object
        Its arguments.
    number : int, optional
        Calls in one run; left out, the smallest power of ten that takes 0.2 s.
    repeat : int
        Runs.
    device : Device or str, optional
        Whose work is waited for; left out, the device that holds an argument or
        the result, else the default device.

    Returns
    -------
    Timing
        Its text and attributes are those of IPython's ``TimeitResult`` and hold wall
        time [s]; ``launch`` and ``device`` hold the other two clocks' times.

    Raises
    ------
    ValueError
        ``number`` or ``repeat`` is no positive whole number.
    TypeError
        ``f`` cannot be called.

    Examples
    --------
    >>> timeit(sum, [1, 2, 3], number=10, repeat=2).repeat
    2
    """
    checked_counts(number, repeat)
    if not callable(f):
        raise TypeError(f"timeit takes a function and its arguments, not {f!r}")
    call = partial(f, *args) if args else f
    candidate = begin(call, device, args)[0]
    candidate.number = number or choose_number(call, candidate.device, seconds=0.2)
    for _ in range(repeat):
        candidate.sample()
    return candidate.timing()
