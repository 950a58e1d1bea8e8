"""A record of all programs as a page of Markdown, with plots, from the JSON alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import behind, facade_page
from benchmarks.figures import time_text
from xdev.memory.registry import text_of
from xdev.timing.sweeps import crossovers, draw
from xdev.timing.verdict import bandwidth_text, markdown

PAGES = Path(__file__).parents[1] / "docs" / "benchmarks"
# What a row says of its times, by key: the column's head, and how a value is written.
COLUMNS = {
    "ratio": ("ratio", "{:.3g}".format),
    "interval": ("95 %", lambda ends: "{:.3g} to {:.3g}".format(*ends)),
    "verdict": ("verdict", str),
    "bandwidth": ("bandwidth", bandwidth_text),
    "share_of_copy": ("of copy", "{:.0%}".format),
    "peak_bytes": ("peak", text_of),
    "allocations": ("allocations", str),
    "driver_allocations": ("driver", str),
    "task_cost": ("a task", time_text),
    "building": ("building", time_text),
    "processor": ("processor time", time_text),
    "processor_ratio": ("ratio of these", "{:.3g}".format),
}
# What is no column: it names the row, makes its times, or is told otherwise.
TOLD = {"name", "group", "candidate", "samples", "bandwidth", "copy_bandwidth"}
TOLD |= {"launch", "device", "notes", "loops", "mean", "std", "nbytes", "first_call"}
TOLD |= {"offsets"}  # NumPy's arrays', in the numpy_bridge program
# What a record says that is no fact of a line: it is told otherwise, or not at all.
BESIDE = {"about", "environment", "rows", "controls", "curve", "bytes"}
FACADE = "facade"  # the program whose rows have a page of their own
LONGEST = 250  # of the reason why somebody was left out [characters]


def write(path: Path, folder: Path = PAGES) -> Path:
    """Write the page of a record, and beside it its plots and the facade's page.

    Parameters
    ----------
    path : Path
        The record, ``benchmarks/results/<date>-<device>.json``.
    folder : Path
        Where the page goes.

    Returns
    -------
    Path
        The page: ``<device>.md``.
    """
    records = json.loads(path.read_text(encoding="utf-8"))
    name = re.sub(r"^\d{4}-\d\d-\d\d-", "", path.stem)
    folder.mkdir(exist_ok=True)
    lines = [f"# Benchmarks on {_machine(records)}", ""]
    lines += [f"From `benchmarks/results/{path.name}`, by `python -m benchmarks`."]
    others = {key: record for key, record in records.items() if key != FACADE}
    lines += ["", "## Where xdev is behind", "", behind.table(others)]
    before = ""
    for program, record in records.items():
        lines += ["", f"## {program}", ""]
        if "failed" in record:
            lines += [f"It did not finish: {record['failed']}."]
            continue
        where = _where(record)
        if program == FACADE:
            own = folder / f"{name}-{FACADE}.md"
            own.write_text(_of_facade(path, records), encoding="utf-8")
            lines += [f"On [a page of its own]({own.name}).", ""]
            lines += [facade_page.shares(record["rows"])]
            continue
        lines += [*_about(record), *([] if where == before else ["", where])]
        lines += [*_facts(record), *_tables(program, record, folder / name)]
        if "curve" in record:
            plot = folder / f"{name}-{program}.png"
            lines += ["", *_curve(record, plot)]
        before = where
    page = folder / f"{name}.md"
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return page


def _of_facade(path: Path, records: dict[str, Any]) -> str:
    """Return the page of the program that has a row for every function."""
    record = records[FACADE]
    rows = record["rows"]
    lines = [f"# The facade on {_machine(records)}, function by function", ""]
    lines += [f"From `benchmarks/results/{path.name}`, by `python -m benchmarks`."]
    lines += ["", "## What is behind", "", facade_page.behind(rows)]
    lines += ["", "## Shares", "", facade_page.shares(rows)]
    lines += ["", "## How it was measured", "", *_about(record), "", _where(record)]
    lines += [*_facts(record), *facade_page.all_rows(rows)]
    return "\n".join(lines) + "\n"


def _machine(records: dict[str, Any]) -> str:
    """Return the names of what was measured."""
    environment = next(r["environment"] for r in records.values() if "environment" in r)
    names = (environment["cuda"], environment["processor"])
    return " and ".join(
        dict.fromkeys(re.sub(r"\((R|TM)\)", "", name) for name in names if name)
    )


def _tables(program: str, record: dict[str, Any], stem: Path) -> list[str]:
    lines: list[str] = []
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in record["rows"]:
        groups.setdefault(row.get("group", ""), []).append(row)
    for number, (group, rows) in enumerate(groups.items()):
        lines += ["", *([f"**{group}**", ""] if group else []), _table(rows)]
        who = [(r.get("candidate") or r.get("name"), r.get("notes", ())) for r in rows]
        said = [f"- {name}: {note}" for name, notes in who for note in notes]
        lines += ["", *said] if said else []
        times = _over_sizes(rows)
        if times:
            plot = stem.with_name(f"{stem.name}-{program}-{number}.png")
            draw(times, plot)
            lines += ["", f"![{group or program} over n]({plot.name})", ""]
            lines += [f"- {said}" for said in crossovers(times)]
    return lines


def _curve(record: dict[str, Any], plot: Path) -> list[str]:
    """Draw bytes over time; return the line that fits each, and the picture."""
    from matplotlib.figure import Figure

    curve, cells = record["curve"], [["", "mean", "growth an hour", "flat"]]
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    minutes = [seconds / 60 for seconds in curve["seconds"]]
    for name, line in record["bytes"].items():
        axes.plot(minutes, [nbytes / 2**20 for nbytes in curve[name]], label=name)
        growth, error = (
            line[key] / 2**20 for key in ("growth an hour", "standard error")
        )
        grown = f"{growth:.3g} ± {error:.2g} MiB"
        cells.append(
            [name, text_of(line["mean"]), grown, "yes" if line["flat"] else "no"]
        )
    axes.set(xlabel="time [min]", ylabel="memory [MiB]", ylim=(0, None))
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    figure.savefig(plot, dpi=120)
    picture = f"![memory over time, {record['device']}]({plot.name})"
    return [markdown(cells), "", picture]


def _about(record: dict[str, Any]) -> list[str]:
    """Return the program's words on itself, without how it is called."""
    about = (record.get("about") or "").strip()
    words = re.sub(r"\n\n    python .*(\n {8}.*)*", "", about).replace("``", "`")
    return words.splitlines()


