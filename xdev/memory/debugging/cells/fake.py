"""Bytes of memory that is not there: what was written where, as numbers."""

from __future__ import annotations

from typing import final


@final
class FakeCells:
    """Runs of equal bytes; what was never written is like anything.

    Examples
    --------
    >>> cells = FakeCells()
    >>> cells.fill(4096, 100, 0xDD)
    >>> cells.first_other(4096, 100, 0xDD)
    >>> cells.fill(4100, 1, 0)
    >>> cells.first_other(4096, 100, 0xDD)
    4
    """

    def __init__(self) -> None:
        self._runs: list[tuple[int, int, int]] = []  # start, stop, byte; disjoint

    def fill(self, address: int, nbytes: int, byte: int) -> None:
        """Set bytes."""
        stop = address + nbytes
        runs = [(address, stop, byte)]
        for start, end, old in self._runs:
            runs += [(start, min(end, address), old), (max(start, stop), end, old)]
        self._runs = sorted(run for run in runs if run[0] < run[1])

    def first_other(self, address: int, nbytes: int, byte: int) -> int | None:
        """Look at the runs that meet the range."""
        for start, end, found in self._runs:
            if found != byte and start < address + nbytes and end > address:
                return max(start, address) - address
        return None
