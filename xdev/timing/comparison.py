"""Several functions that do the same, checked, timed in turn and set side by side."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from xdev.memory.reports import text_of
from xdev.timing.agreement import check_agreement, to_host
from xdev.timing.environment import environment
from xdev.timing.footprint import Footprint, footprint
from xdev.timing.sampling import Candidate, begin, checked_counts, choose_number
from xdev.timing.text import format_time, plus_minus
from xdev.timing.verdict import Ratio, ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xdev.device import Device
    from xdev.timing.result import Timing

# A run this long [s] is far above the clock's own noise, and a table takes seconds.
RUN_SECONDS = 0.01
# Where nearly all of a call's time passes before it returns, the device waits.
LAUNCH_BOUND = 0.9


@final
@dataclass(frozen=True, slots=True)
class Row:
    """One candidate's measurement.

    Parameters
    ----------
    name : str
        The candidate.
    timing : Timing
        Its times.
    ratio : Ratio
        Its time over the first candidate's.
    footprint : Footprint
        What one call takes from xdev's pools.
    launch_bound : bool
        Whether the device waited for the host.
    """

    name: str
    timing: Timing
    ratio: Ratio
    footprint: Footprint
    launch_bound: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the row for a record; times in seconds per call, sizes in bytes."""
        timing = self.timing
        return {
            "name": self.name,
            "samples": timing.timings,
            "launch": timing.launch,
            "device": timing.device,
            "first_call": timing.compile_time,
            "loops": timing.loops,
            "mean": timing.average,
            "std": timing.stdev,
            "ratio": self.ratio.middle,
            "interval": [self.ratio.low, self.ratio.high] if self.ratio.sure else None,
            "verdict": self.ratio.verdict,
            "launch_bound": self.launch_bound,
            "peak_bytes": self.footprint.peak,
            "allocations": self.footprint.allocations,
        }


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """What :func:`xdev.timing.compare` found; ``str`` gives the table.

    Parameters
    ----------
    rows : tuple of Row
        The candidates in the order they were given.
    environment : dict
        Versions, platform and devices.
    """

    rows: tuple[Row, ...]
    environment: dict[str, Any]

    def __getitem__(self, name: str) -> Row:
        """Return the row of a candidate."""
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    def as_dict(self) -> dict[str, Any]:
        """Return everything, raw samples included, in JSON's types."""
        rows = [row.as_dict() for row in self.rows]
        return {"environment": self.environment, "rows": rows}

    def to_json(self) -> str:
        """Return :meth:`as_dict` as JSON text."""
        return json.dumps(self.as_dict(), indent=1)

    def __str__(self) -> str:
        """Return a table: time ± std, ratio, its 95 % interval, verdict, memory."""
        head = ("", f"time {plus_minus()} std", "ratio", "95 %", "verdict")
        cells: list[tuple[str, ...]] = [(*head, "peak", "allocations", "first call")]
        cells += [_cells(row, baseline=row is self.rows[0]) for row in self.rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ("  ".join(map(str.ljust, row, widths)) for row in cells)
        return "\n".join(line.rstrip() for line in lines)


def _cells(row: Row, *, baseline: bool) -> tuple[str, ...]:
    low, high = row.ratio.low, row.ratio.high
    interval = f"{low:.3g} to {high:.3g}" if row.ratio.sure else ""
    compared = (f"{row.ratio.middle:.3g}", interval, row.ratio.verdict)
    if baseline:
        compared = ("1", "", "")
    if row.launch_bound:
        compared = (*compared[:2], f"{compared[2]} (launch-bound)".strip())
    return (
        row.name,
        row.timing.spread,
        *compared,
        text_of(row.footprint.peak),
        str(row.footprint.allocations),
        format_time(row.timing.compile_time),
    )


def compare(
    candidates: Mapping[str, Callable[[], object]],
    *,
    number: int | None = None,
    repeat: int = 11,
    device: Device | str | None = None,
    rtol: float | None = None,
) -> Comparison:
    """Time functions that do the same, and say which is faster and how surely.

    Each is called once, and its result compared with the first one's, before
    anything is timed. Then they run in turn, round by round, so that a processor
    that warms up or slows down meets all alike.

    Parameters
    ----------
    candidates : mapping of str to callable without arguments
        What is timed, by name; each returns its result. The first is the baseline.
    number : int, optional
        Calls in one run; left out, for each candidate the smallest power of ten that
        takes 10 ms.
    repeat : int
        Rounds; an interval needs at least 6.
    device : Device or str, optional
        Whose work is waited for; left out, the device that holds a candidate's
        result, else the default device.
    rtol : float, optional
        Relative difference that results may have; left out, 64 spacings of their
        coarser dtype. Integers and bools must be equal.

    Returns
    -------
    Comparison
        A row for each candidate; ``str`` gives the table, ``to_json`` the record.

    Raises
    ------
    ResultsDifferError
        Two results differ; also a ValueError. Nothing was timed.
    ValueError
        No candidates, or ``number`` or ``repeat`` is no positive whole number.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).random(1000)
    >>> table = compare({"times": lambda: x * x, "power": lambda: x**2}, repeat=1)
    >>> [row.name for row in table.rows]
    ['times', 'power']
    """
    checked_counts(number, repeat)
    if not candidates:
        raise ValueError(
            "compare needs at least one candidate, {name: function without arguments}"
        )
    running = _begin_all(candidates, device, rtol)
    used = {name: footprint(one.call, one.device) for name, one in running.items()}
    for one in running.values():
        one.number = number or choose_number(one.call, one.device, RUN_SECONDS)
    turns = list(running.values())
    for _ in range(repeat):
        for one in turns:
            one.sample()
        turns.append(turns.pop(0))  # every round starts with another candidate
    rows = _rows(running, used)
    return Comparison(rows, environment())


def _begin_all(
    candidates: Mapping[str, Callable[[], object]],
    device: Device | str | None,
    rtol: float | None,
) -> dict[str, Candidate]:
    """Call each candidate once and compare its result with the first one's."""
    running: dict[str, Candidate] = {}
    baseline: tuple[str, object] | None = None
    for name, call in candidates.items():
        running[name], result = begin(call, device)
        found = (name, to_host(result))
        if baseline is None:
            baseline = found
        check_agreement(baseline, found, rtol)
    return running


def _rows(running: dict[str, Candidate], used: dict[str, Footprint]) -> tuple[Row, ...]:
    timings = {name: one.timing() for name, one in running.items()}
    baseline = next(iter(timings.values())).timings
    return tuple(
        Row(
            name,
            timing,
            ratio(timing.timings, baseline),
            used[name],
            launch_bound=_launch_bound(running[name], timing),
        )
        for name, timing in timings.items()
    )


def _launch_bound(candidate: Candidate, timing: Timing) -> bool:
    return candidate.queued and min(timing.launch) >= LAUNCH_BOUND * timing.best
