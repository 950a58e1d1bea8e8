"""A measurement: the attributes and the text of IPython's ``TimeitResult``."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import final

from xdev.timing.text import format_time, plus_minus


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
