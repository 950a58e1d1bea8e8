"""The rows of a record in which a peer does the same as xdev, and in less time."""

from __future__ import annotations

from statistics import median
from typing import Any

from benchmarks.figures import time_text
from xdev.timing.verdict import MARGIN, markdown

# What else tells two tasks apart.
FACTS = ("what", "kind", "n")
INTO = " out="  # ends the name of a candidate that writes into an array that is there


def table(records: dict[str, Any]) -> str:
    """Return a table of Markdown: each task in which xdev's best is behind the best.

    Rows are of one task if their ``group`` or ``task``, or the name before ``": "``,
    and their other facts are the same; a peer is who is not called xdev.
    """
    cells = [["", "task", "xdev", "ahead of it", "xdev over it"]]
    for program, record in records.items():
        for task, times in by_task(record.get("rows", [])).items():
            ours = {k: v for k, v in times.items() if k.startswith("xdev")}
            peers = {k: v for k, v in times.items() if k not in ours}
            if not ours or not peers:
                continue
            best, ahead = min(ours.values()), min(peers, key=lambda name: peers[name])
            if best > MARGIN * peers[ahead]:
                other = f"{ahead}, {time_text(peers[ahead])}"
                over = f"{best / peers[ahead]:.3g}"
                cells.append([program, task, time_text(best), other, over])
    return markdown(cells) if cells[1:] else "Nowhere."


def by_task(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the median times of each task's candidates [s]."""
    tasks: dict[str, dict[str, float]] = {}
    for row in rows:
        group, candidate = row.get("group"), row.get("candidate")
        if group is None and "task" not in row:
            group, _, candidate = row.get("name", "").rpartition(": ")
        facts = [f"{key} {row[key]}" for key in FACTS if row.get(key) is not None]
        what = row.get("task") or group
        if not what or not isinstance(row.get("samples"), list):
            continue
        candidate = candidate or row["name"]
        into = ["into an array that is there"] if candidate.endswith(INTO) else []
        task = ", ".join([what, *facts, *into])
        times = tasks.setdefault(task, {})
        times[candidate.removesuffix(INTO)] = median(row["samples"])
    return tasks
