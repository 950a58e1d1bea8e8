"""Several functions that do the same, checked, timed in turn and set side by side."""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from xdev import _html, facade, memory
from xdev._forks import module_lock
from xdev._progress import Progress
from xdev.compile import threads
from xdev.device import Device, as_device
from xdev.errors import OutOfMemoryError, XdevError
from xdev.memory.registry import text_of
from xdev.timing import verdict
from xdev.timing.environment import device_name, environment
from xdev.timing.result import format_time, plus_minus
from xdev.timing.sampling import Candidate, begin, whole
from xdev.transfer import to_device, to_numpy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from typing import Never

    from xdev.timing.result import Timing
    from xdev.timing.verdict import Changes, Ratio

# How many spacings of the coarser dtype two right answers may lie apart: libraries
# round, fuse and order their steps differently.
SPACINGS = 64
# The same for values that cancelled to near zero, against the largest value.
CANCELLED = 4
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


def to_host(result: object) -> object:
    """Copy a result to the host; a mapping or a list of arrays becomes a ``dict``.

    They are copied always, since the next candidate may write into the same buffer.
    """
    if isinstance(result, tuple | list) and any(map(_has_parts, result)):
        result = dict(enumerate(result))
    if isinstance(result, Mapping):
        return {key: to_host(part) for key, part in result.items()}
    if result is None or isinstance(result, str):
        return result
    is_array = hasattr(result, "shape")
    return np.array(to_numpy(result)) if is_array else np.asarray(result)


def _has_parts(part: object) -> bool:
    """Whether a part of a list is an array, or has arrays for parts itself."""
    if isinstance(part, tuple | list):
        return any(map(_has_parts, part))
    return isinstance(part, Mapping) or hasattr(part, "shape")


def check_agreement(
    first: tuple[str, object], second: tuple[str, object], rtol: float | None
) -> None:
    """Raise unless two named results, both from :func:`to_host`, agree.

    ``rtol`` is :func:`compare`'s.
    """
    (name, expected), (other, actual) = first, second
    if said := _difference(expected, actual, rtol):
        both = f"{name!r} and {other!r}"
        raise ResultsDifferError(f"{both} return different results: {said}")


def _difference(expected: Any, actual: Any, rtol: float | None, place: str = "") -> str:
    """Say in words where and how two results differ; nothing where they agree."""
    where = f"in part {place} " if place else ""
    if isinstance(expected, dict) and isinstance(actual, dict):
        if expected.keys() != actual.keys():
            return f"{where}parts {[*expected]} against {[*actual]}"
        pairs = ((key, part, actual[key]) for key, part in expected.items())
        parts = (_difference(x, y, rtol, f"{place}[{key!r}]") for key, x, y in pairs)
        return next(filter(None, parts), "")
    if not (isinstance(expected, np.ndarray) and isinstance(actual, np.ndarray)):
        same = type(expected) is type(actual) and expected == actual
        return "" if same else f"{where}{_kind(expected)} against {_kind(actual)}"
    if expected.shape != actual.shape:
        return f"{where}shape {expected.shape} against {actual.shape}"
    expected, actual = np.atleast_1d(expected, actual)
    wrong = np.argwhere(_wrong(expected, actual, rtol))
    if not wrong.size:
        return ""
    at = tuple(map(int, wrong[0]))
    enough = not _wrong(expected, actual, sys.float_info.max).any()
    way = ": rtol= allows a larger difference" if enough else ""
    first = f"{where}at {[*at]} {expected[at]!s} against {actual[at]!s}, the first of"
    return f"{first} {len(wrong)} of {expected.size} elements that differ{way}"


def _kind(part: object) -> str:
    if isinstance(part, dict):
        return f"parts {[*part]}"
    return f"an array of {part.dtype}" if isinstance(part, np.ndarray) else repr(part)


def _wrong(a: Array, b: Array, rtol: float | None) -> Array:
    """Return which elements disagree; NaN agrees with NaN."""
    spacings = [float(np.finfo(x.dtype).eps) for x in (a, b) if x.dtype.kind in "fc"]
    if not spacings or any(x.dtype.kind not in "biufc" for x in (a, b)):
        return np.asarray(a != b)
    a, b = (x.astype(np.result_type(x, np.float64)) for x in (a, b))
    atol = 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        if rtol is None:
            largest = np.max(np.abs(a), where=np.isfinite(a), initial=0)
            rtol, atol = SPACINGS * max(spacings), CANCELLED * max(spacings) * largest
        return ~np.isclose(b, a, rtol, atol, equal_nan=True)


class Footprint(NamedTuple):
    """What one call took from its device's pools, as their ledger has it."""

    peak: int  # the most bytes in use during the call over those before it
    allocations: int  # blocks
    driver_allocations: int  # requests to the driver, or the operating system


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
            "conditions": {"device": self.device_name},
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
        """Return the row's text, cell by cell.

        Parameters
        ----------
        baseline : bool
            Whether it is the row that others are compared with.
        """
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
class Comparison(verdict.Report):
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
            The baseline is no record, or of another machine or device; also a
            ValueError.
        OSError
            The file cannot be read.

        Examples
        --------
        >>> from xdev.timing import compare
        >>> found = compare({"sum": lambda: sum(range(100))}, repeat=3)
        >>> found.since(found.as_dict()).regressed
        ()
        """
        return verdict.changes(self.as_dict(), baseline)

    def cells(self) -> list[list[str]]:
        """Return the table's text, cell by cell; the first row is the head."""
        head = ["", f"time {plus_minus()} std", "ratio", "95 %", "verdict"]
        head += ["bandwidth", "of copy", "peak", "allocations", "driver", "first call"]
        cells = [head, *(row.cells(baseline=row is self.rows[0]) for row in self.rows)]
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

    def _repr_html_(self) -> str:
        """Return the table, each candidate's runs, and the notes, for a notebook."""
        timings = [(row.name, row.timing) for row in self.rows]
        rows = [(name, [t.average], t.timings, t.spread) for name, t in timings]
        plot = _html.bars("mean time of a call, and that in each run", rows)
        return _html.table(self.cells()) + plot + _html.notes(self.notes())


