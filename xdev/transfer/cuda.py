"""Copies into, out of and between CUDA devices, queued on one stream.

Packed, in the machine's byte order and pinned: one call of the driver. Pageable memory
of more than :data:`SMALL` bytes is staged (:mod:`xdev.transfer.staging`).
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional
from xdev.device import registry
from xdev.memory.arrays import host_array, pinned_array
from xdev.memory.owners import is_pinned_address, mark_uses
from xdev.transfer import cpu, schedule, staging
from xdev.transfer.exporters import CudaExport
from xdev.transfer.lifetimes import PER_THREAD, keep, pinned_chunk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdev.device import Device, Stream

CHARS = frozenset("?bhilqBHILQefdFD")  # the dtypes that CuPy has kernels for
SMALL = 64 << 10  # the driver takes so much of pageable memory at once [B]
LEGACY = 1  # the null stream's name in __cuda_array_interface__, where 0 is not allowed


def check(dtype: np.dtype[Any]) -> None:
    """Raise TypeError for a dtype that CuPy cannot compute with."""
    if dtype.char not in CHARS:
        message = (
            f"CUDA has no arrays of dtype {dtype}: convert it first, as in "
            f'x.astype("float32"), or move its fields one by one'
        )
        raise TypeError(message)


def adopt(x: Any, target: Device) -> Any:
    """Return the same memory as a CuPy array, after the work of its own stream."""
    if isinstance(x, _optional.cupy().ndarray):
        return x
    with _on(target, None) as queue:
        taken, other = _taken_over(x)
        if other is not None and other != (queue.ptr or LEGACY):
            _order(other, queue.ptr)
    return taken


def upload(
    values: np.ndarray[Any, Any],
    target: Device,
    stream: Stream | None,
    non_blocking: bool,
    out: Any,
) -> Any:
    """Copy a NumPy array; what is laid out in Fortran's order stays so."""
    turned = values.flags.fnc
    host = values.T if turned else values
    with _on(target, stream) as queue, _borrowed(queue, out) as landing:
        packed = landing.T if landing is not None and turned else landing
        if packed is None or not packed.flags.c_contiguous:
            dtype = values.dtype if landing is None else landing.dtype
            packed = _optional.cupy().empty(host.shape, dtype.newbyteorder("="))
        used = _send(host, packed, queue, target.index) if host.size else []
        made = packed.T if turned else packed
        if landing is None:
            out = made
        elif landing.data.ptr != made.data.ptr:
            _optional.cupy().copyto(landing, made)
        if non_blocking:
            keep(queue, target.index, *used)
        elif used or stream is not None:
            queue.synchronize()
    return out


def _send(host: Any, packed: Any, queue: Any, index: int) -> list[Any]:
    """Queue an upload; return the memory that it still uses when this returns."""
    if packed.nbytes <= SMALL:
        host = host.astype(packed.dtype, "C", "same_kind", copy=False)
    direct = host.flags.c_contiguous and host.dtype == packed.dtype
    pinned = direct and _is_pinned(host)
    if not pinned and packed.nbytes > SMALL:
        return staging.send(host, packed.dtype, CudaBus(packed, queue, index))
    runtime = _optional.cupy().cuda.runtime
    runtime.memcpyAsync(
        packed.data.ptr,
        host.ctypes.data,
        packed.nbytes,
        runtime.memcpyHostToDevice,
        queue.ptr,
    )
    return [host] if pinned else []


def _is_pinned(host: np.ndarray[Any, Any]) -> bool:
    return pinned_chunk(host) is not None or is_pinned_address(host.ctypes.data)


def download(
    x: Any, source: Device, stream: Stream | None, non_blocking: bool, out: Any
) -> Any:
    """Copy a CUDA array into host memory; Fortran's order stays so."""
    with _on(source, stream) as queue, _borrowed(queue, x) as there:
        if out is None:
            make = pinned_array if non_blocking else host_array
            out = make(there.shape, there.dtype, cpu.order_of(there))
        values = cpu.adopt(out, source)
        turned = values.flags.fnc
        host = values.T if turned else values
        packed = _packed(there.T if turned else there)
        pinned = host.size and _receive(host, packed, queue, source.index)
        if pinned and non_blocking:
            keep(queue, source.index, there, values)
        else:
            queue.synchronize()
    return out


def _receive(host: Any, packed: Any, queue: Any, index: int) -> bool:
    """Queue a download into pinned memory and say so, or make one into other memory."""
    direct = host.flags.c_contiguous and host.dtype == packed.dtype
    pinned = direct and _is_pinned(host)
    if not pinned and not (direct and packed.nbytes <= SMALL):
        staging.fetch(host, packed.dtype, CudaBus(packed, queue, index))
        return False
    runtime = _optional.cupy().cuda.runtime
    runtime.memcpyAsync(
        host.ctypes.data,
        packed.data.ptr,
        packed.nbytes,
        runtime.memcpyDeviceToHost,
        queue.ptr,
    )
    return pinned


