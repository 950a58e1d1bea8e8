"""Copies into, out of and between CUDA devices, queued on one stream.

Packed, in the machine's byte order, and pinned or small: one call of the driver. Other
memory is staged (:mod:`xdev.transfer.staging`).

Many small arrays cross in few copies. An upload is written into pinned memory and
crosses in one copy a pack; the results are views of it. A download is gathered by a
kernel and crosses likewise; the results are arrays of their own.
"""

from __future__ import annotations

from collections import deque
from contextlib import nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from xdev import _optional
from xdev.compile.formulas import is_bfloat16
from xdev.device import Device, registry
from xdev.device.choice import CPU
from xdev.device.copies import announce, guards
from xdev.errors import CaptureError
from xdev.memory.arrays import PINNED, array_maker, host_array, mark_uses, pinned_array
from xdev.memory.blocks import round_up
from xdev.memory.streams import live_streams
from xdev.transfer import staging
from xdev.transfer.copies import short_ways
from xdev.transfer.exporters import (
    CudaExport,
    copy_on_host,
    host_values,
    order_of,
    shared,
)
from xdev.transfer.pinned import keep, leased_chunk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from xdev.device import Stream

#: The dtypes that CuPy has kernels for, besides ml_dtypes' bfloat16.
CHARS = frozenset("?bhilqBHILQefdFD")
#: cudaDevAttrPageableMemoryAccessUsesHostPageTables: where a device has it, as in Grace
#: Hopper, the driver's own copy of pageable memory may be late, so all is staged.
HOST_PAGE_TABLES = 100
LEGACY = 1  # the null stream's name in __cuda_array_interface__, where 0 is not allowed
NOTHING = nullcontext()  # in place of a stream
#: The most that a pack holds, and so the most that one survivor of it keeps [B].
LARGEST = 1 << 20
FEW = 2  # a lone small array gains nothing by a pack
ALIGNMENT = 256  # of an array in a pack: what any kernel wants [B]
IN_PACKS = 64 << 10  # larger arrays fill the bus alone [B]
IN_FLIGHT = 16  # packs whose pinned memory is in use at a time

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


def _prepare() -> None:
    """Choose by the devices which ways small copies go, at CUDA's first use."""
    cupy, count = _optional.cupy(), registry.backend("cuda").count()
    ask = cupy.cuda.runtime.deviceGetAttribute
    if any(ask(HOST_PAGE_TABLES, index) for index in range(count)):
        staging.DIRECT = staging.SMALL = 0
    short_ways[cupy.ndarray] = fetch


def check(dtype: np.dtype[Any], target: Device) -> None:
    """Raise TypeError for a dtype that CuPy cannot compute with."""
    if dtype.char not in CHARS and not is_bfloat16(dtype):
        if dtype.names:
            way = f'move its fields one by one, as x["{dtype.names[0]}"]'
        elif dtype.kind in "SUT":
            way = (
                "leave text out, or encode it, as numpy.unique(x, return_inverse=True)"
                "[1] does"
            )
        else:
            kind = "int64" if dtype.kind in "mM" else "float32"
            way = f'convert it first, as in x.astype("{kind}")'
        raise TypeError(f"{target} has no arrays of dtype {dtype}: {way}")


def adopt(x: Any, target: Device) -> Any:
    """Return the same memory as a CuPy array, after the work of its own stream."""
    if isinstance(x, _optional.cupy().ndarray):
        return x
    with _current(target):
        return imported(_queue(), x)[0]


def copy(
    x: Any,
    source: Device,
    target: Device,
    stream: Stream | None,
    non_blocking: bool,
    out: Any,
) -> Any:
    """Copy from or to the host, between two CUDA devices, or on one."""
    act: Callable[[Any, int, bool, Any], Any] = _copy_on_one
    device = target
    if source.type == "cpu":
        act = _upload
    elif target.type == "cpu":
        act, device = _download, source
    elif source != target:
        return _copy_to_peer(x, source, target, stream, non_blocking, out)
    here = _optional.cupy().cuda.runtime.getDevice() == device.index
    if here and stream is None:  # a context would take 1 us
        return act(x, device.index, non_blocking, out)
    with _current(device), stream or NOTHING:
        out = act(x, device.index, non_blocking, out)
        if stream is not None and not non_blocking:
            _queue().synchronize()
    return out


def _upload(x: Any, index: int, non_blocking: bool, out: Any) -> Any:
    """Copy an array of the host; what is laid out in Fortran's order stays so."""
    values = host_values(x)
    turned = values.flags.fnc
    host = values.T if turned else values
    queue = _host_queue()
    destination, owner = imported(queue, out)
    dtype = values.dtype.newbyteorder("=") if destination is None else destination.dtype
    packed = _landing(destination, turned, host.shape, dtype)
    used: list[Any] = []  # what the copy still uses when this returns
    if host.size:
        small = packed.nbytes <= (staging.SMALL if non_blocking else staging.DIRECT)
        if small:
            host = host.astype(dtype, "C", "same_kind", copy=False)
        alike = host.flags.c_contiguous and host.dtype == dtype
        if alike and _is_pinned(host):
            used = [host]
        if used or small:
            _copy_async(host, packed, queue.ptr, up=True)
        else:
            used = [staging.copy(host, packed, queue, index, up=True)]
    out = _landed(packed, turned, destination, out)
    if owner is not None:
        order(queue.ptr, owner)
    if non_blocking:
        keep(queue, index, *used)
    elif used:
        queue.synchronize()
    return out


