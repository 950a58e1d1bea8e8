"""Several functions that do the same, checked, timed in turn and set side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from statistics import median
from textwrap import wrap
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from xdev import _html, memory
from xdev._progress import Progress
from xdev.errors import OutOfMemoryError, XdevError
from xdev.memory.registry import text_of
from xdev.timing import verdict
from xdev.timing.environment import copy_bandwidth, device_name, environment
from xdev.timing.result import format_time, plus_minus
from xdev.timing.sampling import Candidate, begin, whole
from xdev.transfer import to_numpy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from xdev.device import Device
    from xdev.timing.result import Timing
    from xdev.timing.verdict import Changes, Ratio


# How many spacings of the coarser dtype two right answers may lie apart: libraries
# round, fuse and order their steps differently.
SPACINGS = 64
# The same for values that cancelled to near zero, against the largest value.
CANCELLED = 4
COLOURS = {"faster": "green", "slower": "red", "unclear": "yellow"}  # on terminals
Array = NDArray[Any]


class ResultsDifferError(XdevError, ValueError):
    """Two candidates of a comparison returned different results.

    Examples
    --------
    >>> from xdev.timing import compare
    >>> compare({"one": lambda: 1, "two": lambda: 2})
    Traceback (most recent call last):
    xdev...ResultsDifferError: 'one' and 'two' return different results: at [0] 1 ...
    """


WHOLE = " as a whole"  # of a list or mapping, beside its parts


def to_host(result: object, place: str = "") -> dict[str, object]:
    """Copy the parts of a result to the host, by their places in it.

    Of a mapping or of a list of arrays they are several. They are copied always, since
    the next candidate may write into the same buffer.
    """
    kind = "mapping"
    if isinstance(result, tuple | list) and any(map(_has_parts, result)):
        result, kind = dict(enumerate(result)), "list"
    if isinstance(result, Mapping):
        parts: dict[str, object] = {f"{place}{WHOLE}": f"{kind} of {len(result)}"}
        for key, part in result.items():
            parts |= to_host(part, f"{place}[{key!r}]")
        return parts
    if result is None or isinstance(result, str):
        return {place: result}
    is_array = hasattr(result, "shape")
    return {place: np.array(to_numpy(result)) if is_array else np.asarray(result)}


def _has_parts(part: object) -> bool:
    """Whether a part of a list is an array, or has arrays for parts itself."""
    if isinstance(part, tuple | list):
        return any(map(_has_parts, part))
    return isinstance(part, Mapping) or hasattr(part, "shape")


def _places(parts: dict[str, object]) -> list[str]:
    return [place for place in parts if not place.endswith(WHOLE)]


def check_agreement(
    first: tuple[str, dict[str, object]],
    second: tuple[str, dict[str, object]],
    rtol: float | None,
) -> None:
    """Raise unless two named results, both from :func:`to_host`, agree.

    Parameters
    ----------
    first, second : tuple of str and dict
        The candidates' names and results.
    rtol : float or None
        Allowed relative difference of an element; None for 64 spacings of the
        coarser dtype, and 4 spacings of the largest value for what cancelled to near
        zero. Integers and bools must be equal.

    Raises
    ------
    ResultsDifferError
        They differ; the text names both candidates and the largest difference.
    """
    (name, expected), (other, actual) = first, second
    said = f"parts {_places(expected)} against {_places(actual)}"
    if expected.keys() == actual.keys():
        said = ""
        for place, part in expected.items():
            difference = _difference(part, actual[place], rtol)
            if difference:
                said = f"in part {place} {difference}" if place else difference
                break
    if said:
        raise ResultsDifferError(
            f"{name!r} and {other!r} return different results: {said}"
        )


def _difference(expected: object, actual: object, rtol: float | None) -> str:
    """Say in words how two parts of results differ; nothing where they agree."""
    if not (isinstance(expected, np.ndarray) and isinstance(actual, np.ndarray)):
        same = type(expected) is type(actual) and expected == actual
        return "" if same else f"{_kind(expected)} against {_kind(actual)}"
    if expected.shape != actual.shape:
        return f"shape {expected.shape} against {actual.shape}"
    expected, actual = np.atleast_1d(expected, actual)
    wrong, apart = _wrong(expected, actual, rtol)
    if not wrong.any():
        return ""
    worst = tuple(map(int, np.unravel_index(int(np.argmax(apart)), apart.shape)))
    return (
        f"at {[*worst]} {expected[worst]!s} against {actual[worst]!s}, the largest "
        f"difference of {np.count_nonzero(wrong)} of {wrong.size} elements"
    )


def _kind(part: object) -> str:
    return f"an array of {part.dtype}" if isinstance(part, np.ndarray) else repr(part)


def _wrong(a: Array, b: Array, rtol: float | None) -> tuple[Array, Array]:
    """Return which elements disagree (NaN with NaN agrees), and how far apart."""
    wrong = ~np.asarray(a == b)
    numbers = all(np.can_cast(x.dtype, np.complex128, "same_kind") for x in (a, b))
    if not numbers or not wrong.any():
        return wrong, wrong.astype(np.float64)
    spacings = [float(np.finfo(x.dtype).eps) for x in (a, b) if x.dtype.kind in "fc"]
    a, b = (x.astype(np.result_type(x, np.float64)) for x in (a, b))
    with np.errstate(invalid="ignore", over="ignore"):
        size, apart = np.abs(a), np.abs(a - b)
        if spacings:
            largest = np.max(size, where=np.isfinite(size), initial=0)
            relative, absolute = SPACINGS * max(spacings), CANCELLED * max(spacings)
            allowed = relative * size + absolute * largest
            if rtol is not None:
                allowed = rtol * size
            infinite = np.isinf(a) | np.isinf(b)  # their tolerance would be so too
            wrong &= (infinite | ~(apart <= allowed)) & ~(np.isnan(a) & np.isnan(b))
    return wrong, np.where(wrong, apart, 0)


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one call took from the pools of its device, as their ledger has it.

    Parameters
    ----------
    peak : int
        The most bytes in use during the call over those in use before it [B].
    allocations : int
        Blocks it took.
    driver_allocations : int
        Times that a pool had to ask the driver, or the operating system, for more.
    """

    peak: int
    allocations: int
    driver_allocations: int


