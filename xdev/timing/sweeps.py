"""Comparisons over sizes: where one candidate overtakes another, and the plot."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from math import log
from os import PathLike
from statistics import median
from typing import IO, TYPE_CHECKING, Any, final

from xdev import _html
from xdev._progress import Progress
from xdev.errors import quoted
from xdev.timing.comparison import check_name, compare
from xdev.timing.result import format_time
from xdev.timing.sampling import whole
from xdev.timing.verdict import MARGIN, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from xdev.device import Device
    from xdev.timing.comparison import Comparison, Row

    Runs = Mapping[int, Sequence[float]]

STYLES = "-", "--", ":"  # of lines: the next one once all colours are used


@final
@dataclass(frozen=True, slots=True)
class Sweep(Report):
    """What :func:`xdev.timing.sweep` found; ``str`` gives the table.

    Parameters
    ----------
    sizes : tuple of int
        In rising order.
    comparisons : tuple of Comparison
        One for each size.

    Examples
    --------
    >>> from xdev.timing import sweep
    >>> found = sweep(lambda n: {"sum": lambda: sum(range(n))}, [1, 100], repeat=3)
    >>> found.names, len(found.times("sum"))
    (('sum',), 2)
    """

    sizes: tuple[int, ...]
    comparisons: tuple[Comparison, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The candidates, as they were first given."""
        return tuple(dict.fromkeys(row.name for _, row in self._rows()))

    def times(self, name: str) -> dict[int, list[float]]:
        """Return a candidate's times of a call in each run [s], by size.

        Parameters
        ----------
        name : str
            The candidate.

        Returns
        -------
        dict of int to list of float
            Without the sizes that it did not run at.

        Raises
        ------
        KeyError
            There is no such candidate.
        """
        check_name(name, self.names)
        return {n: row.timing.timings for n, row in self._rows() if row.name == name}

    def crossover(self, name: str, other: str) -> float | None:
        """Return the size from which on one candidate is faster than another.

        Between the sizes that were measured it is where straight lines through the
        medians of a log-log plot meet.

        Parameters
        ----------
        name, other : str
            The candidates.

        Returns
        -------
        float or None
            The size; the smallest measured where ``name`` is always faster, None where
            it is not faster by 3 % at the largest.

        Raises
        ------
        KeyError
            One is not a candidate.

        Examples
        --------
        >>> from xdev.timing import sweep
        >>> def ways(n):
        ...     return {"half": lambda: n * (n - 1) // 2, "sum": lambda: sum(range(n))}
        >>> sweep(ways, [1000, 10_000], repeat=3).crossover("half", "sum")
        1000.0
        """
        return _crossover(self.times(name), self.times(other))

    def as_dict(self) -> dict[str, Any]:
        """Return everything, raw samples included, in JSON's types."""
        rows = []
        for n, row in self._rows():
            names = {"name": f"{row.name}, n = {n}", "candidate": row.name, "n": n}
            rows.append(row.as_dict() | names)
        return {"environment": self.comparisons[0].environment, "rows": rows}

    def to_json(self) -> str:
        """Return :meth:`as_dict` as JSON text."""
        return json.dumps(self.as_dict(), indent=1)

    def plot(self, path: Path | str | IO[bytes]) -> None:
        """Draw the times over the sizes, both in logarithms, as a PNG file.

        A line goes through the medians, and a band from the shortest run to the
        longest.

        Parameters
        ----------
        path : Path, str or file
            Where it goes; a name's ending may choose another format.

        Raises
        ------
        ModuleNotFoundError
            Matplotlib is missing: ``python -m pip install ".[plot]"``.
        TypeError, OSError
            ``path`` is none of these, or cannot be written to.

        Examples
        --------
        >>> import io
        >>> from xdev.timing import sweep
        >>> found = sweep(lambda n: {"sum": lambda: sum(range(n))}, [1, 100], repeat=3)
        >>> picture = io.BytesIO()
        >>> found.plot(picture)  # or a path, "sum.png"
        >>> picture.getvalue()[1:4]
        b'PNG'
        """
        if not isinstance(path, str | PathLike) and not hasattr(path, "write"):
            raise TypeError(f"path is {quoted(path)}: give a file's name, 'times.png'")
        draw(self._all_times(), path)

    def cells(self) -> list[list[str]]:
        """Return the table's text, cell by cell; the first row is the head."""
        times = self._all_times().values()
        rows = [["n", *self.names]]
        for n in self.sizes:
            row = (format_time(median(t[n])) if n in t else "" for t in times)
            rows.append([f"{n:,}", *row])
        return rows

    def crossovers(self) -> list[str]:
        """Say of the first and each other candidate which overtakes the other where."""
        return crossovers(self._all_times())

    notes = crossovers

    def _rows(self) -> list[tuple[int, Row]]:
        pairs = zip(self.sizes, self.comparisons, strict=True)
        return [(n, row) for n, comparison in pairs for row in comparison.rows]

    def _all_times(self) -> dict[str, dict[int, list[float]]]:
        return {name: self.times(name) for name in self.names}

    def _repr_html_(self) -> str:
        """Return the plot, the table and the crossover sizes, for a notebook."""
        shown = _html.table(self.cells()) + _html.notes(self.notes())
        picture = io.BytesIO()
        with suppress(ModuleNotFoundError):  # Matplotlib's
            self.plot(picture)
            data = base64.b64encode(picture.getvalue()).decode()
            shown = f'<img src="data:image/png;base64,{data}"/>{shown}'
        return shown


