"""Copies into, out of and between CUDA devices, queued on one stream.

Packed, in the machine's byte order, and pinned or small: one call of the driver. Other
memory is staged (:mod:`xdev.transfer.pinned`), by way of a packed copy where it is not.

Many small arrays cross in packs. An upload is written into pinned memory and crosses in
one copy a pack; the results are views of it. Downloads are queued into pinned memory
and waited for once a pack; the results are arrays of their own.
"""

from __future__ import annotations

from collections import deque
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional
from xdev.compile.formulas import is_bfloat16
from xdev.device import Device, registry
from xdev.device.choice import CPU
from xdev.device.copies import announce, guards
from xdev.device.streams import live_streams
from xdev.errors import CaptureError
from xdev.memory.arrays import PINNED, array_maker, host_array, mark_uses, pinned_array
from xdev.memory.blocks import round_up
from xdev.transfer import copies, pinned
from xdev.transfer.pinned import copy_async, keep, leased_chunk, staged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from xdev.transfer.copies import Way

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
BYTE = np.dtype(np.uint8)
IN_FLIGHT = 16  # packs whose pinned memory is in use at a time


def _prepare() -> None:
    """Choose by the devices which ways small copies go, at CUDA's first use."""
    cupy, count = _optional.cupy(), registry.backend("cuda").count()
    ask = cupy.cuda.runtime.deviceGetAttribute
    if any(ask(HOST_PAGE_TABLES, index) for index in range(count)):
        pinned.DIRECT = pinned.SMALL = 0
    copies.short_ways[cupy.ndarray] = fetch


def check(dtype: np.dtype[Any], target: Device) -> None:
    """Raise TypeError for a dtype that CuPy cannot compute with."""
    if dtype.char not in CHARS and not is_bfloat16(dtype):
        way = 'convert it first, as in x.astype("float32"), or leave it out'
        if dtype.names:
            way = f'move its fields one by one, as x["{dtype.names[0]}"]'
        elif dtype.kind in "mM":
            way = 'move its numbers, x.astype("int64")'
        elif dtype.kind in "SUT":
            way = "leave texts on the host"
        raise TypeError(f"{target} has no arrays of dtype {dtype}: {way}")


def adopt(x: Any, target: Device) -> Any:
    """Return the same memory as a CuPy array, after the work of its own stream."""
    if isinstance(x, _optional.cupy().ndarray):
        return x
    with _current(target):
        return imported(_queue(), x)[0]


def copy(x: Any, source: Device, target: Device, way: Way) -> Any:
    """Copy from or to the host, between two CUDA devices, or on one."""
    act: Callable[[Any, int, bool, Any], Any] = _copy_on_one
    device = target
    if source.type == "cpu":
        act = _upload
    elif target.type == "cpu":
        act, device = _download, source
    elif source != target:
        return _copy_to_peer(x, source, target, way)
    with _current(device), way.stream or NOTHING:
        out = act(x, device.index, way.non_blocking, way.out)
        if way.stream is not None and not way.non_blocking:
            _queue().synchronize()
    return out


