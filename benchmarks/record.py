"""What every benchmark program shares: the environment, interleaved samples, JSON.

A program of this folder is run as ``python benchmarks/NAME.py --json FILE``.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from itertools import repeat as times
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xdev
from xdev.timing.environment import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from xdev.timing import Comparison

    Rows = list[dict[str, Any]]

# Of the program: IPython's shell takes the place of this module.
ABOUT = sys.modules["__main__"].__doc__

__all__ = [
    "arguments",
    "environment",
    "on_devices",
    "rows",
    "sample",
    "shortened",
    "write",
]


def arguments(description: str) -> argparse.ArgumentParser:
    """Return a parser that has ``--json FILE``, for a program to add its options."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the samples")
    return parser


def sample(
    candidates: Mapping[str, Callable[[], object]],
    number: int,
    repeat: int,
    finish: Callable[[], object] = lambda: None,
) -> dict[str, list[float]]:
    """Time every candidate ``repeat`` times, in turn, so that drift meets all alike.

    Parameters
    ----------
    candidates : mapping of str to callable without arguments
        What is timed, by name. Call each once before: the first call may compile.
    number : int
        Calls in one run.
    repeat : int
        Runs of each candidate; every round starts with another candidate.
    finish : callable, optional
        Called before and at the end of each run, inside the time: for a device,
        its ``synchronize``. Left out, a run ends when the last call returns.

    Returns
    -------
    dict of str to list of float, length ``repeat``
        Seconds per call [s]; the garbage collector is off inside a run.
    """
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    names = list(candidates)
    for turn in range(repeat):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            samples[name].append(_run(candidates[name], number, finish) / number)
    return samples


def _run(
    call: Callable[[], object], number: int, finish: Callable[[], object]
) -> float:
    collecting = gc.isenabled()
    finish()
    gc.disable()
    try:
        start = time.perf_counter()
        for _ in times(None, number):
            call()
        finish()
        return time.perf_counter() - start
    finally:
        if collecting:
            gc.enable()


def on_devices(
    measure: Callable[[xdev.Device, Sequence[int], int], tuple[Rows, dict[str, str]]],
    sizes: Mapping[str, Sequence[int]],
    description: str,
) -> None:
    """Measure at several sizes, on the CPU and on CUDA where it is; write the record.

    Parameters
    ----------
    measure : callable
        Takes a device, the sizes and how often each run is made; returns the rows, and
        why peers are left out, by name.
    sizes : mapping of str to sequence of int
        By type of device; ``--sizes`` is used instead where it is given.
    description : str
        Of the program.
    """
    parser = arguments(description)
    parser.add_argument("--repeat", type=int, default=7, help="(default: 7)")
    parser.add_argument("--sizes", type=int, nargs="+", help="instead of the usual")
    options = parser.parse_args()
    found: Rows = []
    left_out: dict[str, Any] = {}
    for device in map(xdev.Device, sizes):
        if not device.available:
            left_out[str(device)] = device.reason
            continue
        chosen = options.sizes or sizes[device.type]
        more, left_out[str(device)] = measure(device, chosen, options.repeat)
        found += more
    print(f"\nleft out: {left_out}")
    write(options.json, found, left_out=left_out)


def rows(comparison: Comparison, group: str, **facts: object) -> list[dict[str, Any]]:
    """Return a comparison's rows for a record, named after their group and candidate.

    Parameters
    ----------
    comparison : Comparison
        What ``xdev.timing.compare`` found.
    group : str
        What was compared: rows of a group stand in one table.
    **facts
        More to say of each row.
    """
    return [
        row
        | {"name": f"{group}: {row['name']}", "group": group, "candidate": row["name"]}
        | facts
        for row in comparison.as_dict()["rows"]
    ]


def write(path: Path | str | None, rows: list[dict[str, Any]], **extra: object) -> None:
    """Write ``rows``, the environment and ``extra`` as JSON; nothing without a path.

    ``rows`` is what the program measured, by convention a list of dicts with ``name``
    and ``samples`` (seconds per call, of which four digits are kept), or a dict of
    these. Rows of one ``group``, or ``task``, and other ``candidate`` do the same, as
    do those whose names differ after ``": "``; those with ``n`` are drawn over it. The
    record also has what the program says it is about.
    """
    if path is None:
        return
    kept = shortened(rows)
    record: dict[str, Any] = {"about": ABOUT}
    record |= {"environment": environment(), **extra, "rows": kept}
    Path(path).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def shortened(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with four digits of each sample."""
    return [
        row | {"samples": _short(row["samples"])} if "samples" in row else row
        for row in rows
    ]


def _short(samples: Any) -> Any:
    if isinstance(samples, dict):
        return {name: _short(each) for name, each in samples.items()}
    return [float(f"{seconds:.4g}") for seconds in samples]