def _where(record: dict[str, Any]) -> str:
    """Return when it was measured, with which versions, and what was not installed."""
    environment = record["environment"]
    versions = environment["versions"]
    told = [f"{name} {each}" for name, each in versions.items() if each is not None]
    absent = [name for name, each in versions.items() if each is None]
    words = [environment["date"][:10], f"{environment['cores']} cores", *told]
    without = f" Without {', '.join(absent)}." if absent else ""
    return f"{', '.join(words)}.{without}"


def _facts(record: dict[str, Any]) -> list[str]:
    """Return what the record says beside its rows."""
    lines = [""]
    for key, value in record.items():
        if key == "left_out":
            lines += _reasons("left out", value)
        elif key not in BESIDE:
            lines += _said(key.replace("_", " "), value)
    return lines if lines[1:] else []


def _said(label: str, value: Any) -> list[str]:
    """Return a line for a value, and for each that a dict holds."""
    if not isinstance(value, dict):
        return [f"- {label}: {_plain(value)}"]
    pairs = ((f"{label} {key}".replace("_", " "), each) for key, each in value.items())
    return [line for pair in pairs for line in _said(*pair)]


def _reasons(who: str, why: Any) -> list[str]:
    """Return a line for each peer or device that was left out, cut where too long."""
    if isinstance(why, dict):
        pairs = [(f"{who} {name}", each) for name, each in why.items()]
        return [line for pair in pairs for line in _reasons(*pair)]
    text = " ".join(str(why).split())
    return [f"- {who}: {text if len(text) <= LONGEST else text[:LONGEST] + '…'}"]


def _table(rows: list[dict[str, Any]]) -> str:
    rows = [_with_share(row) for row in rows]
    sampled = any(isinstance(row.get("samples"), list) for row in rows)
    chosen = [k for k in COLUMNS if any(row.get(k) is not None for row in rows)]
    others = dict.fromkeys(k for row in rows for k, v in row.items() if _told(k, v))
    head = ["", *(key.replace("_", " ") for key in others)]
    head += ["median", "shortest to longest"] if sampled else []
    head += [COLUMNS[key][0] for key in chosen]
    cells = [head]
    for row in map(_without_itself, rows):
        line = [row.get("candidate") or row.get("name", "")]
        line += [_plain(row.get(key)) for key in others]
        line += _times(row.get("samples")) if sampled else []
        line += [_cell(key, row.get(key)) for key in chosen]
        cells.append(line)
    return markdown(cells)


def _with_share(row: dict[str, Any]) -> dict[str, Any]:
    if row.get("bandwidth") and row.get("copy_bandwidth"):
        row = row | {"share_of_copy": row["bandwidth"] / row["copy_bandwidth"]}
    return row


def _without_itself(row: dict[str, Any]) -> dict[str, Any]:
    """Leave out that the baseline of a comparison is the same as itself."""
    if row.get("interval") == [1, 1]:
        row = {k: v for k, v in row.items() if k not in ("interval", "verdict")}
    return row


def _told(key: str, value: object) -> bool:
    if key in TOLD or key in COLUMNS:
        return False
    return isinstance(value, str | int | float | list) and value is not False


def _times(samples: object) -> list[str]:
    if not isinstance(samples, list):
        return ["", ""]
    low, middle, high = (time_text(of(samples)) for of in (min, median, max))
    return [middle, f"{low} to {high}"]


def _cell(key: str, value: Any) -> str:
    return "" if value is None else str(COLUMNS[key][1](value))


def _plain(value: object) -> str:
    if isinstance(value, list):  # of several runs
        return " to ".join(dict.fromkeys(map(_plain, (min(value), max(value)))))
    if isinstance(value, float):
        return f"{value:.3g}"
    return "" if value is None else f"{value}"


def _over_sizes(rows: list[dict[str, Any]]) -> dict[str, dict[int, list[float]]]:
    """Return the times that a plot shows: of candidates at several sizes."""
    times: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        if "candidate" in row and "n" in row:
            times.setdefault(row["candidate"], {})[row["n"]] = row["samples"]
    return times if any(len(sizes) > 1 for sizes in times.values()) else {}