def _download(x: Any, index: int, non_blocking: bool, out: Any) -> Any:
    """Copy an array into host memory; Fortran's order stays so."""
    queue = _host_queue()
    there, owner = imported(queue, x)
    pageable = out is None and not non_blocking
    if out is None:
        make = host_array if pageable else pinned_array
        out = make(there.shape, there.dtype, order_of(there))
    values = shared(out)
    turned = values.flags.fnc
    host = values.T if turned else values
    if host.size:
        packed = _packed(there.T if turned else there)
        alike = host.flags.c_contiguous and host.dtype == packed.dtype
        pinned = alike and not pageable and _is_pinned(host)
        if pinned or (alike and packed.nbytes <= staging.DIRECT):
            _copy_async(host, packed, queue.ptr, up=False)
        else:
            staging.copy(host, packed, queue, index, up=False)
        if pinned and non_blocking:
            keep(queue, index, there, values)
        elif pinned:
            queue.synchronize()
    if owner is not None:
        order(queue.ptr, owner)
    return out


def _copy_async(host: Any, packed: Any, stream: int, *, up: bool) -> None:
    """Queue one copy of the driver's between arrays that are packed alike."""
    runtime = _optional.cupy().cuda.runtime
    here, there = host.ctypes.data, packed.data.ptr
    to, origin = (there, here) if up else (here, there)
    kind = runtime.memcpyHostToDevice if up else runtime.memcpyDeviceToHost
    runtime.memcpyAsync(to, origin, packed.nbytes, kind, stream)


def _is_pinned(host: np.ndarray[Any, Any]) -> bool:
    """Say whether host memory is pinned, by xdev or by others."""
    if leased_chunk(host) is not None:  # quicker than to ask the driver
        return True
    ask = _optional.cupy().cuda.runtime.pointerGetAttributes
    return bool(ask(host.ctypes.data).type == PINNED)


def _copy_on_one(x: Any, index: int, _: bool, out: Any) -> Any:
    """Copy on one device; that is only queued."""
    cupy, queue = _optional.cupy(), _queue()
    origin, giver = imported(queue, x)
    destination, taker = imported(queue, out)
    if destination is None:
        out = cupy.empty(origin.shape, origin.dtype, order_of(origin))
        cupy.copyto(out, origin)
    else:
        overlap = cupy.may_share_memory(destination, origin)
        cupy.copyto(destination, origin.copy() if overlap else origin)
    for owner in (taker, giver):
        if owner is not None:
            order(queue.ptr, owner)
    keep(queue, index, origin)
    return out


def _copy_to_peer(
    x: Any,
    source: Device,
    target: Device,
    stream: Stream | None,
    non_blocking: bool,
    out: Any,
) -> Any:
    """Copy on a stream of the target; to the source it is work of its current stream.

    So the source's memory, dropped, is used again only after the copy.
    """
    cupy = _optional.cupy()
    with _current(source):
        before = _queue()
        origin, giver = imported(before, x)
        turned = origin.flags.fnc
        packed = _packed(origin.T if turned else origin)
        ready = before.record(cupy.cuda.Event(disable_timing=True))
        with _current(target), stream or NOTHING:
            queue = _queue()
            destination, taker = imported(queue, out)
            queue.wait_event(ready)
            there = _landing(destination, turned, packed.shape, packed.dtype)
            there.data.copy_from_device_async(packed.data, packed.nbytes, queue)
            done = queue.record(cupy.cuda.Event(disable_timing=True))
            out = _landed(there, turned, destination, out)
            if taker is not None:
                order(queue.ptr, taker)
            if stream is not None and not non_blocking:
                queue.synchronize()
        before.wait_event(done)
        if giver is not None:
            order(before.ptr, giver)
        keep(before, source.index, origin)
    return out


def _landing(destination: Any, turned: bool, shape: Any, dtype: Any) -> Any:
    """Return an array in C order to copy into: the destination, if it is one."""
    if destination is not None:
        there = destination.T if turned else destination
        if there.flags.c_contiguous and there.dtype == dtype:
            return there
    return array_maker()(shape, dtype)


def _landed(there: Any, turned: bool, destination: Any, out: Any) -> Any:
    """Return the result of a copy that is in an array in C order."""
    there = there.T if turned else there
    if destination is None:
        return there
    if destination.data.ptr != there.data.ptr:
        _optional.cupy().copyto(destination, there)
    return out


def _current(device: Device) -> AbstractContextManager[Any]:
    """Return what makes a device CuPy's current one, if it is not."""
    if _optional.cupy().cuda.runtime.getDevice() == device.index:
        return NOTHING
    return registry.backend("cuda").use(device.index)


