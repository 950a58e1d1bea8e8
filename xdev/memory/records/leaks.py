"""Live blocks as people read them: each by itself, and those of one line together."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Iterable


@final
@dataclass(frozen=True, slots=True)
class Outstanding:
    """One live block.

    Parameters
    ----------
    where : str
        ``"file:line"`` of the first frame outside xdev and the array libraries.
    nbytes : int
        Its granted size; of NumPy's own memory, the size that was asked for [B].
    age : float or None
        Time since it was handed out [s]; None where it is not known.
    pool : str
        Whose memory it is.
    address : int or None
        Where it starts; None where it is not known.
    frames : tuple of str
        ``"file:line in function"``, innermost first.

    Examples
    --------
    >>> print(Outstanding("mine.py:7", 4096, 0.52, "cpu", 0x1000, ()))
    mine.py:7: 4,096 B of cpu, 0.5 s old
    """

    where: str
    nbytes: int
    age: float | None
    pool: str
    address: int | None
    frames: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.where}: {self.nbytes:,} B of {self.pool}{_aged([self])}"


@final
@dataclass(frozen=True, slots=True)
class OutstandingLine:
    """The live blocks of one pool that one line made.

    Parameters
    ----------
    where : str
        ``"file:line"``.
    pool : str
        Whose memory it is.
    blocks : tuple of Outstanding
        The largest first.

    Examples
    --------
    >>> old = Outstanding("mine.py:7", 4096, 3.0, "cpu", 0x1000, ())
    >>> new = Outstanding("mine.py:7", 1024, 0.5, "cpu", 0x3000, ())
    >>> print(OutstandingLine("mine.py:7", "cpu", (old, new)))
    mine.py:7: 2 blocks, 5,120 B of cpu, 0.5 to 3.0 s old
    """

    where: str
    pool: str
    blocks: tuple[Outstanding, ...]

    @property
    def count(self) -> int:
        """How many blocks."""
        return len(self.blocks)

    @property
    def nbytes(self) -> int:
        """What they have in all [B]."""
        return sum(block.nbytes for block in self.blocks)

    def __str__(self) -> str:
        if self.count == 1:
            return str(self.blocks[0])
        size = f"{self.count:,} blocks, {self.nbytes:,} B of {self.pool}"
        return f"{self.where}: {size}{_aged(self.blocks)}"


def _aged(blocks: Iterable[Outstanding]) -> str:
    ages = [block.age for block in blocks if block.age is not None]
    if not ages:
        return ""
    youngest, oldest = f"{min(ages):.1f}", f"{max(ages):.1f}"
    span = oldest if youngest == oldest else f"{youngest} to {oldest}"
    return f", {span} s old"


def by_line(blocks: Iterable[Outstanding]) -> list[OutstandingLine]:
    """Return the lines that made blocks, the one that holds the most first."""
    found: dict[tuple[str, str], list[Outstanding]] = {}
    for block in sorted(blocks, key=attrgetter("nbytes"), reverse=True):
        found.setdefault((block.where, block.pool), []).append(block)
    lines = [OutstandingLine(*key, tuple(mine)) for key, mine in found.items()]
    return sorted(lines, key=attrgetter("nbytes"), reverse=True)


def report(blocks: Iterable[Outstanding]) -> str:
    """Return one line of text a source line, under a line of their sum.

    Examples
    --------
    >>> print(report([Outstanding("mine.py:7", 4096, 0.52, "cpu", 0x1000, ())]))
    xdev: 1 live block, 4,096 B
      mine.py:7: 4,096 B of cpu, 0.5 s old
    >>> print(report([]))
    xdev: no live block
    """
    lines = by_line(blocks)
    count = sum(line.count for line in lines)
    if not count:
        return "xdev: no live block"
    total = sum(line.nbytes for line in lines)
    head = f"xdev: {count:,} live block{'s' * (count > 1)}, {total:,} B"
    return "\n  ".join((head, *map(str, lines)))
