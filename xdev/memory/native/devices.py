"""The fronts of the CUDA devices, as a library's C functions find them."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, final

from xdev.memory.native.immortals import immortal
from xdev.memory.native.layout import CORES_AT, REFUSAL_AT

if TYPE_CHECKING:
    from xdev.memory.native.front import Front


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
        words = (ctypes.c_int64 * (CORES_AT + count))(count, stream)
        self._words = immortal(words)  # what the library holds outlives the bridge
        self.address = ctypes.addressof(words)

    def open(self, index: int, front: Front) -> None:
        """Serve a device from its front."""
        self._words[CORES_AT + index] = front.core

    def throw(self, function: int, *texts: bytes) -> None:
        """Report failures by a C++ function of the library.

        Its texts: where it is from, of a refusal, of a block that is not served.
        """
        buffers = [ctypes.create_string_buffer(each) for each in texts]
        addresses = [ctypes.addressof(immortal(each)) for each in buffers]
        self._words[REFUSAL_AT : REFUSAL_AT + 4] = [function, *addresses]
