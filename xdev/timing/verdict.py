"""Whether one candidate is faster than another, or than it was; and their tables."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import dataclass
from math import comb
from pathlib import Path
from statistics import median
from textwrap import wrap
from typing import TYPE_CHECKING, Any, cast, final

from xdev.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Record = Mapping[str, Any]

WHOLE = 100  # from so many GB/s on without a point
GAP = 2  # spaces between columns


def aligned(cells: Sequence[Sequence[str]], width: float = float("inf")) -> str:
    """Return cells in columns, two spaces apart; the first row is the head.

    Columns that do not fit beside the others into ``width`` [characters] stand in a
    table below, behind the first column once more.
    """
    names, *columns = zip(*cells, strict=True)
    blocks: list[list[Sequence[str]]] = []
    room = 0.0
    for column in columns:
        needed = GAP + max(map(len, column))
        if not blocks or needed > room:
            blocks.append([names])
            room = width - max(map(len, names))
        blocks[-1].append(column)
        room -= needed
    lines = []
    for block in blocks or [[names]]:
        widths = [max(map(len, column)) for column in block]
        rows = (map(str.ljust, row, widths) for row in zip(*block, strict=True))
        lines += [(" " * GAP).join(row).rstrip() for row in rows]
    return "\n".join(lines)


def markdown(cells: Sequence[Sequence[str]]) -> str:
    """Return cells as a table of Markdown; the first row is the head."""
    head, *rows = ([cell.replace("|", r"\|") for cell in row] for row in cells)
    lines = (head, ["---"] * len(head), *rows)
    return "\n".join(f"| {' | '.join(row)} |".replace("|  |", "| |") for row in lines)


class Report:
    """A table with notes: what comparisons, sweeps and changes show of themselves."""

    __slots__ = ()

    def cells(self) -> list[list[str]]:
        """Return the table's text, cell by cell; the first row is the head."""
        raise NotImplementedError

    def notes(self) -> list[str]:
        """Return a sentence for each thing that the figures alone do not tell."""
        raise NotImplementedError

    def text(self, width: float = float("inf")) -> str:
        """Return the table and the notes in lines of at most ``width`` [characters].

        Columns that do not fit beside the others stand in a table below.

        Parameters
        ----------
        width : float
            No limit unless given.

        Returns
        -------
        str
            What ``str`` gives, in shorter lines.
        """
        lines = [aligned(self.cells(), width)]
        for note in self.notes():
            lines += [note] if width == float("inf") else wrap(note, int(width))
        return "\n".join(lines)

    def __str__(self) -> str:
        """Return the table, and below it what else a reader must know."""
        return self.text()

    def markdown(self) -> str:
        """Return the table in Markdown, and what else a reader must know."""
        notes = "".join(f"\n- {note}" for note in self.notes())
        return f"{markdown(self.cells())}\n{notes}".rstrip()

    def _repr_markdown_(self) -> str:
        return self.markdown()  # where no HTML is shown


def bandwidth_text(rate: float) -> str:
    """Return bytes per second in GB/s, to three digits."""
    gigabytes = rate / 1e9
    return f"{gigabytes:.0f} GB/s" if gigabytes >= WHOLE else f"{gigabytes:.3g} GB/s"


CONFIDENCE = 0.95
# A verdict asks for more than the interval that is shown: of programs that are the
# same, at most one pair in fifty may be told apart, however much their times scatter.
SURE = 0.98
# Two programs whose times differ by less are the same for a user's purposes.
MARGIN = 1.03
# So many rounds may give a verdict, by SURE; fewer never do.
ROUNDS = 7


