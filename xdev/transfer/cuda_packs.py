"""Many small arrays to and from CUDA in few copies, on the current stream.

An upload is written into pinned memory and crosses in one copy a pack; the results are
views of it. A download is gathered by a kernel and crosses likewise; the results are
arrays of their own.
"""

from __future__ import annotations

from collections import deque
from functools import cache
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional, memory
from xdev.device import Device, registry
from xdev.device.copies import announce
from xdev.memory.device_arrays import array_maker
from xdev.transfer.cuda import CHARS
from xdev.transfer.lifetimes import keep
from xdev.transfer.packs import packs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.transfer.packs import Pack

SMALL = 64 << 10  # larger arrays fill the bus alone [B]
IN_FLIGHT = 16  # packs whose pinned memory is in use at a time
HOST = Device("cpu")

#: One block of threads an array; a row is its address, its offset and its size.
GATHER = r"""
extern "C" __global__ void xdev_gather(const long long* table, char* pack) {
    const long long* row = table + 3 * (long long)blockIdx.x;
    const char* from = (const char*)row[0];
    char* to = pack + row[1];
    const long long nbytes = row[2];
    const long long words = row[0] % 16 ? 0 : nbytes / 16;
    for (long long i = threadIdx.x; i < words; i += blockDim.x) {
        ((uint4*)to)[i] = ((const uint4*)from)[i];
    }
    for (long long i = 16 * words + threadIdx.x; i < nbytes; i += blockDim.x) {
        to[i] = from[i];
    }
}
"""
THREADS = 128
ROW = 24  # three integers [B]


def is_upload(x: Any) -> bool:
    """Say whether a host array is for a pack."""
    return type(x) is np.ndarray and x.nbytes <= SMALL and x.dtype.char in CHARS


def is_download(x: Any) -> bool:
    """Say whether an array of a CUDA device is for a pack."""
    ours = type(x) is _optional.cupy().ndarray
    return ours and x.nbytes <= SMALL and x.dtype.char in CHARS


def upload(arrays: Sequence[Any], target: Device) -> list[Any]:
    """Copy host arrays to CUDA; they may be changed as soon as this returns.

    Parameters
    ----------
    arrays : sequence of numpy.ndarray
        For each, :func:`is_upload` is true; any strides, any byte order.
    target : Device
        A CUDA device.

    Returns
    -------
    list of cupy.ndarray
        Views of packs. What Fortran's order has stays so.

    Raises
    ------
    XdevError
        A :func:`~xdev.transfer_guard` disallows the copy.
    """
    sizes = [x.nbytes for x in arrays]
    announce(HOST, target, sum(sizes), copies=len(sizes))
    cuda, make = _optional.cupy().cuda, array_maker()
    moved: list[Any] = []
    in_flight: deque[Any] = deque()
    with registry.backend("cuda").use(target.index):
        queue = cuda.get_current_stream()
        for pack in packs(sizes):
            if len(in_flight) == IN_FLIGHT:
                in_flight.popleft().synchronize()
            staging, block = _Staging(pack.nbytes), cuda.alloc(pack.nbytes)
            for x, at in zip(arrays[pack.members], pack.offsets, strict=True):
                staging.put(at, x)
                order = "F" if x.flags.fnc else "C"
                moved.append(make(x.shape, x.dtype.char, order, block + at))
            block.copy_from_host_async(staging.address, pack.nbytes)
            in_flight.append(queue.record(cuda.Event(disable_timing=True)))
            keep(queue, target.index, staging.bytes)
    return moved


def download(arrays: Sequence[Any], source: Device) -> list[Any]:
    """Copy CUDA arrays to the host; the values are there when this returns.

    Parameters
    ----------
    arrays : sequence of cupy.ndarray
        For each, :func:`is_download` is true; any strides.
    source : Device
        Theirs.

    Returns
    -------
    list of numpy.ndarray
        What Fortran's order has stays so.

    Raises
    ------
    XdevError
        A :func:`~xdev.transfer_guard` disallows the copy.
    """
    sizes = [x.nbytes for x in arrays]
    announce(source, HOST, sum(sizes), copies=len(sizes))
    cupy = _optional.cupy()
    moved: list[Any] = []
    with registry.backend("cuda").use(source.index):
        queue, todo = cupy.cuda.get_current_stream(), packs(sizes)
        for first in range(0, len(todo), IN_FLIGHT):
            landings: list[tuple[Pack, _Landing]] = []
            try:
                landings.extend(
                    (pack, _Landing(pack, arrays[pack.members]))
                    for pack in todo[first : first + IN_FLIGHT]
                )
            finally:  # after an error too: what the device still writes to is held
                queue.synchronize()
            for pack, landing in landings:
                for at, x in zip(pack.offsets, arrays[pack.members], strict=True):
                    moved.append(landing.staging.get(at, x))
    return moved


@final
class _Staging:
    """The pinned memory of one pack, as elements of any dtype."""

    def __init__(self, nbytes: int) -> None:
        self.bytes = memory.pinned_array((nbytes,), np.dtype(np.uint8))
        self.address = int(self.bytes.ctypes.data)
        self._views: dict[str, Any] = {}

    def put(self, offset: int, x: Any) -> None:
        """Write an array's elements, in the machine's byte order."""
        view, at = self._elements(x.dtype.char), offset // x.itemsize
        view[at : at + x.size] = x.reshape(-1, order="A")

    def get(self, offset: int, like: Any) -> Any:
        """Return what lies there as an array of its own."""
        turned = like.flags.fnc
        found = memory.host_array(like.shape, like.dtype, "F" if turned else "C")
        flat = (found.T if turned else found).reshape(-1)
        at = offset // like.itemsize
        flat[:] = self._elements(like.dtype.char)[at : at + like.size]
        return found

    def _elements(self, char: str) -> Any:
        if char not in self._views:
            self._views[char] = self.bytes.view(char)
        return self._views[char]


@final
class _Landing:
    """One pack on its way to the host, with all memory that it needs until then."""

    def __init__(self, pack: Pack, arrays: Sequence[Any]) -> None:
        cupy = _optional.cupy()
        self._held = [cupy.ascontiguousarray(x.T if x.flags.fnc else x) for x in arrays]
        rows = [
            (x.data.ptr, at, x.nbytes)
            for x, at in zip(self._held, pack.offsets, strict=True)
        ]
        self._table = _Staging(ROW * len(rows))
        self._table.put(0, np.array(rows, np.int64))
        self._rows = cupy.cuda.alloc(ROW * len(rows))
        self._block = cupy.cuda.alloc(pack.nbytes)
        self._rows.copy_from_host_async(self._table.address, ROW * len(rows))
        arguments = (self._rows.ptr, self._block.ptr)
        _kernel()((len(rows),), (THREADS,), arguments)
        self.staging = _Staging(pack.nbytes)
        self._block.copy_to_host_async(self.staging.address, pack.nbytes)


@cache
def _kernel() -> Any:
    return _optional.cupy().RawKernel(GATHER, "xdev_gather")
