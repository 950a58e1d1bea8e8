"""What machine code can be connected to, once there is some: a kernel with its grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev._c_functions import Word, word_of

if TYPE_CHECKING:
    import ctypes

    from numpy.typing import NDArray

HEAD = 2  # words of a table before its rows
MOST = 64  # calls of one grid that are known at a time


class Called(Word):  # type: ignore[misc] # made in C
    """What machine code makes known calls of: :mod:`~xdev.compile.grid.quick`."""

    __slots__ = ("_table",)  # behind the word: it is where machine code looks
    _table: NDArray[np.int64]

    def connection(self) -> Connection:
        """Return what to connect machine code by, which does not keep this object."""
        self._table = np.zeros(HEAD + MOST, np.int64)
        return Connection(type(self), self._table, word_of(self))


@final
@dataclass(frozen=True, slots=True)
class Connection:
    """Where an object has what machine code needs; for as long as the object lives.

    Parameters
    ----------
    kind : type
        The object's class.
    table : int64 array
        Its rows' addresses.
    word : ctypes.c_void_p
        The address of what calls it.
    """

    kind: Any
    table: NDArray[np.int64]
    word: ctypes.c_void_p