@dataclass(frozen=True, slots=True)
class Ratio:
    """The time of one candidate over that of another.

    Parameters
    ----------
    middle : float
        The median of the ratios.
    low, high : float
        The ends of its interval of 95 % confidence; 0 and infinity where there were
        too few times to give one (fewer than 6 rounds).
    verdict : str
        ``"faster"``, ``"slower"``, ``"same"`` (within 3 %) or ``"unclear"``, with 98 %
        confidence.
    enough : bool
        Whether there were times enough for a verdict; if not, it is ``"unclear"``
        whatever they are.

    Examples
    --------
    >>> from xdev.timing import compare
    >>> found = compare({"one": lambda: 1, "other": lambda: 1}, repeat=3)
    >>> ratio = found["other"].ratio
    >>> ratio.low <= ratio.middle <= ratio.high
    True
    """

    middle: float
    low: float
    high: float
    verdict: str
    enough: bool = True

    def cells(self) -> list[str]:
        """Return the text of a table: the ratio, its interval and the verdict."""
        interval = f"{self.low:.3g} to {self.high:.3g}" if self.sure else ""
        return [f"{self.middle:.3g}", interval, self.verdict]

    @property
    def sure(self) -> bool:
        """Whether there were times enough for an interval."""
        return self.high != float("inf")


def ratio(times: Sequence[float], baseline: Sequence[float]) -> Ratio:
    """Compare times [s] that were taken in the same rounds.

    The interval is that of the sign test: it assumes nothing of how times scatter, and
    an odd slow round does not move it.
    """
    ratios = sorted(a / b for a, b in zip(times, baseline, strict=True))
    # How many ways the rounds, as coins, have to show 0, 1, 2, ... heads.
    ways = [comb(len(ratios), heads) for heads in range(len(ratios) + 1)]
    return _judge(ratios, ways, MARGIN)


def ratio_of_unpaired(times: Sequence[float], baseline: Sequence[float]) -> Ratio:
    """Compare times [s] of two measurements, such as those of two days.

    The interval is that of the Mann-Whitney test (Hodges and Lehmann's): like
    :func:`ratio` it assumes nothing of how times scatter, but that they scatter alike.
    """
    ratios = sorted(a / b for a in times for b in baseline)
    return _judge(ratios, _inversions(len(times), len(baseline)), CHANGED)


def _judge(ratios: list[float], counts: list[int], margin: float) -> Ratio:
    low, high = _interval(ratios, counts, SURE)
    verdict = "same" if low >= 1 / margin and high <= margin else "unclear"
    if high < 1 / margin:
        verdict = "faster"
    elif low > margin:
        verdict = "slower"
    shown = _interval(ratios, counts, CONFIDENCE)
    return Ratio(median(ratios), *shown, verdict, enough=high != float("inf"))


def _interval(
    ratios: list[float], counts: list[int], confidence: float
) -> tuple[float, float]:
    """Return the ends between which the true ratio is with so much confidence.

    ``counts[k]`` of ``sum(counts)`` equally likely cases leave ``k`` ratios below it.
    """
    allowed, tail, excluded = (1 - confidence) * sum(counts), 0, -1
    for count in counts:
        tail += 2 * count
        if tail > allowed:
            break
        excluded += 1
    if excluded < 0:
        return 0.0, float("inf")
    return ratios[excluded], ratios[-1 - excluded]


def _inversions(first: int, second: int) -> list[int]:
    """Return how many ways two sets have to be shuffled with 0, 1, 2, ... inversions.

    The coefficients of the Gaussian binomial of ``first + second`` over ``first``.
    """
    counts = [1] + [0] * (first * second)
    for i in range(1, first + 1):
        for power in reversed(range(second + i, len(counts))):
            counts[power] -= counts[power - second - i]
        for power in range(i, len(counts)):
            counts[power] += counts[power - i]
    return counts


# Another process has another memory layout, and a machine other neighbours: less than
# a tenth is no regression.
CHANGED = 1.1
# What makes a machine, of the environment in a record.
MACHINE = ("processor", "cores")