def _upload(x: Any, index: int, non_blocking: bool, out: Any) -> Any:
    """Copy an array of the host; what is laid out in Fortran's order stays so."""
    values = copies.host_values(x)
    turned = values.flags.fnc
    host = values.T if turned else values
    queue = _host_queue()
    destination, owner = imported(queue, out)
    dtype = values.dtype.newbyteorder("=") if destination is None else destination.dtype
    packed = _landing(destination, turned, host.shape, dtype)
    used: list[Any] = []  # what the copy still uses when this returns
    if host.size:
        if not _alike(host, dtype):
            like = host_array(host.shape, dtype)
            np.copyto(like, host, "same_kind")
            host = like
        most = pinned.SMALL if non_blocking else pinned.DIRECT
        if _is_pinned(host):
            used = [host]
        if used or packed.nbytes <= most:
            copy_async(host, packed, queue.ptr, up=True)
        else:
            used = [staged(host, packed, queue, index, up=True)]
    out = _landed(packed, turned, destination, out)
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
        out = make(there.shape, there.dtype, copies.order_of(there))
    values = copies.shared(out)
    turned = values.flags.fnc
    host = values.T if turned else values
    if host.size:
        packed = _packed(there.T if turned else there)
        alike = _alike(host, packed.dtype)
        landing = host if alike else host_array(host.shape, packed.dtype)
        locked = alike and not pageable and _is_pinned(host)
        if locked or packed.nbytes <= pinned.DIRECT:
            copy_async(landing, packed, queue.ptr, up=False)
        else:
            staged(landing, packed, queue, index, up=False)
        if not alike:
            np.copyto(host, landing, "same_kind")
        elif locked and non_blocking:
            keep(queue, index, there, values)
        elif locked:
            queue.synchronize()
    order(queue.ptr, owner)
    return out


def _alike(host: Any, dtype: np.dtype[Any]) -> bool:
    """Say whether a host array is in C order and of a dtype, as its copy is to be."""
    return bool(host.flags.c_contiguous and host.dtype == dtype)


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
        out = cupy.empty(origin.shape, origin.dtype, copies.order_of(origin))
        cupy.copyto(out, origin)
    else:
        overlap = cupy.may_share_memory(destination, origin)
        cupy.copyto(destination, origin.copy() if overlap else origin)
    order(queue.ptr, taker)
    order(queue.ptr, giver)
    keep(queue, index, origin)
    return out


def _copy_to_peer(x: Any, source: Device, target: Device, way: Way) -> Any:
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
        with _current(target), way.stream or NOTHING:
            queue = _queue()
            destination, taker = imported(queue, way.out)
            queue.wait_event(ready)
            there = _landing(destination, turned, packed.shape, packed.dtype)
            there.data.copy_from_device_async(packed.data, packed.nbytes, queue)
            done = queue.record(cupy.cuda.Event(disable_timing=True))
            out = _landed(there, turned, destination, way.out)
            order(queue.ptr, taker)
            if way.stream is not None and not way.non_blocking:
                queue.synchronize()
        before.wait_event(done)
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
    queue = _queue()
    if live_streams.captured and queue.is_capturing():
        way = "make them before it is captured, or after a replay"
        text = "a graph has no copies between the host and the device"
        raise CaptureError(f"{text}: {way}")
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
        other = (getattr(x, "__cuda_array_interface__", None) or {}).get("stream")
        if other is None and hasattr(x, "__dlpack__"):  # it orders the streams
            taken = cupy.from_dlpack(x)
        else:
            taken = cupy.asarray(copies.CudaExport(x, ordered=True))
    if other == (queue.ptr or LEGACY):
        other = None
    mark_uses((x,), stream=queue)
    order(other, queue.ptr)
    return taken, other


def order(first: int | None, then: int | None) -> None:
    """Let the later work of one stream, if there is one, wait for another's so far."""
    if first is None or then is None:
        return
    cuda = _optional.cupy().cuda
    event = cuda.Event(disable_timing=True)
    cuda.runtime.eventRecord(event.ptr, first)
    cuda.runtime.streamWaitEvent(then, event.ptr)


def fetch(x: Any) -> Any:
    """Return a CuPy array's values in host memory, or None where it takes more.

    What this module sees to for all copies takes 5 us besides the driver's time, a
    third of a small copy's.
    """
    if live_streams.captured or guards.get():
        return None
    nbytes, data = x.nbytes, x.data
    if not 0 < nbytes <= pinned.DIRECT or not x.flags.c_contiguous:
        return None
    queue = _queue()
    if data.device_id != _optional.cupy().cuda.runtime.getDevice():
        return None
    if live_streams.several or queue.ptr:
        mark_uses((x,), stream=queue)
    out = host_array(x.shape, x.dtype)
    copy_async(out, x, queue.ptr, up=False)
    return out