def footprint(call: Callable[[], object], device: Device) -> Footprint:
    """Call once, and return what that took from a device's pools."""
    allocated, before = memory.allocated(device), memory.stats(device)
    with memory.peak(device) as highest:
        call()
    after, keys = memory.stats(device), ("allocation.all.allocated", "num_device_alloc")
    taken = (after[key] - before[key] for key in keys)
    return Footprint(max(0, highest.nbytes - allocated), *taken)


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

    Examples
    --------
    >>> from xdev.timing import compare
    >>> row = compare({"one": lambda: 1, "other": lambda: 1}, repeat=3)["one"]
    >>> row.name, row.timing.repeat
    ('one', 3)
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
        compared = ["1", "", ""] if baseline else self.ratio.cells()
        if self.timing.launch_bound:
            compared[2] = f"{compared[2]} (launch-bound)".strip()
        return [
            self.name,
            self.timing.spread,
            *compared,
            "" if self.bandwidth is None else verdict.bandwidth_text(self.bandwidth),
            "" if self.share is None else f"{self.share:.0%}",
            text_of(self.footprint.peak),
            str(self.footprint.allocations),
            str(self.footprint.driver_allocations),
            format_time(self.timing.compile_time),
        ]


def check_name(name: str, names: Iterable[str]) -> None:
    """Refuse what is not a candidate's name."""
    if name not in names:
        listed = ", ".join(map(repr, names))
        raise KeyError(f"no candidate is called {name!r}: there are {listed}")


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

    Examples
    --------
    >>> from xdev.timing import compare
    >>> found = compare({"one": lambda: 1, "other": lambda: 1}, repeat=3)
    >>> [row.name for row in found.rows]
    ['one', 'other']
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
        return verdict.changes(self.as_dict(), baseline)

    def cells(self) -> list[list[str]]:
        """Return the table's text, cell by cell; the first row is the head."""
        head = ["", f"time {plus_minus()} std", "ratio", "95 %", "verdict"]
        head += ["bandwidth", "of copy", "peak", "allocations", "driver", "first call"]
        cells = [head]
        cells += [row.cells(baseline=row is self.rows[0]) for row in self.rows]
        if all(row.nbytes is None for row in self.rows):
            cells = [row[:5] + row[7:] for row in cells]
        return cells

    def notes(self) -> list[str]:
        """Return a sentence for each thing that the figures alone do not tell."""
        sentences = [f"{row.name}: {n}" for row in self.rows for n in row.timing.notes]
        if not all(row.ratio.enough for row in self.rows[1:]):
            sentences.append(
                f"unclear: a verdict needs at least {verdict.ROUNDS} runs of each, "
                f"compare(..., repeat={verdict.ROUNDS})"
            )
        return sentences

    def __str__(self) -> str:
        """Return a table: time ± std, ratio, its 95 % interval, verdict, memory.

        What else a reader must know of a row stands below it.
        """
        return self.text()

    def text(self, width: float = float("inf")) -> str:
        """Return the same in lines of at most ``width`` [characters].

        Columns that do not fit beside the others stand in a table below.
        """
        lines = verdict.aligned(self.cells(), width).splitlines()
        for note in self.notes():
            lines += [note] if width == float("inf") else wrap(note, int(width))
        return "\n".join(lines)

    def __rich_console__(self, _: Any, options: Any) -> Iterator[Any]:
        """Give ``rich.print`` the same text, with verdicts coloured."""
        from rich.text import Text

        text = Text(self.text(options.max_width))
        for word, colour in COLOURS.items():
            text.highlight_words([word], colour)
        yield text

    def markdown(self) -> str:
        """Return the table in Markdown, and what else a reader must know."""
        notes = "".join(f"\n- {note}" for note in self.notes())
        return f"{verdict.markdown(self.cells())}\n{notes}".rstrip()

    def _repr_html_(self) -> str:
        """Return the table, each candidate's runs, and the notes, for a notebook."""
        rows = [
            (row.name, [row.timing.average], row.timing.timings, row.timing.spread)
            for row in self.rows
        ]
        longest = max(max(runs) for _, _, runs, _ in rows)
        plot = _html.bars("mean time of a call, and that in each run", rows, longest)
        return _html.table(self.cells()) + plot + _html.notes(self.notes())

    _repr_markdown_ = markdown  # where no HTML is shown


