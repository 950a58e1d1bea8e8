"""The tables of the ``facade`` program's page: what is behind, shares, and all rows."""

from __future__ import annotations

from statistics import median
from typing import Any

from benchmarks.figures import time_text
from xdev.timing.verdict import markdown

NEAR, FAR = 1.10, 2.0  # times the best peer's: what is behind, and far behind
LIMITS = (1.00, NEAR, 1.15)
Cases = dict[tuple[str, int], dict[str, dict[str, Any]]]


def cases(rows: list[dict[str, Any]]) -> Cases:
    """Return the rows of each case and size, by library."""
    found: Cases = {}
    for row in rows:
        found.setdefault((row["group"], row["n"]), {})[row["candidate"]] = row
    return found


def behind(rows: list[dict[str, Any]]) -> str:
    """Return the cases in which xdev takes longer than the best peer, worst first.

    A case in which xdev raised, or gave other values than a peer, stands before.
    """
    faults, slow = [], []
    for (group, n), each in cases(rows).items():
        ours = each["xdev"]
        said = [f"xdev: {ours['error']}"] if "error" in ours else []
        said += [f"{who}: {r['differs']}" for who, r in each.items() if "differs" in r]
        faults += [f"- {group}, n {n}: {'; '.join(said)}" for _ in said[:1]]
        if ours.get("ratio", 0) > NEAR:
            peers = [(r, _time(r)) for who, r in each.items() if who != "xdev"]
            best = min((t, r["candidate"]) for r, t in peers if t is not None)
            cells = [group, str(n), time_text(_time(ours) or 0)]
            cells += [f"{best[1]}, {time_text(best[0])}", f"{ours['ratio']:.2f}"]
            slow.append((ours["ratio"], cells))
    head = ["", "n", "xdev", "the best", "xdev over it"]
    worst = [cells for _, cells in sorted(slow, key=lambda pair: -pair[0])]
    table = markdown([head, *worst]) if worst else "Nothing."
    return "\n".join([*faults, *([""] if faults else []), table])


def shares(rows: list[dict[str, Any]]) -> str:
    """Return how many cases of each section and size are near the best peer's time."""
    ratios: dict[tuple[int, str], list[float]] = {}
    for row in rows:
        if "ratio" in row:
            for section in ("all", row["section"]):
                ratios.setdefault((row["n"], section), []).append(row["ratio"])
    limits = [f"at most {limit:.2f}" for limit in LIMITS]
    head = ["", "n", "rows", *limits, f"above {FAR:g}", "median"]
    cells = [head]
    for (n, section), each in sorted(ratios.items(), key=lambda item: -item[0][0]):
        within = (sum(r <= limit for r in each) / len(each) for limit in LIMITS)
        cells.append([section, str(n), str(len(each)), *map("{:.0%}".format, within)])
        cells[-1] += [str(sum(r > FAR for r in each)), f"{median(each):.2f}"]
    return markdown(cells)


def all_rows(rows: list[dict[str, Any]]) -> list[str]:
    """Return every case's times by section, and at the end how each library says it."""
    sections: dict[str, list[list[str]]] = {}
    calls: dict[tuple[str, ...], None] = {}
    names = list(dict.fromkeys(row["candidate"] for row in rows))
    for (group, n), each in cases(rows).items():
        cells = [group, str(n), *(_said(each.get(name)) for name in names)]
        ours = each["xdev"]
        cells.append(f"{ours['ratio']:.2f}" if "ratio" in ours else "")
        cells.append(time_text(ours["first_call"]) if "first_call" in ours else "")
        sections.setdefault(ours["section"], []).append(cells)
        if all(name in each for name in names):
            said = (each[name]["call"] for name in names)
            calls[tuple(f"`{call}`" if call else "" for call in said)] = None
    lines = []
    head = ["", "n", *names, "xdev over the best", "xdev's first call"]
    for section, cells in sections.items():
        lines += ["", f"## All rows: {section}", "", markdown([head, *cells])]
    return [*lines, "", "## The calls", "", markdown([names, *map(list, calls)])]


def _time(row: dict[str, Any]) -> float | None:
    return median(row["samples"]) if "samples" in row else None


def _said(row: dict[str, Any] | None) -> str:
    """Return a row's time, or why there is none."""
    seconds = _time(row) if row else None
    if seconds is None:
        return "" if row is None else " ".join(row["error"].split())[:80]
    return time_text(seconds)