# A run this long [s] is far above the clock's own noise, and a table takes seconds.
RUN_SECONDS = 0.01


def compare(
    candidates: Mapping[str, Callable[[], object]],
    *more: Never,
    number: int | None = None,
    repeat: int = 11,
    device: Device | str | None = None,
    rtol: float | None = None,
    nbytes: int | Mapping[str, int] | None = None,
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
    _check_candidates(candidates, *more)
    moved = _bytes_by_name(candidates, nbytes)
    running: dict[str, Candidate] = {}
    first: tuple[str, object] | None = None
    for name, call in candidates.items():
        running[name], result = begin(call, device)
        current = (name, to_host(result))
        first = first or current
        check_agreement(first, current, rtol)
    used = {name: footprint(one.call, one.device) for name, one in running.items()}
    copies: dict[str, float] = {}
    for name in moved:
        with suppress(OutOfMemoryError):  # under a limit, or beside large arrays
            copies[name] = copy_bandwidth(running[name].device)
    with Progress("timing", len(running) + repeat, shown=progress) as bar:
        for one in running.values():
            one.settle(number, RUN_SECONDS)
            bar.update()
        turns = deque(running.values())
        for _ in range(repeat):
            for one in turns:
                one.sample()
            turns.rotate(-1)  # every round starts with another candidate
            bar.update()
    timings = {name: one.timing() for name, one in running.items()}
    baseline = next(iter(timings.values())).timings
    rows = []
    for name, timing in timings.items():
        ratio = verdict.ratio(timing.timings, baseline)
        facts = moved.get(name), copies.get(name), device_name(running[name].device)
        rows.append(Row(name, timing, ratio, used[name], *facts))
    return Comparison(tuple(rows), environment())


def _check_candidates(candidates: object, *more: object) -> None:
    way = 'compare({"name": function without arguments, ...})'
    named = isinstance(candidates, Mapping) and all(
        isinstance(name, str) and callable(f) for name, f in candidates.items()
    )
    if more or not named:
        given = ", ".join(map(repr, (candidates, *more)))
        raise TypeError(f"compare takes functions by name, {way}, not {given}")
    if not candidates:
        raise ValueError(f"compare needs at least one candidate: {way}")


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


SIZE = 256 << 20  # far more than caches hold [B]
COPIES = 5  # of one run
RUNS = 5
PIECE = 1 << 20  # of random bytes [B]
GRAIN = 4096  # threads start at a page [B]
_measured: dict[Device, float] = {}
_lock = module_lock()  # guards _measured; one thread measures


def copy_bandwidth(device: Device | str | None = None) -> float:
    """Return how many bytes a second a copy within a device's memory moves.

    Bytes read and bytes written both count. Measured at the first call in a process
    and for a device, in under a second: 256 MiB of random bytes, the best of five runs.
    On the CPU by as many threads as xdev's ufuncs may use (``XDEV_NUM_THREADS``).

    Parameters
    ----------
    device : Device or str, optional
        Where; left out, on the default device.

    Returns
    -------
    float
        Bytes read and written per second [B/s].

    Raises
    ------
    DeviceUnavailableError
        The device cannot be used.
    OutOfMemoryError
        It has no 513 MiB to spare.

    Examples
    --------
    >>> from xdev.timing import copy_bandwidth
    >>> copy_bandwidth("cpu") > 0
    True
    """
    where = as_device(device)
    with _lock:
        if where not in _measured:
            _measured[where] = 2 * SIZE / _copy_seconds(where)
            memory.reclaim(2 * SIZE, where)  # a measurement leaves no cache behind
        return _measured[where]


def _copy_seconds(device: Device) -> float:
    make = partial(facade.empty, SIZE, dtype=facade.uint8, device=device)
    origin, target = make(), make()
    # Random bytes: pages that nobody wrote share one page of zeros.
    numbers = np.random.default_rng(0).integers(0, 256, PIECE, np.uint8)
    facade.reshape(origin, (-1, PIECE))[...] = facade.asarray(numbers, device=device)

    def part(start: int, stop: int) -> None:
        target[start:stop] = origin[start:stop]

    copy: Callable[[], object] = partial(threads.run, part, SIZE, grain=GRAIN)
    if device.type != "cpu":
        copy = partial(to_device, origin, device, out=target, non_blocking=True)
    candidate, _ = begin(copy, device)  # it touches every page
    seconds = min(candidate.run(COPIES).device for _ in range(RUNS)) / COPIES
    if device.type == "cpu":  # a thread may hold on to its part of the copy
        memory.free(origin)
        memory.free(target)
    return seconds
