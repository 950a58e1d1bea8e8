"""A comparison's rows, and the forms they are read in: table, Markdown, JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, final

from xdev.memory.reports import text_of
from xdev.timing.baseline import Changes, changes
from xdev.timing.tables import VERDICT, aligned, bandwidth_text, coloured, markdown
from xdev.timing.text import format_time, plus_minus
from xdev.timing.verdict import ROUNDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from xdev.timing.footprint import Footprint
    from xdev.timing.result import Timing
    from xdev.timing.verdict import Ratio


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
    nbytes : int, optional
        Bytes that one call reads and writes [B].
    copy_bandwidth : float, optional
        What a copy reads and writes on its device [B/s].
    device_name : str, optional
        Its device's name, as in ``"NVIDIA H200"``.
    """

    name: str
    timing: Timing
    ratio: Ratio
    footprint: Footprint
    nbytes: int | None = None
    copy_bandwidth: float | None = None
    device_name: str | None = None

    @property
    def bandwidth(self) -> float | None:
        """Bytes that it reads and writes in the median run [B/s]."""
        return self.nbytes and self.nbytes / median(self.timing.timings)

    @property
    def share(self) -> float | None:
        """Its bandwidth over that of a copy; above 1 where caches hold the data."""
        if self.bandwidth is None or self.copy_bandwidth is None:
            return None
        return self.bandwidth / self.copy_bandwidth

    def as_dict(self) -> dict[str, Any]:
        """Return the row for a record; times in seconds per call, sizes in bytes."""
        timing = self.timing
        return {
            "name": self.name,
            # What must be the same where two records are compared.
            "conditions": {"device": self.device_name, "cold": timing.cold},
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
            "launch_bound": timing.launch_bound,
            "notes": timing.notes,
            "nbytes": self.nbytes,
            "bandwidth": self.bandwidth,
            "copy_bandwidth": self.copy_bandwidth,
            "peak_bytes": self.footprint.peak,
            "allocations": self.footprint.allocations,
            "driver_allocations": self.footprint.driver_allocations,
        }

    def cells(self, *, baseline: bool) -> list[str]:
        """Return the row's text, cell by cell."""
        compared = ["1", "", ""] if baseline else _compared(self.ratio)
        if self.timing.launch_bound:
            compared[2] = f"{compared[2]} (launch-bound)".strip()
        return [
            self.name,
            self.timing.spread,
            *compared,
            "" if self.bandwidth is None else bandwidth_text(self.bandwidth),
            "" if self.share is None else f"{self.share:.0%}",
            text_of(self.footprint.peak),
            str(self.footprint.allocations),
            str(self.footprint.driver_allocations),
            format_time(self.timing.compile_time),
        ]


def check_name(name: str, names: Iterable[str]) -> None:
    """Refuse what is not a candidate's name."""
    if name not in names:
        known = ", ".join(map(repr, names))
        raise KeyError(f"no candidate is called {name!r}: there are {known}")


def _compared(ratio: Ratio) -> list[str]:
    interval = f"{ratio.low:.3g} to {ratio.high:.3g}" if ratio.sure else ""
    return [f"{ratio.middle:.3g}", interval, ratio.verdict]


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
        """Return the row of a candidate.

        Raises
        ------
        KeyError
            There is no such candidate.
        """
        check_name(name, [row.name for row in self.rows])
        return next(row for row in self.rows if row.name == name)

    def as_dict(self) -> dict[str, Any]:
        """Return everything, raw samples included, in JSON's types."""
        rows = [row.as_dict() for row in self.rows]
        return {"environment": self.environment, "rows": rows}

    def to_json(self) -> str:
        """Return :meth:`as_dict` as JSON text: a baseline for :meth:`since`."""
        return json.dumps(self.as_dict(), indent=1)

    def since(self, baseline: Path | str | Mapping[str, Any]) -> Changes:
        """Compare with an earlier comparison of the same on the same machine.

        Parameters
        ----------
        baseline : Path, str or mapping
            The file with the earlier one's :meth:`to_json`, or its :meth:`as_dict`.

        Returns
        -------
        Changes
            Each row's time over its time then; ``regressed`` names those that are
            surely slower, by a tenth at least.

        Raises
        ------
        ConfigurationError
            The baseline is no record, or of another machine, device or ``cold``; also
            a ValueError.
        OSError
            The file cannot be read.
        """
        return changes(self.as_dict(), baseline)

    def cells(self) -> list[list[str]]:
        """Return the table's text, cell by cell; the first row is the head."""
        head = ["", f"time {plus_minus()} std", "ratio", "95 %", VERDICT, "bandwidth"]
        head += ["of copy", "peak", "allocations", "driver", "first call"]
        cells = [head]
        cells += [row.cells(baseline=row is self.rows[0]) for row in self.rows]
        if all(row.nbytes is None for row in self.rows):
            cells = [row[:5] + row[7:] for row in cells]
        return cells

    def notes(self) -> list[str]:
        """Return a sentence for each thing that the figures alone do not tell."""
        found = [f"{row.name}: {n}" for row in self.rows for n in row.timing.notes]
        if not all(row.ratio.enough for row in self.rows[1:]):
            found.append(
                f"unclear: a verdict needs at least {ROUNDS} runs of each, "
                f"compare(..., repeat={ROUNDS})"
            )
        return found

    def __str__(self) -> str:
        """Return a table: time ± std, ratio, its 95 % interval, verdict, memory.

        What else a reader must know of a row stands below it.
        """
        return "\n".join([aligned(self.cells()), *self.notes()])

    def __rich_console__(self, _: Any, options: Any) -> Iterator[Any]:
        """Give ``rich.print`` the table, its verdicts coloured, and the notes."""
        from rich.text import Text

        yield from coloured(self.cells(), options.max_width)
        yield from map(Text, self.notes())

    def markdown(self) -> str:
        """Return the table in Markdown, and what else a reader must know."""
        notes = "".join(f"\n- {note}" for note in self.notes())
        return f"{markdown(self.cells())}\n{notes}".rstrip()

    _repr_markdown_ = markdown  # how a notebook shows it
