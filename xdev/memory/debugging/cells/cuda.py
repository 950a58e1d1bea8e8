"""Bytes on a CUDA device, copied to the host to be looked at."""

from __future__ import annotations

import ctypes
from typing import final

from xdev import _optional
from xdev.memory.debugging.cells.host import first_other

TO_HOST = 2  # cudaMemcpyDeviceToHost


@final
class CudaCells:
    """Of one device. The calls wait, so that no stream is left out.

    Parameters
    ----------
    index : int
        Which device.
    """

    def __init__(self, index: int) -> None:
        self._index = index
        self._cuda = _optional.cupy().cuda

    def fill(self, address: int, nbytes: int, byte: int) -> None:
        """Set bytes, and wait: a stream may be one that the null stream does not."""
        with self._cuda.Device(self._index):
            self._cuda.runtime.memset(address, byte, nbytes)
            self._cuda.runtime.deviceSynchronize()

    def first_other(self, address: int, nbytes: int, byte: int) -> int | None:
        """Copy piece by piece, and compare on the host."""
        with self._cuda.Device(self._index):
            return first_other(self._read, address, nbytes, byte)

    def _read(self, address: int, nbytes: int) -> bytes:
        landing = ctypes.create_string_buffer(nbytes)
        at = ctypes.addressof(landing)
        self._cuda.runtime.memcpy(at, address, nbytes, TO_HOST)
        return landing.raw