# A run this long [s] is far above the clock's own noise, and a table takes seconds.
RUN_SECONDS = 0.01


def compare(
    candidates: Mapping[str, Callable[[], object]],
    *,
    number: int | None = None,
    repeat: int = 11,
    device: Device | str | None = None,
    rtol: float | None = None,
    nbytes: int | Mapping[str, int] | None = None,
    cold: bool = False,
    progress: bool = False,
) -> Comparison:
    """Time functions that do the same, and say which is faster and how surely.

    Each is called once, and its result compared with the first one's, before
    anything is timed. Then they run in turn, round by round, so that a processor
    that warms up or slows down meets all alike.

    Parameters
    ----------
    candidates : mapping of str to callable without arguments
        What is timed, by name; each returns its result. The first is the baseline;
        alone it is timed, and compared with nothing.
    number : int, optional
        Calls in one run; left out, for each candidate the first of 1, 2, 5, 10, 20
        ... that takes 10 ms.
    repeat : int
        Rounds; an interval needs at least 6, a verdict 7.
    device : Device or str, optional
        Whose work is waited for; left out, the device that holds a candidate's
        result, else the default device.
    rtol : float, optional
        Relative difference that results may have; left out, 64 spacings of their
        coarser dtype. Integers and bools must be equal.
    nbytes : int or mapping of str to int, optional
        Bytes that one call reads plus bytes it writes [B], of all candidates or by
        name. Given, rows have a bandwidth, and its share of what a copy reaches on
        their device (:func:`xdev.timing.copy_bandwidth`), unless it lacks the memory
        for a copy.
    cold : bool
        Whether each call finds its device's caches overwritten.
    progress : bool
        Whether to show a bar on standard error, where that is a terminal or a
        notebook's.

    Returns
    -------
    Comparison
        A row for each candidate; ``str`` gives the table, ``markdown`` one for a page,
        ``to_json`` the record, ``since`` what changed after an earlier record.

    Raises
    ------
    ResultsDifferError
        Two results differ; also a ValueError. Nothing was timed.
    ValueError
        No candidates, ``number`` or ``repeat`` is no positive whole number, or
        ``nbytes`` is no whole number or names no candidate.
    TypeError
        The candidates are no mapping by strings, or one cannot be called.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).random(1000)
    >>> table = compare({"times": lambda: x * x, "power": lambda: x**2}, repeat=1)
    >>> [row.name for row in table.rows]
    ['times', 'power']
    """
    number = None if number is None else whole(number, "number")
    repeat = whole(repeat, "repeat")
    _check_candidates(candidates)
    moved = _bytes_by_name(candidates, nbytes)
    running = _begin_all(candidates, device, rtol, cold=cold)
    used = {name: footprint(one.call, one.device) for name, one in running.items()}
    copies = {name: _copy_bandwidth(running[name].device) for name in moved}
    with Progress("timing", len(running) + repeat, shown=progress) as bar:
        for one in running.values():
            one.settle(number, RUN_SECONDS)
            bar.update()
        _take_turns(list(running.values()), repeat, bar.update)
    timings = {name: one.timing() for name, one in running.items()}
    baseline = next(iter(timings.values())).timings
    rows = tuple(
        Row(
            name,
            timing,
            verdict.ratio(timing.timings, baseline),
            used[name],
            nbytes=moved.get(name),
            copy_bandwidth=copies.get(name),
            device_name=device_name(running[name].device),
        )
        for name, timing in timings.items()
    )
    return Comparison(rows, environment())