def _queue() -> Any:
    """Return CuPy's current stream."""
    return _optional.cupy().cuda.get_current_stream()


def _host_queue() -> Any:
    """Return CuPy's current stream for a copy from or to the host.

    None is captured in a graph: the driver would record it, and repeat it with host
    memory that is others' by then.
    """
    queue = _optional.cupy().cuda.get_current_stream()
    if live_streams.captured and queue.is_capturing():
        raise CaptureError(
            "a graph has no copies between the host and the device: make them before "
            "it is captured, or after a replay"
        )
    return queue


def _packed(x: Any) -> Any:
    """Return an array's values in C order; CuPy makes a 0-d array 1-d."""
    if x.flags.c_contiguous:
        return x
    return _optional.cupy().ascontiguousarray(x).reshape(x.shape)


def imported(queue: Any, x: Any) -> tuple[Any, int | None]:
    """Take over an array for work on the current stream; None stays None.

    The work comes after that of the array's own stream, which is returned as well: its
    next work is to come after ours. It is all by events, the host waits for nothing.
    """
    if x is None:
        return None, None
    cupy, taken, other = _optional.cupy(), x, None
    if not isinstance(x, cupy.ndarray):
        interface = getattr(x, "__cuda_array_interface__", None)
        other = None if interface is None else interface.get("stream")
        if other is None and hasattr(
            x, "__dlpack__"
        ):  # its exporter orders the streams
            taken = cupy.from_dlpack(x)
        else:
            taken = cupy.asarray(CudaExport(x, ordered=True))
    if other == (queue.ptr or LEGACY):
        other = None
    mark_uses((x,), stream=queue)
    if other is not None:
        order(other, queue.ptr)
    return taken, other


def order(first: int, then: int) -> None:
    """Let the later work of one stream wait for the work queued on another so far."""
    cuda = _optional.cupy().cuda
    event = cuda.Event(disable_timing=True)
    cuda.runtime.eventRecord(event.ptr, first)
    cuda.runtime.streamWaitEvent(then, event.ptr)


def fetch(x: Any) -> Any:
    """Return a CuPy array's values in host memory, or None where it takes more.

    What this module sees to for all copies takes 5 us besides the driver's time, a
    third of a small copy's.

    Parameters
    ----------
    x : cupy.ndarray
        Any.

    Returns
    -------
    numpy.ndarray or None
        Complete: a copy into pageable memory is waited for by the driver.
    """
    if live_streams.captured or guards.get():
        return None
    nbytes, data = x.nbytes, x.data
    if not 0 < nbytes <= staging.DIRECT or not x.flags.c_contiguous:
        return None
    queue = _queue()
    if data.device_id != _optional.cupy().cuda.runtime.getDevice():
        return None
    if live_streams.several or queue.ptr:
        mark_uses((x,), stream=queue)
    out = host_array(x.shape, x.dtype)
    _copy_async(out, x, queue.ptr, up=False)
    return out


# -- many small arrays ----------------------------------------------------------------


def move_in_packs(arrays: Sequence[Any], target: Device) -> dict[int, Any]:
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
        if type(x) is kind and x.nbytes <= IN_PACKS and x.dtype.char in CHARS:
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
    laid_out: list[Pack] = []
    first, offsets, end = 0, list[int](), 0
    for number, nbytes in enumerate([*sizes, LARGEST]):  # the one more ends the last
        room = max(ALIGNMENT, round_up(nbytes, ALIGNMENT))
        if offsets and end + room > LARGEST:
            laid_out.append(Pack(slice(first, number), offsets, end))
            first, offsets, end = number, [], 0
        offsets.append(end)
        end += room
    return laid_out


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
    announce(CPU, target, sum(sizes), copies=len(sizes))
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
    announce(source, CPU, sum(sizes), copies=len(sizes))
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
    return pinned_array((nbytes,), np.dtype(np.uint8))


def _gathered(pack: Pack, arrays: Sequence[Any]) -> tuple[Any, Any]:
    """Queue the download of a pack; return where it arrives, and what it needs."""
    cupy = _optional.cupy()
    held = [cupy.ascontiguousarray(x.T if x.flags.fnc else x) for x in arrays]
    # Pinned memory: the kernel reads it there.
    table = pinned_array((len(held), 3), np.dtype(np.int64))
    rows = zip(held, pack.offsets, strict=True)
    table[...] = [(x.data.ptr, at, x.nbytes) for x, at in rows]
    block, staging = cupy.cuda.alloc(pack.nbytes), _pinned(pack.nbytes)
    _kernel()((len(held),), (THREADS,), (table.ctypes.data, block.ptr))
    block.copy_to_host_async(staging.ctypes.data, pack.nbytes)
    return staging, (held, table, block)


@cache
def _kernel() -> Any:
    return _optional.cupy().RawKernel(GATHER, "xdev_gather")


registry.when_started("cuda", _prepare)  # this module loads for fake devices too
