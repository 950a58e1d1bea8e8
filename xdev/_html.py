"""What a notebook shows: tables, and plots as SVG, which need no other library."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Bar = tuple[str, Sequence[float], Sequence[float], str]

COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2")
WIDTH = 720  # of a plot [px], as all that follow
LETTER, LINE = 7, 22  # of text at 12 px
BAR = 14
STYLE = "max-width:100%;height:auto;font:12px sans-serif"
CELL = 'style="text-align:left"'
LONGEST = 40  # of a name beside a plot [letters]


def escape(text: str) -> str:
    """Return a text as HTML has it between tags; Python's own takes 1 ms to import."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def table(cells: Sequence[Sequence[str]]) -> str:
    """Return a table; the first row is the head."""
    head, *rows = ([escape(cell) for cell in row] for row in cells)
    titles = "".join(f"<th {CELL}>{cell}</th>" for cell in head)
    lines = "".join(
        f"<tr>{''.join(f'<td {CELL}>{cell}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table>"


def notes(lines: Iterable[str]) -> str:
    """Return a list of sentences, nothing of none."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def preformatted(text: str) -> str:
    """Return a text as it stands, in letters of one width."""
    return f"<pre>{escape(text)}</pre>"


def bars(title: str, rows: Sequence[Bar]) -> str:
    """Return a plot of bars, one above the other; the largest tick is at its end.

    A row has a bar's label, the lengths of its parts side by side, where ticks stand,
    and the text at its end.
    """
    names = [x if len(x) <= LONGEST else f"{x[: LONGEST - 1]}…" for x, *_ in rows]
    left = LETTER * max(map(len, names), default=0) + LETTER
    right = LETTER * max((len(text) for *_, text in rows), default=0) + LETTER
    longest = max((at for _, _, ticks, _ in rows for at in ticks), default=0)
    scale = max(WIDTH - left - right, BAR) / (longest or 1)
    body = []
    for row, (_, parts, ticks, text) in enumerate(rows):
        top = LINE * row + (LINE - BAR) // 2
        base, x = top + BAR - 3, float(left)
        body.append(_text(left - LETTER, base, names[row], "end"))
        for part, colour in zip(parts, cycle(COLOURS), strict=False):
            body.append(_rectangle(x, top, scale * part, colour))
            x += scale * part
        body += [_rectangle(left + scale * at, top, 1, "currentColor") for at in ticks]
        at = max(x, left + scale * max(ticks, default=0))
        body.append(_text(at + LETTER, base, text, "start"))
    height = LINE * len(rows)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" style="{STYLE}" '
        f'fill="currentColor"><title>{escape(title)}</title>{"".join(body)}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    at = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f"<text {at}>{escape(text)}</text>"


def _rectangle(x: float, y: float, width: float, colour: str) -> str:
    at = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BAR}"'
    return f'<rect {at} fill="{colour}"/>'
