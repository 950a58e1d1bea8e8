"""Several functions that do the same, checked, timed in turn and set side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from xdev.errors import OutOfMemoryError
from xdev.timing.agreement import check_agreement, to_host
from xdev.timing.bandwidth import copy_bandwidth
from xdev.timing.counts import checked_counts, whole
from xdev.timing.environment import device_name, environment
from xdev.timing.footprint import footprint
from xdev.timing.report import Comparison, Row
from xdev.timing.sampling import Candidate, begin
from xdev.timing.verdict import ratio

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.device import Device

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
    number, repeat = checked_counts(number, repeat)
    _check_candidates(candidates)
    moved = _bytes_by_name(candidates, nbytes)
    running = _begin_all(candidates, device, rtol, cold=cold)
    used = {name: footprint(one.call, one.device) for name, one in running.items()}
    copies = {name: _copy_bandwidth(running[name].device) for name in moved}
    for one in running.values():
        one.settle(number, RUN_SECONDS)
    _take_turns(list(running.values()), repeat)
    timings = {name: one.timing() for name, one in running.items()}
    baseline = next(iter(timings.values())).timings
    rows = tuple(
        Row(
            name,
            timing,
            ratio(timing.timings, baseline),
            used[name],
            nbytes=moved.get(name),
            copy_bandwidth=copies.get(name),
            device_name=device_name(running[name].device),
        )
        for name, timing in timings.items()
    )
    return Comparison(rows, environment())


def _take_turns(turns: list[Candidate], rounds: int) -> None:
    for _ in range(rounds):
        for one in turns:
            one.sample()
        turns.append(turns.pop(0))  # every round starts with another candidate


def _check_candidates(candidates: object) -> None:
    way = 'compare({"name": function without arguments, ...})'
    if not isinstance(candidates, Mapping):
        kind = type(candidates).__name__
        raise TypeError(f"compare takes functions by name, {way}, not a {kind}")
    if not candidates:
        raise ValueError(f"compare needs at least one candidate: {way}")
    for name, call in candidates.items():
        if not isinstance(name, str):
            raise TypeError(f"a candidate's name is a string, not {name!r}: {way}")
        if not callable(call):
            kind = type(call).__name__
            raise TypeError(f"{name!r} is a {kind} and cannot be called: {way}")


def _copy_bandwidth(device: Device) -> float | None:
    try:
        return copy_bandwidth(device)
    except OutOfMemoryError:  # under a limit, or beside large arrays: no reason to stop
        return None


def _bytes_by_name(
    candidates: Mapping[str, object], nbytes: int | Mapping[str, int] | None
) -> Mapping[str, int]:
    if nbytes is None:
        return {}
    if not isinstance(nbytes, Mapping):
        return dict.fromkeys(candidates, whole(nbytes, "nbytes", 0))
    for name in nbytes:
        if name not in candidates:
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
    baseline: tuple[str, object] | None = None
    for name, call in candidates.items():
        running[name], result = begin(call, device, cold=cold)
        found = (name, to_host(result))
        if baseline is None:
            baseline = found
        check_agreement(baseline, found, rtol)
    return running
