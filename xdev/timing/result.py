"""A measurement: the attributes and the text of IPython's ``TimeitResult``."""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import fmean
from typing import final

from xdev import _html

MINUTE = 60.0
CLOCK_UNITS = (("d", 60 * 60 * 24), ("h", 60 * 60), ("min", 60), ("s", 1))
SCALES = (1, 1e3, 1e6, 1e9)


def encodable(text: str, fallback: str) -> str:
    """Return ``text`` if standard output can carry it, else ``fallback``."""
    with suppress(UnicodeEncodeError, LookupError):
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
        return text
    return fallback


def plus_minus() -> str:
    """Return the sign between a mean and its deviation."""
    return encodable("\xb1", "+-")


def format_time(seconds: float, precision: int = 3) -> str:
    """Write a time [s] as IPython's ``%timeit`` does, under a minute to so many digits.

    Examples
    --------
    >>> format_time(0.0051234), format_time(3725.0)
    ('5.12 ms', '1h 2min 5s')
    """
    if seconds >= MINUTE:
        return _format_clock(seconds)
    # The Greek letter, as IPython prints it, not the micro sign.
    units = ("s", "ms", encodable("\u03bcs", "us"), "ns")
    order = 3
    if seconds > 0.0:
        order = min(-int(math.floor(math.log10(seconds)) // 3), 3)
    digits = max(precision, 0)  # as `%.*g` has it
    return f"{seconds * SCALES[order]:.{digits}g} {units[order]}"


def _format_clock(seconds: float) -> str:
    parts = []
    for suffix, length in CLOCK_UNITS:
        count, seconds = int(seconds / length), seconds % length
        if count:
            parts.append(f"{count}{suffix}")
    return " ".join(parts)


# A first call is worth a word where it took so long [s], and so many times a later one.
LONG_FIRST, FIRST_TIMES = 0.1, 10

# Where most of a call's time passes before it returns, the device waits. Of calls that
# are launch-bound 0.92 and more were seen, of others at most 0.35.
LAUNCH_BOUND = 0.75
# IPython's: the slowest run may take so many times the fastest.
UNSTEADY, SHORT = 4, 1e-6  # times; and seconds under which nothing is said
# What a run's end costs beside its work [s], and as a part of it.
ENDING, ENDING_PART = 50e-6, 0.05


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
    all_runs : list of float, length repeat
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
    waits : bool or None
        Whether each call waits for the device, as one that copies a result to the
        host does; None where that is not known.
    lazy : bool
        Whether the result is a Dask collection: its graph was made, not its values.

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
    waits: bool | None = None
    lazy: bool = False

    @property
    def timings(self) -> list[float]:
        """Wall time of a call in each run [s]."""
        return [seconds / self.loops for seconds in self.all_runs]

    wall = timings  # its name beside ``launch`` and ``device``

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
        busy = self.queued and not self.waits
        return busy and min(self.launch) >= LAUNCH_BOUND * self.best

    @property
    def elsewhere(self) -> bool:
        """Whether work went on after that of the device's current stream was done."""
        if not self.queued:
            return False
        times = zip(self.wall, self.device, strict=True)
        late = [(1 - ENDING_PART) * wall - device for wall, device in times]
        return min(late) * self.loops > ENDING

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
        sentences = []
        if self.lazy:
            sentences.append(
                "the result is a Dask collection, of which the graph alone was made: "
                "time a function that ends in .compute()"
            )
        if self.launch_bound:
            launch = format_time(min(self.launch), self.precision)
            waited = "the device waited for the host, where a call takes"
            sentences.append(f"launch-bound: {waited} {launch}")
        if self.waits:
            sentences.append(
                "each call waits for the device: it copies to the host, synchronises, "
                "or makes more launches than its queue holds"
            )
        if self.elsewhere:
            sentences.append(
                "work went on after that of the current stream, and device time leaves "
                "it out: time inside `with stream:`"
            )
        if self.compile_time > max(LONG_FIRST, FIRST_TIMES * self.worst):
            first = format_time(self.compile_time)
            sentences.append(f"the first call took {first}, which is in no figure")
        return sentences

    @property
    def spread(self) -> str:
        """The text ``time ± std``."""
        mean = format_time(self.average, self.precision)
        return f"{mean} {plus_minus()} {format_time(self.stdev, self.precision)}"

    def __str__(self) -> str:
        """Return the line that IPython's ``%timeit`` prints for these numbers."""
        runs = f"{self.repeat} run{'' if self.repeat == 1 else 's'}"
        loops = f"{self.loops:,} loop{'' if self.loops == 1 else 's'}"
        mean = f"mean {plus_minus()} std. dev. of {runs}, {loops} each"
        return f"{self.spread} per loop ({mean})"

    def _repr_html_(self) -> str:
        """Return the text, the runs of each clock, and the notes, for a notebook."""
        clocks = {"wall": self.wall}
        if self.queued:
            clocks |= {"device": self.device, "launch": self.launch}
        means = [(name, runs, fmean(runs)) for name, runs in clocks.items()]
        rows = [(n, [m], runs, format_time(m, self.precision)) for n, runs, m in means]
        plot = _html.bars("time of a call in each run", rows)
        return _html.preformatted(str(self)) + plot + _html.notes(self.notes)

    def __repr__(self) -> str:
        """Return the text in angle brackets, for the prompt."""
        return f"<Timing : {self}>"