# -- many small arrays ----------------------------------------------------------------


def move_in_packs(arrays: dict[int, Any], target: Device) -> dict[int, Any]:
    """Move the arrays that cross to or from CUDA in packs."""
    up = target.kind == "cuda"
    kind: Any = np.ndarray if up else _optional.cupy().ndarray
    groups: dict[int, list[int]] = {}  # by the index of the CUDA device
    for key, x in arrays.items():
        if type(x) is kind and x.nbytes <= IN_PACKS and x.dtype.char in CHARS:
            index = target.index if up else x.data.device_id
            groups.setdefault(index, []).append(key)
    cross = upload if up else download
    moved: dict[int, Any] = {}
    for index, keys in groups.items():
        if len(keys) >= FEW:
            members = [arrays[key] for key in keys]
            moved |= zip(keys, cross(members, Device(f"cuda:{index}")), strict=True)
    return moved


def packs(sizes: Sequence[int]) -> Iterator[tuple[slice, list[int], int]]:
    """Lay out arrays: yield which, where each begins, and the size of a pack [B]."""
    first, offsets, end = 0, list[int](), 0
    for number, nbytes in enumerate([*sizes, LARGEST]):  # the one more ends the last
        room = max(ALIGNMENT, round_up(nbytes, ALIGNMENT))
        if offsets and end + room > LARGEST:
            yield slice(first, number), offsets, end
            first, offsets, end = number, [], 0
        offsets.append(end)
        end += room


def upload(arrays: Sequence[Any], target: Device) -> list[Any]:
    """Copy host arrays to CUDA; they may be changed as soon as this returns."""
    sizes = [x.nbytes for x in arrays]
    announce(CPU, target, sum(sizes), copies=len(sizes))
    cuda, make = _optional.cupy().cuda, array_maker()
    moved: list[Any] = []
    in_flight: deque[Any] = deque()
    with registry.backend("cuda").use(target.index):
        queue = _host_queue()
        for members, offsets, nbytes in packs(sizes):
            if len(in_flight) == IN_FLIGHT:
                in_flight.popleft().synchronize()
            memory, block = pinned_array((nbytes,), BYTE), cuda.alloc(nbytes)
            for x, at in zip(arrays[members], offsets, strict=True):
                order = copies.order_of(x)
                kind = x.dtype.char  # in the machine's byte order
                np.ndarray(x.shape, kind, memory, at, order=order)[...] = x
                moved.append(make(x.shape, kind, order, block + at))
            block.copy_from_host_async(memory.ctypes.data, nbytes)
            in_flight.append(queue.record(cuda.Event(disable_timing=True)))
            keep(queue, target.index, memory)
    return moved


def download(arrays: Sequence[Any], source: Device) -> list[Any]:
    """Copy CUDA arrays to the host; the values are there when this returns."""
    sizes = [x.nbytes for x in arrays]
    announce(source, CPU, sum(sizes), copies=len(sizes))
    moved: list[Any] = []
    with registry.backend("cuda").use(source.index):
        queue = _host_queue()
        for members, offsets, nbytes in packs(sizes):
            memory, landed = pinned_array((nbytes,), BYTE), []
            try:
                for x, at in zip(arrays[members], offsets, strict=True):
                    packed = _packed(x.T if x.flags.fnc else x)
                    order = copies.order_of(x)
                    values = np.ndarray(x.shape, x.dtype, memory, at, order=order)
                    landed.append((values, packed))
                    if x.nbytes:
                        copy_async(values, packed, queue.ptr, up=False)
            finally:  # after an error too: what the device still writes to is held
                queue.synchronize()
            moved += [copies.copy_on_host(values, None) for values, _ in landed]
    return moved


registry.when_started("cuda", _prepare)  # this module loads for fake devices too
