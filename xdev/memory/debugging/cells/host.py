"""Bytes in memory of this process, pageable or pinned."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Callable

PIECE = 1 << 20  # looked at in one go: Python's own memory holds a copy [B]


@final
class HostCells:
    """By address. Not by NumPy, whose own memory may come from the pool looked at."""

    def fill(self, address: int, nbytes: int, byte: int) -> None:
        """Set bytes."""
        ctypes.memset(address, byte, nbytes)

    def first_other(self, address: int, nbytes: int, byte: int) -> int | None:
        """Compare piece by piece."""
        return first_other(ctypes.string_at, address, nbytes, byte)


def first_other(
    read: Callable[[int, int], bytes], address: int, nbytes: int, byte: int
) -> int | None:
    """Return the offset of the first byte that is not ``byte``, None without one.

    Parameters
    ----------
    read : (address, nbytes) -> bytes
        Copies memory.
    """
    for start in range(0, nbytes, PIECE):
        found = read(address + start, min(PIECE, nbytes - start))
        if found != bytes((byte,)) * len(found):  # quick; the place is not
            return start + len(found) - len(found.lstrip(bytes((byte,))))
    return None