def crossovers(times: Mapping[str, Runs]) -> list[str]:
    """Say of the first and each other name which is faster, and from which size on."""
    first, *others = times
    pairs = [pair for name in others for pair in ((name, first), (first, name))]
    crossings = ((*pair, _crossover(*(times[name] for name in pair))) for pair in pairs)
    text = "{} is faster than {} from n = {:,.0f} on"
    return [text.format(*each) for each in crossings if each[-1] is not None]


def _crossover(one: Runs, other: Runs) -> float | None:
    """Return the size from which on the first has the shorter times [s]."""
    common = sorted(one.keys() & other.keys())
    points = [(n, log(median(one[n]) / median(other[n]))) for n in common]
    if not points or points[-1][1] >= -log(MARGIN):
        return None
    for (left, before), (right, after) in reversed(list(pairwise(points))):
        if before >= 0:
            return float(left * (right / left) ** (before / (before - after)))
    return float(points[0][0])


def draw(times: Mapping[str, Runs], path: Path | str | IO[bytes]) -> None:
    """Draw candidates' runs [s], by size, as :meth:`Sweep.plot` does."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        way = """python -m pip install ".[plot]" in xdev's checkout"""
        error.add_note(f"a plot needs Matplotlib: {way}")
        raise
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    lines = []
    for number, runs in enumerate(times.values()):
        sizes = list(runs)
        ends = min, median, max
        low, middle, high = ([1e6 * end(runs[n]) for n in sizes] for end in ends)
        style = f".{STYLES[number // 10 % len(STYLES)]}C{number % 10}"  # of ten colours
        lines += axes.plot(sizes, middle, style)
        axes.fill_between(sizes, low, high, color=lines[-1].get_color(), alpha=0.2)
    axes.set(xscale="log", yscale="log", xlabel="n", ylabel="time of a call [µs]")
    axes.grid(visible=True, alpha=0.3)
    for text in axes.legend(lines, times).get_texts():
        text.set_parse_math(False)  # a name is no formula
    figure.savefig(path, dpi=120)


def sweep(
    candidates: Callable[[int], Mapping[str, Callable[[], object]]],
    sizes: Iterable[int],
    *,
    number: int | None = None,
    repeat: int = 11,
    device: Device | str | None = None,
    rtol: float | None = None,
    nbytes: Callable[[int], int] | None = None,
    progress: bool = False,
) -> Sweep:
    """Compare functions that do the same at several sizes.

    Parameters
    ----------
    candidates : callable
        Takes a size, and returns what :func:`xdev.timing.compare` takes: the calls by
        name. A candidate may be absent at some sizes.
    sizes : iterable of int
        What it is called with.
    number, repeat, device, rtol : optional
        As in :func:`xdev.timing.compare`.
    nbytes : callable, optional
        Takes a size, and returns the bytes that one call reads and writes [B].
    progress : bool
        Whether to show a bar on standard error, where that is a terminal or a
        notebook's.

    Returns
    -------
    Sweep
        A comparison for each size; ``str`` gives a table and the crossover sizes,
        ``plot`` a PNG.

    Raises
    ------
    ResultsDifferError
        Two results differ; also a ValueError.
    ValueError
        No sizes, or one that is not a whole number of at least 1, or what ``compare``
        refuses.
    TypeError
        The candidates are no function of a size, or the sizes nothing to go through.

    Examples
    --------
    >>> import numpy as np
    >>> def sums(n):
    ...     x = np.ones(n)
    ...     return {"method": x.sum, "built in": lambda: sum(x)}
    >>> sweep(sums, [4, 256], repeat=1).crossover("method", "built in") < 256
    True
    """
    way = 'sweep(lambda n: {"name": function without arguments, ...}, sizes)'
    if not callable(candidates):
        given = quoted(candidates)
        raise TypeError(f"sweep takes a function of a size, {way}, not {given}")
    if not isinstance(sizes, Iterable):
        raise TypeError(f"sweep takes several sizes, {way}, not {quoted(sizes)}")
    ordered = tuple(sorted({whole(n, "sweep needs sizes: each") for n in sizes}))
    if not ordered:
        raise ValueError("sweep needs sizes, whole numbers of at least 1")
    comparisons = []
    how: Any = {"number": number, "repeat": repeat, "device": device, "rtol": rtol}
    with Progress("sizes", len(ordered), shown=progress) as bar:
        for n in ordered:
            moved = nbytes and nbytes(n)
            comparisons.append(compare(candidates(n), nbytes=moved, **how))
            bar.update()
    return Sweep(ordered, tuple(comparisons))
