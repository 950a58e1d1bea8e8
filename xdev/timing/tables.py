"""Rows of text cells as an aligned table, or as one of Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.table import Table

WHOLE = 100  # from so many GB/s on without a point
GAP = 2  # spaces between columns
# Of verdicts, where a terminal has colours.
VERDICT = "verdict"  # the head of their column
COLOURS = {"faster": "green", "slower": "red", "unclear": "yellow"}


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


def coloured(cells: Sequence[Sequence[str]], width: int) -> Iterator[Table]:
    """Return cells as tables for ``rich``, in which verdicts have colours.

    Columns that do not fit beside the others stand in a table below, behind the
    first column once more.

    Parameters
    ----------
    cells : sequence of sequences of str
        The first row is the head, the first column the rows' names.
    width : int
        Of the terminal [characters].
    """
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    names, *columns = zip(*cells, strict=True)
    blocks, room = [], 0
    for column in columns:
        needed = GAP + max(map(cell_len, column))
        if needed > room:
            blocks.append([names])
            room = width - max(map(cell_len, names))
        blocks[-1].append(column)
        room -= needed
    for block in blocks:
        table = Table(box=None, pad_edge=False, padding=(0, GAP // 2))
        texts = [[Text(t, _colour(head, t)) for t in below] for head, *below in block]
        for head, *_ in block:
            table.add_column(Text(head), overflow="fold")
        for row in zip(*texts, strict=True):
            table.add_row(*row)
        yield table


def _colour(head: str, text: str) -> str:
    return COLOURS.get(text.partition(" ")[0], "") if head == VERDICT else ""


def bandwidth_text(rate: float) -> str:
    """Return bytes per second in GB/s, to three digits.

    Examples
    --------
    >>> bandwidth_text(4.371e12), bandwidth_text(2.5e7)
    ('4371 GB/s', '0.025 GB/s')
    """
    gigabytes = rate / 1e9
    return f"{gigabytes:.0f} GB/s" if gigabytes >= WHOLE else f"{gigabytes:.3g} GB/s"
