"""A measurement: the attributes and the text of IPython's ``TimeitResult``."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import final

from xdev.timing.notes import notes_of
from xdev.timing.text import format_time, plus_minus

# Where most of a call's time passes before it returns, the device waits. Of calls that
# are launch-bound 0.92 and more were seen, of others at most 0.35.
LAUNCH_BOUND = 0.75
# IPython's: the slowest run may take so many times the fastest.
UNSTEADY, SHORT = 4, 1e-6  # times; and seconds under which nothing is said
# What a run's end costs beside its work [s], and as a part of it.
ENDING, ENDING_PART = 50e-6, 0.05
# The clock of a processor that is neither hot nor short of power moves less.
STEADY = 0.95


@final
@dataclass(frozen=True, slots=True, repr=False)
class Timing:
    """What :func:`xdev.timing.timeit` measured; ``str`` gives IPython's text.

    Parameters
    ----------
    loops : int
        Calls in one run.
    repeat : int
        Runs.
    best, worst : float
        The shortest and the longest time of a call [s], each a mean over a run.
    all_runs : list of float, length ``repeat``
        Wall time of each run [s]: from synchronised device to synchronised device.
    compile_time : float
        Time of the first call [s], in which compilers ran and pools grew; it is
        in no other figure.
    precision : int
        Significant digits of the text.
    launch : list of float
        Host time until a call returned [s per call], one of each run. As long as
        ``wall`` on a CPU; shorter on a device that works while the host goes on.
    device : list of float
        Time between two events on the device's stream [s per call], one of each
        run; as ``wall`` on a CPU.
    queued : bool
        Whether the arrays are on a device that works while the host goes on.
    cold : bool
        Whether each call found the device's last cache overwritten.
    waits : bool or None
        Whether each call waits for the device, as one that copies a result to the
        host does; None where that is not known.
    rates : list of float
        The device's clock after each run [Hz]; empty where it cannot be read.
    slowed_by : tuple of str
        What the driver says slowed that clock.

    Examples
    --------
    >>> timing = Timing(10, 2, 0.2, 0.4, [2.0, 4.0], 0.1)
    >>> str(timing).replace("±", "+-")  # as far as the terminal has the sign
    '300 ms +- 100 ms per loop (mean +- std. dev. of 2 runs, 10 loops each)'
    """

    loops: int
    repeat: int
    best: float
    worst: float
    all_runs: list[float]
    compile_time: float
    precision: int = 3
    launch: list[float] = field(default_factory=list)
    device: list[float] = field(default_factory=list)
    queued: bool = False
    cold: bool = False
    waits: bool | None = None
    rates: list[float] = field(default_factory=list)
    slowed_by: tuple[str, ...] = ()

    @property
    def timings(self) -> list[float]:
        """Wall time of a call in each run [s]."""
        return [seconds / self.loops for seconds in self.all_runs]

    @property
    def wall(self) -> list[float]:
        """Wall time of a call in each run [s]: ``timings`` beside the other two."""
        return self.timings

    @property
    def average(self) -> float:
        """Mean time of a call [s]."""
        return math.fsum(self.timings) / len(self.all_runs)

    @property
    def stdev(self) -> float:
        """Deviation of the runs' times of a call [s], that of a population."""
        mean = self.average
        squares = math.fsum([(seconds - mean) ** 2 for seconds in self.timings])
        return float((squares / len(self.all_runs)) ** 0.5)

    @property
    def launch_bound(self) -> bool:
        """Whether the device waited for the host, which was busy launching."""
        if not self.queued or self.waits:
            return False
        return min(self.launch) >= LAUNCH_BOUND * self.best

    @property
    def elsewhere(self) -> bool:
        """Whether work went on after that of the device's current stream was done."""
        if not self.queued or self.cold:  # cold ones are measured apart
            return False
        late = [
            (wall - device) * self.loops - ENDING_PART * wall * self.loops
            for wall, device in zip(self.wall, self.device, strict=True)
        ]
        return min(late) > ENDING

    @property
    def throttled(self) -> bool:
        """Whether the device's clock was slower after one run than after another."""
        return bool(self.rates) and min(self.rates) < STEADY * max(self.rates)

    @property
    def warning(self) -> str | None:
        """IPython's warning of runs that are far apart; None where they are not."""
        if self.best > 0 and self.worst > max(UNSTEADY * self.best, SHORT):
            return (
                f"The slowest run took {self.worst / self.best:.2f} times longer than "
                "the fastest. This could mean that an intermediate result is being "
                "cached."
            )
        return None

    @property
    def notes(self) -> list[str]:
        """What a reader of the numbers must know, a sentence each."""
        return notes_of(self)

    @property
    def spread(self) -> str:
        """The text ``time ± std``."""
        mean = format_time(self.average, self.precision)
        return f"{mean} {plus_minus()} {format_time(self.stdev, self.precision)}"

    def __str__(self) -> str:
        """Return the line that IPython's ``%timeit`` prints for these numbers."""
        runs = f"{self.repeat} run{'' if self.repeat == 1 else 's'}"
        loops = f"{self.loops:,} loop{'' if self.loops == 1 else 's'}"
        return (
            f"{self.spread} per loop "
            f"(mean {plus_minus()} std. dev. of {runs}, {loops} each)"
        )

    def __repr__(self) -> str:
        """Return the text in angle brackets, for the prompt."""
        return f"<Timing : {self}>"