@final
@dataclass(frozen=True, slots=True)
class Changes(Report):
    """What became of each row since a baseline; ``str`` gives the table.

    Parameters
    ----------
    ratios : dict of str to Ratio
        The time of each row that both have over its time then.
    added, gone : tuple of str
        Rows that only the new measurement has, and those that only the baseline has.

    Examples
    --------
    >>> from xdev.timing import compare
    >>> found = compare({"one": lambda: 1, "other": lambda: 1}, repeat=3)
    >>> sorted(found.since(found.as_dict()).ratios)
    ['one', 'other']
    """

    ratios: dict[str, Ratio]
    added: tuple[str, ...]
    gone: tuple[str, ...]

    @property
    def regressed(self) -> tuple[str, ...]:
        """The rows that are slower."""
        return tuple(n for n, r in self.ratios.items() if r.verdict == "slower")

    def cells(self) -> list[list[str]]:
        """Return the table's text, cell by cell; the first row is the head."""
        cells = [["since the baseline", "ratio", "95 %", "verdict"]]
        cells += [[name, *ratio.cells()] for name, ratio in self.ratios.items()]
        cells += [[name, "", "", "new"] for name in self.added]
        return cells + [[name, "", "", "gone"] for name in self.gone]

    def notes(self) -> list[str]:
        """Return a sentence for each row that had too few runs."""
        few = [name for name, ratio in self.ratios.items() if not ratio.enough]
        return [f"{name}: too few runs for a verdict, now or then" for name in few]


def changes(record: Record, baseline: Path | str | Record) -> Changes:
    """Compare two records of ``environment`` and ``rows``, or the new with a file."""
    then = read_record(baseline)
    check_baseline(record["environment"], record["rows"], then)
    rows = record["rows"], then["rows"]
    new, old = ({row["name"]: row["samples"] for row in each} for each in rows)
    both = [name for name in new if name in old]
    ratios = {n: ratio_of_unpaired(new[n], old[n]) for n in both}
    added, gone = (tuple(n for n in each if n not in both) for each in (new, old))
    return Changes(ratios, added, gone)


def read_record(baseline: Path | str | Record) -> Record:
    """Return a record, of a file or as it is.

    Raises
    ------
    ConfigurationError
        It is none, or has a row without samples.
    OSError
        The file cannot be read.
    """
    where, record = "the baseline", cast("Any", baseline)
    if isinstance(baseline, Path | str):
        where, record = repr(str(baseline)), None
        with suppress(RecursionError, ValueError):  # it is not JSON
            record = json.loads(Path(baseline).read_text(encoding="utf-8"))
    match record:
        case {"environment": {}, "rows": [*rows]} if all(map(_is_row, rows)):
            return cast("Record", record)
    form = "'environment', and of 'rows' with a 'name' and times as 'samples'"
    what = f"{where} is not a record of compare, sweep or bench"
    raise ConfigurationError(f"{what}: JSON of an {form}")


def _is_row(row: object) -> bool:
    match row:
        case {"name": str(), "samples": [_, *_] as times, **rest}:
            return isinstance(rest.get("conditions") or {}, dict) and all(
                isinstance(t, int | float) and 0 < t <= sys.float_info.max
                for t in times
            )
    return False


def check_baseline(now: Record, rows: Iterable[Record], baseline: Record) -> None:
    """Refuse a baseline of another machine, device or kind of measurement.

    ``now`` and ``rows`` are the new measurement's environment and rows. What the
    baseline does not say is taken to be the same.

    Raises
    ------
    ConfigurationError
        The text says what is not the same.
    """
    check_machine(now, baseline)
    conditions = {row["name"]: row.get("conditions") for row in baseline["rows"]}
    for row in rows:
        then = conditions.get(row["name"]) or {}
        for key, value in (row.get("conditions") or {}).items():
            what = f"measurement, the {key} of {row['name']!r}"
            _check_same(what, value, then.get(key))


def check_machine(environment: Record, baseline: Record) -> None:
    """Refuse a baseline of another machine: what needs no measurement."""
    for key in MACHINE:
        before = baseline["environment"].get(key)
        _check_same(f"machine, the {key}", environment.get(key), before)


def _check_same(what: str, now: object, before: object) -> None:
    if None not in (now, before) and now != before:
        other = f"another {what} being {before!r}, not {now!r}"
        raise ConfigurationError(f"the baseline is of {other}: save a new one here")


def writable(name: Path | str) -> Path:
    """Open a record's file once: a wrong path is known before minutes of work."""
    path = Path(name)
    existed = path.exists()
    path.open("a").close()
    if not existed:
        path.unlink()
    return path
