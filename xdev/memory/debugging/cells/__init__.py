"""Cells: the bytes of a source's memory, for the debug mode to fill and to look at.

Each file is one: memory of this process, a CUDA device's, a fake's.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["Cells"]


class Cells(Protocol):
    """The bytes at a source's addresses. No method allocates from a pool."""

    def fill(self, address: int, nbytes: int, byte: int) -> None:
        """Set ``nbytes`` bytes; they are set when this returns."""

    def first_other(self, address: int, nbytes: int, byte: int) -> int | None:
        """Return the offset of the first byte that is not ``byte``, None without one.

        Work that is queued on a device was waited for.
        """
