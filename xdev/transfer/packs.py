"""Many small arrays to and from CUDA in few copies, on the current stream.

An upload is written into pinned memory and crosses in one copy a pack; the results are
views of it. A download is gathered by a kernel and crosses likewise; the results are
arrays of their own.
"""

from __future__ import annotations

from collections import deque
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from xdev import _optional, memory
from xdev.device import Device, registry
from xdev.device.copies import announce
from xdev.memory.arrays import array_maker
from xdev.memory.blocks import round_up
from xdev.transfer.cuda import CHARS
from xdev.transfer.exporters import copy_on_host, order_of
from xdev.transfer.pinned import keep

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The most that a pack holds, and so the most that one survivor of it keeps [B].
LARGEST = 1 << 20
FEW = 2  # a lone small array gains nothing by a pack
ALIGNMENT = 256  # of an array in a pack: what any kernel wants [B]
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


def packed(arrays: Sequence[Any], target: Device) -> dict[int, Any]:
    """Move the arrays that cross to or from CUDA in packs.

    Parameters
    ----------
    arrays : sequence of array
        Of any library and device.
    target : Device
        Where to: CUDA, or the CPU. There is a CuPy.

    Returns
    -------
    dict
        What they became, by their number; the others are to be moved one by one.
    """
    up = target.kind == "cuda"
    kind: Any = np.ndarray if up else _optional.cupy().ndarray
    groups: dict[int, list[int]] = {}  # by the index of the CUDA device
    for number, x in enumerate(arrays):
        if type(x) is kind and x.nbytes <= SMALL and x.dtype.char in CHARS:
            index = target.index if up else x.data.device_id
            groups.setdefault(index, []).append(number)
    cross = upload if up else download
    moved: dict[int, Any] = {}
    for index, numbers in groups.items():
        if len(numbers) >= FEW:
            members = [arrays[number] for number in numbers]
            moved |= zip(numbers, cross(members, Device(f"cuda:{index}")), strict=True)
    return moved


class Pack(NamedTuple):
    """Consecutive arrays that cross together.

    Attributes
    ----------
    members : slice
        Which arrays.
    offsets : list of int
        Where each begins [B].
    nbytes : int
        The size of the pack, at least one alignment [B].
    """

    members: slice
    offsets: list[int]
    nbytes: int


def packs(sizes: Sequence[int]) -> list[Pack]:
    """Lay out arrays in order; one that is too large for a pack has one of its own.

    Parameters
    ----------
    sizes : sequence of int
        Of each array [B].

    Examples
    --------
    >>> packs([100, 300, 8])
    [Pack(members=slice(0, 3, None), offsets=[0, 256, 768], nbytes=1024)]
    """
    made: list[Pack] = []
    first, offsets, end = 0, list[int](), 0
    for number, nbytes in enumerate([*sizes, LARGEST]):  # the one more ends the last
        room = max(ALIGNMENT, round_up(nbytes, ALIGNMENT))
        if offsets and end + room > LARGEST:
            made.append(Pack(slice(first, number), offsets, end))
            first, offsets, end = number, [], 0
        offsets.append(end)
        end += room
    return made


def upload(arrays: Sequence[Any], target: Device) -> list[Any]:
    """Copy host arrays to CUDA; they may be changed as soon as this returns.

    Parameters
    ----------
    arrays : sequence of numpy.ndarray
        Of CuPy's dtypes; any strides, any byte order.
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
            staging, block = _pinned(pack.nbytes), cuda.alloc(pack.nbytes)
            for x, at in zip(arrays[pack.members], pack.offsets, strict=True):
                order = order_of(x)
                kind = x.dtype.char  # in the machine's byte order
                np.ndarray(x.shape, kind, staging, at, order=order)[...] = x
                moved.append(make(x.shape, kind, order, block + at))
            block.copy_from_host_async(staging.ctypes.data, pack.nbytes)
            in_flight.append(queue.record(cuda.Event(disable_timing=True)))
            keep(queue, target.index, staging)
    return moved


def download(arrays: Sequence[Any], source: Device) -> list[Any]:
    """Copy CUDA arrays to the host; the values are there when this returns.

    Parameters
    ----------
    arrays : sequence of cupy.ndarray
        Any strides.
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
            under_way: list[tuple[Pack, Any, Any]] = []
            try:
                under_way.extend(
                    (pack, *_gathered(pack, arrays[pack.members]))
                    for pack in todo[first : first + IN_FLIGHT]
                )
            finally:  # after an error too: what the device still writes to is held
                queue.synchronize()
            for pack, staging, _ in under_way:
                for x, at in zip(arrays[pack.members], pack.offsets, strict=True):
                    order = order_of(x)
                    values = np.ndarray(x.shape, x.dtype, staging, at, order=order)
                    moved.append(copy_on_host(values, None))
    return moved


def _pinned(nbytes: int) -> Any:
    return memory.pinned_array((nbytes,), np.dtype(np.uint8))


def _gathered(pack: Pack, arrays: Sequence[Any]) -> tuple[Any, Any]:
    """Queue the download of a pack; return where it arrives, and what it needs."""
    cupy = _optional.cupy()
    held = [cupy.ascontiguousarray(x.T if x.flags.fnc else x) for x in arrays]
    # Pinned memory: the kernel reads it there.
    table = memory.pinned_array((len(held), 3), np.dtype(np.int64))
    rows = zip(held, pack.offsets, strict=True)
    table[...] = [(x.data.ptr, at, x.nbytes) for x, at in rows]
    block, staging = cupy.cuda.alloc(pack.nbytes), _pinned(pack.nbytes)
    _kernel()((len(held),), (THREADS,), (table.ctypes.data, block.ptr))
    block.copy_to_host_async(staging.ctypes.data, pack.nbytes)
    return staging, (held, table, block)


@cache
def _kernel() -> Any:
    return _optional.cupy().RawKernel(GATHER, "xdev_gather")