def _take_turns(turns: list[Candidate], rounds: int, done: Callable[[], None]) -> None:
    for _ in range(rounds):
        for one in turns:
            one.sample()
        done()
        turns.append(turns.pop(0))  # every round starts with another candidate


def _check_candidates(candidates: object) -> None:
    way = 'compare({"name": function without arguments, ...})'
    if not isinstance(candidates, Mapping):
        kind = type(candidates).__name__
        raise TypeError(f"compare takes functions by name, {way}, not a {kind}")
    if not candidates:
        raise ValueError(f"compare needs at least one candidate: {way}")
    for name, call in candidates.items():
        if not isinstance(name, str) or not callable(call):
            kind = type(call).__name__
            raise TypeError(
                f"compare takes functions by name, {way}: {name!r} is a {kind}"
            )


def _copy_bandwidth(device: Device) -> float | None:
    with suppress(OutOfMemoryError):  # under a limit, or beside large arrays
        return copy_bandwidth(device)
    return None


def _bytes_by_name(
    candidates: Mapping[str, object], nbytes: int | Mapping[str, int] | None
) -> Mapping[str, int]:
    if nbytes is None:
        return {}
    if not isinstance(nbytes, Mapping):
        return dict.fromkeys(candidates, whole(nbytes, "nbytes", 0))
    for name in nbytes.keys() - candidates.keys():
        raise ValueError(f"nbytes has {name!r}, which is not a candidate")
    return {name: whole(n, f"nbytes of {name!r}", 0) for name, n in nbytes.items()}


def _begin_all(
    candidates: Mapping[str, Callable[[], object]],
    device: Device | str | None,
    rtol: float | None,
    *,
    cold: bool,
) -> dict[str, Candidate]:
    """Call each candidate once and compare its result with the first one's."""
    running: dict[str, Candidate] = {}
    baseline: tuple[str, dict[str, object]] | None = None
    for name, call in candidates.items():
        running[name], result = begin(call, device, cold=cold)
        current = (name, to_host(result))
        baseline = baseline or current
        check_agreement(baseline, current, rtol)
    return running