def copy(
    x: Any,
    source: Device,
    target: Device,
    stream: Stream | None,
    non_blocking: bool,
    out: Any,
) -> Any:
    """Copy between two CUDA devices, or on one."""
    if source != target:
        return _copy_to_peer(x, source, target, stream, non_blocking, out)
    cupy = _optional.cupy()
    with (
        _on(target, stream) as queue,
        _borrowed(queue, x) as origin,
        _borrowed(queue, out) as landing,
    ):
        if landing is None:
            out = cupy.empty(origin.shape, origin.dtype, cpu.order_of(origin))
            cupy.copyto(out, origin)
        else:
            overlap = cupy.may_share_memory(landing, origin)
            cupy.copyto(landing, origin.copy() if overlap else origin)
        keep(queue, target.index, origin)
        if stream is not None and not non_blocking:
            queue.synchronize()
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
    with _on(source, None) as before, _borrowed(before, x) as origin:
        turned = origin.flags.fnc
        packed = _packed(origin.T if turned else origin)
        ready = before.record(cupy.cuda.Event(disable_timing=True))
        with _on(target, stream) as queue, _borrowed(queue, out) as landing:
            queue.wait_event(ready)
            there = landing.T if landing is not None and turned else landing
            fits = there is not None and there.dtype == packed.dtype
            if not (fits and there.flags.c_contiguous):
                there = cupy.empty(packed.shape, packed.dtype)
            there.data.copy_from_device_async(packed.data, packed.nbytes, queue)
            done = queue.record(cupy.cuda.Event(disable_timing=True))
            made = there.T if turned else there
            if landing is None:
                out = made
            elif landing.data.ptr != made.data.ptr:
                cupy.copyto(landing, made)
            if stream is not None and not non_blocking:
                queue.synchronize()
        before.wait_event(done)
        keep(before, source.index, origin)
    return out


@final
class CudaBus:
    """One stream, and a packed array on its device.

    Parameters
    ----------
    packed : cupy.ndarray
        In C order.
    queue : cupy.cuda.Stream
        Where the copies go.
    index : int
        The device.
    """

    def __init__(self, packed: Any, queue: Any, index: int) -> None:
        self._cuda = _optional.cupy().cuda
        self._address, self._queue, self._index = packed.data.ptr, queue, index
        self.threads = 1 if queue.ptr == PER_THREAD else schedule.LANES

    def slots(self, count: int, nbytes: int) -> np.ndarray[Any, Any]:
        """Return pinned memory of the pool."""
        return pinned_array((count, nbytes), np.dtype(np.uint8))

    def entered(self) -> Any:
        """Make the device the thread's current one."""
        return registry.backend("cuda").use(self._index)

    def send(self, slot: np.ndarray[Any, Any], start: int) -> Any:
        """Queue a copy to the device; return its event."""
        runtime = self._cuda.runtime
        return self._copy(
            self._address + start, slot.ctypes.data, slot, runtime.memcpyHostToDevice
        )

    def fetch(self, start: int, slot: np.ndarray[Any, Any]) -> Any:
        """Queue a copy from the device; return its event."""
        runtime = self._cuda.runtime
        return self._copy(
            slot.ctypes.data, self._address + start, slot, runtime.memcpyDeviceToHost
        )

    def synchronize(self) -> None:
        """Wait for the stream."""
        self._queue.synchronize()

    def _copy(self, to: int, origin: int, slot: np.ndarray[Any, Any], kind: int) -> Any:
        self._cuda.runtime.memcpyAsync(to, origin, slot.nbytes, kind, self._queue.ptr)
        return self._queue.record(self._cuda.Event(disable_timing=True))


@contextmanager
def _on(device: Device, stream: Stream | None) -> Iterator[Any]:
    """Make a device, and a stream of it where one is given, CuPy's current ones."""
    with registry.backend("cuda").use(device.index), stream or nullcontext():
        yield _optional.cupy().cuda.get_current_stream()


@contextmanager
def _borrowed(queue: Any, x: Any) -> Iterator[Any]:
    """Take over an array for work on the current stream; None stays None.

    The work comes after that of the array's own stream, and the next work there after
    it: by events, the host waits for nothing.
    """
    if x is None:
        yield None
        return
    taken, other = _taken_over(x)
    if other == (queue.ptr or LEGACY):
        other = None
    mark_uses((x,))
    if other is not None:
        _order(other, queue.ptr)
    yield taken
    if other is not None:
        _order(queue.ptr, other)


def _taken_over(x: Any) -> tuple[Any, int | None]:
    """Return an array's memory as CuPy's array, and the stream that its owner names.

    DLPack's exporters order the current stream after their own by themselves.
    """
    cupy = _optional.cupy()
    if isinstance(x, cupy.ndarray):
        return x, None
    interface = getattr(x, "__cuda_array_interface__", None)
    other = None if interface is None else interface.get("stream")
    if other is None and hasattr(x, "__dlpack__"):
        return cupy.from_dlpack(x), None
    return cupy.asarray(CudaExport(x, ordered=True)), other


def _order(first: int, then: int) -> None:
    """Let the later work of one stream wait for the work queued on another so far."""
    cuda = _optional.cupy().cuda
    event = cuda.Event(disable_timing=True)
    cuda.runtime.eventRecord(event.ptr, first)
    cuda.runtime.streamWaitEvent(then, event.ptr)


def _packed(x: Any) -> Any:
    """Return an array's values in C order; CuPy makes a 0-d array 1-d."""
    return _optional.cupy().ascontiguousarray(x).reshape(x.shape)
