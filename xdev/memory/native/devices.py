"""The fronts of the CUDA devices, as a library's C functions find them."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, final

from xdev.memory.native import entries
from xdev.memory.native.immortals import immortal
from xdev.memory.native.operations import WORD

if TYPE_CHECKING:
    from xdev.memory.native.front import Front

FIRST_CORE = entries.CORES // WORD


@final
class Devices:
    """The array of words that is called ``devices`` in the entries.

    Parameters
    ----------
    count : int
        How many devices there are.
    stream : int
        The address of a C function that returns the current stream's handle, for a
        library that does not tell it.
    """

    def __init__(self, count: int, stream: int = 0) -> None:
        words = (ctypes.c_int64 * (FIRST_CORE + count))(count, stream)
        self._words = immortal(words)  # what the library holds outlives the bridge
        self.address = ctypes.addressof(words)

    def open(self, index: int, front: Front) -> None:
        """Serve a device from its front."""
        self._words[FIRST_CORE + index] = front.core

    def throw(self, function: int, *texts: bytes) -> None:
        """Report failures by a C++ function of the library.

        Its texts: where it is from, of a refusal, of a block that is not served.
        """
        buffers = [ctypes.create_string_buffer(each) for each in texts]
        addresses = [ctypes.addressof(immortal(each)) for each in buffers]
        at = entries.REFUSAL // WORD
        self._words[at : at + 4] = [function, *addresses]
