"""Copies into, out of and between CUDA devices, queued on one stream."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional, memory
from xdev.device import Device, Stream, current_stream, registry
from xdev.memory.owners import mark_uses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdev.device import Event

#: Memory of copies under way, kept alive until their event is done.
_under_way: deque[tuple[Event, Any]] = deque()


def copy_in(
    x: Any,
    source: Device,
    target: Device,
    stream: Stream | None,
    non_blocking: bool,
    out: Any,
) -> Any:
    """Copy an array of any device into CUDA memory."""
    cupy = _optional.cupy()
    with _on(target, stream) as queue:
        mark_uses((out,))
        if source.type == "cuda":
            origin = cupy.asarray(x)
            result = cupy.empty(x.shape, x.dtype) if out is None else out
            _copy_device(origin, cupy.asarray(result))
            _keep_until(queue.record(), origin)
            return result
        values = _host_values(x)
        result = cupy.empty(values.shape, values.dtype) if out is None else out
        landing = cupy.asarray(result)
        if not landing.flags.c_contiguous:
            landing = cupy.empty(values.shape, values.dtype)
        landing.set(values)
        if out is not None and not cupy.shares_memory(landing, result):
            cupy.copyto(cupy.asarray(result), landing)
        _finish(queue, values, non_blocking)
    return result


def copy_out(
    x: Any, source: Device, stream: Stream | None, non_blocking: bool, out: Any
) -> Any:
    """Copy a CUDA array into host memory."""
    cupy = _optional.cupy()
    result = memory.host_array(x.shape, x.dtype) if out is None else out
    contiguous = result.flags.c_contiguous
    landing = result if contiguous else np.empty(x.shape, x.dtype)
    with _on(source, stream) as queue:
        packed = cupy.ascontiguousarray(cupy.asarray(x)).reshape(x.shape)
        packed.get(out=landing, blocking=False)
        _finish(queue, (packed, landing), non_blocking and contiguous)
    if not contiguous:
        np.copyto(result, landing)
    return result


@contextmanager
def _on(device: Device, stream: Stream | None) -> Iterator[Stream]:
    """Make a device, and a stream of it where one is given, the current ones."""
    with registry.backend("cuda").use(device.index):
        if stream is None:
            yield current_stream(device)
        else:
            with stream:
                yield stream


def _finish(queue: Stream, memory: Any, non_blocking: bool) -> None:
    """Wait for a copy, or keep the memory that it uses alive until it is done."""
    if non_blocking:
        _keep_until(queue.record(), memory)
    else:
        queue.synchronize()


def _keep_until(event: Event, memory: Any) -> None:
    while _under_way and _under_way[0][0].done:
        _under_way.popleft()
    _under_way.append((event, memory))


def _host_values(x: Any) -> np.ndarray[Any, Any]:
    """Return what is to be uploaded: contiguous, in the machine's byte order."""
    values = np.asarray(x)
    if values.dtype.kind not in "biufc":
        message = (
            f"CUDA has no arrays of dtype {values.dtype}: convert it first, as in "
            f'x.astype("float32"), or move its fields one by one'
        )
        raise TypeError(message)
    native = values.dtype.newbyteorder("=")
    return np.ascontiguousarray(values, dtype=native).reshape(values.shape)


def _copy_device(origin: Any, destination: Any) -> None:
    """Copy between CuPy arrays, also of two devices, on the current stream."""
    cupy = _optional.cupy()
    if origin.device == destination.device:
        cupy.copyto(destination, origin)
        return
    queue = cupy.cuda.get_current_stream()
    with origin.device:
        packed = cupy.ascontiguousarray(origin)
        queue.wait_event(cupy.cuda.get_current_stream().record())
    landing = destination
    if not destination.flags.c_contiguous:
        landing = cupy.empty(destination.shape, destination.dtype)
    landing.data.copy_from_device_async(packed.data, packed.nbytes, queue)
    _keep_until(current_stream(Device(destination.device)).record(), packed)
    if landing is not destination:
        cupy.copyto(destination, landing)
