"""Rows of text cells as an aligned table, or as one of Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

WHOLE = 100  # from so many GB/s on without a point


def aligned(cells: Sequence[Sequence[str]]) -> str:
    """Return cells in columns, two spaces apart; the first row is the head.

    Examples
    --------
    >>> print(aligned([["", "time"], ["one", "2 ms"]]))
         time
    one  2 ms
    """
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)


def markdown(cells: Sequence[Sequence[str]]) -> str:
    r"""Return cells as a table of Markdown; the first row is the head.

    Examples
    --------
    >>> print(markdown([["", "time"], ["a | b", "2 ms"]]))
    | | time |
    | --- | --- |
    | a \| b | 2 ms |
    """
    head, *rows = ([cell.replace("|", r"\|") for cell in row] for row in cells)
    lines = (head, ["---"] * len(head), *rows)
    return "\n".join(f"| {' | '.join(row)} |".replace("|  |", "| |") for row in lines)


def bandwidth_text(rate: float) -> str:
    """Return bytes per second in GB/s, to three digits.

    Examples
    --------
    >>> bandwidth_text(4.371e12), bandwidth_text(2.5e7)
    ('4371 GB/s', '0.025 GB/s')
    """
    gigabytes = rate / 1e9
    return f"{gigabytes:.0f} GB/s" if gigabytes >= WHOLE else f"{gigabytes:.3g} GB/s"
