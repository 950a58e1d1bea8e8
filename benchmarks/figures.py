"""The figures in README.md and docs, each of which names the row that it is from.

A mark after a figure is a comment of Markdown; the record is the last one that the text
names before it::

    On an H200 (benchmarks/results/2026-11-21-nvidia-h200.json) a call takes
    4.39 µs <!-- ufunc_cuda: xdev f(x, y, out=o) -->.

It names a program, a row, and what else must hold of the row. The figure is the median
of the row's samples, and

- a bandwidth with ``bytes=12``: the bytes that an element is worth, times the row's n;
- a ratio with `` over `` and a second row;
- a field of the row with ``show=FIELD``: seconds where a unit of time stands behind the
  figure, a share where ``%`` does.

``program: /one/two`` is what the program's record says beside its rows, under these
keys.
"""

from __future__ import annotations

import json
import operator
import re
from functools import reduce
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from xdev.timing.result import format_time

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
RECORD = re.compile(r"benchmarks/results/[\w.-]+\.json")
FIGURE = r"(?P<figure>\d[\d.,]*)(?P<unit> (?:ns|µs|ms|s|[MGT]B/s|times)\b| ?%)?"
MARK = re.compile(FIGURE + r"\s*<!-- (?P<program>\w+): (?P<what>.*?) -->", re.DOTALL)
RATES = {" TB/s": 1e12, " GB/s": 1e9, " MB/s": 1e6}
TIMES = (" ns", " µs", " ms", " s")


def time_text(seconds: float) -> str:
    """Return a time as in a terminal that has the sign for micro, wherever this runs.

    Examples
    --------
    >>> time_text(1.5e-6)
    '1.5 µs'
    """
    return format_time(seconds).replace(" us", " µs").replace("\u03bc", "µ")


def pages() -> list[Path]:
    """Return the texts that have figures; the pages of benchmarks are made of them."""
    texts = (ROOT / "docs").rglob("*.md")
    own = [path for path in texts if path.parent.name != "benchmarks"]
    return [ROOT / "README.md", *sorted(own)]


def marks(text: str) -> Iterator[tuple[re.Match[str], Path]]:
    """Yield each mark of a text and the record it is from.

    Raises
    ------
    ValueError
        No record is named before a mark.
    """
    for mark in MARK.finditer(text):
        named = RECORD.findall(text, 0, mark.start())
        if not named:
            message = f"no benchmarks/results/….json is named before {mark[0]!r}"
            raise ValueError(message)
        yield mark, ROOT / named[-1]


def expected(mark: re.Match[str], record: Path) -> str:
    """Return the figure and its unit as the record has them.

    Raises
    ------
    KeyError
        The record has no such program, or not exactly one such row.
    """
    program = json.loads(record.read_text(encoding="utf-8"))[mark["program"]]
    one, _, other = " ".join(mark["what"].split()).partition(" over ")
    value, unit = _value(program, one), mark["unit"] or ""
    if other:
        value /= _value(program, other)
    if unit in TIMES:
        return time_text(value)
    if unit in RATES:
        return f"{value / RATES[unit]:.3g}{unit}"
    if unit.endswith("%"):
        return f"{100 * value:.3g}{unit}"
    return f"{value:.{2 if value < 1 else 3}g}{unit}"


def _value(program: dict[str, Any], what: str) -> float:
    if what.startswith("/"):
        return float(reduce(operator.getitem, what[1:].split("/"), program))  # type: ignore[arg-type]
    name, *wanted = what.split("; ")
    facts = dict(each.split("=", 1) for each in wanted)
    size, field = facts.pop("bytes", None), facts.pop("show", None)
    facts["name"] = name
    rows = [
        row
        for row in program["rows"]
        if all(str(row.get(key)) == value for key, value in facts.items())
    ]
    if len(rows) != 1:
        message = f"{what!r} is said of {len(rows)} rows"
        raise KeyError(message)
    (row,) = rows
    if field is not None:
        return float(row[field])
    seconds = median(row["samples"])
    return seconds if size is None else int(size) * row["n"] / seconds


def corrected(text: str) -> str:
    """Return a text with its marked figures as the records have them."""
    parts, end = [], 0
    for mark, record in marks(text):
        stop = mark.end("unit") if mark["unit"] else mark.end("figure")
        parts += [text[end : mark.start()], expected(mark, record)]
        end = stop
    return "".join([*parts, text[end:]])


def correct() -> list[Path]:
    """Set the figures of all texts right; return the texts that changed."""
    changed = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        right = corrected(text)
        if right != text:
            page.write_text(right, encoding="utf-8")
            changed.append(page)
    return changed
