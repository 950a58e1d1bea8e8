"""Work on arrays of other streams: after their own work, and before what follows it."""

from __future__ import annotations

from typing import Any

from xdev import _optional
from xdev.memory.owners import mark_uses
from xdev.transfer.exporters import CudaExport

LEGACY = 1  # the null stream's name in __cuda_array_interface__, where 0 is not allowed


def borrowed(queue: Any, x: Any) -> tuple[Any, int | None]:
    """Take over an array for work on the current stream; None stays None.

    The work comes after that of the array's own stream, which is returned as well: by
    :func:`given_back` the next work there comes after ours. It is all by events, the
    host waits for nothing.
    """
    if x is None:
        return None, None
    taken, other = taken_over(x)
    if other == (queue.ptr or LEGACY):
        other = None
    mark_uses((x,), stream=queue)
    if other is not None:
        order(other, queue.ptr)
    return taken, other


def given_back(queue: Any, other: int | None) -> None:
    """Let the work of an array's own stream go on after the current one's."""
    if other is not None:
        order(queue.ptr, other)


def taken_over(x: Any) -> tuple[Any, int | None]:
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


def order(first: int, then: int) -> None:
    """Let the later work of one stream wait for the work queued on another so far."""
    cuda = _optional.cupy().cuda
    event = cuda.Event(disable_timing=True)
    cuda.runtime.eventRecord(event.ptr, first)
    cuda.runtime.streamWaitEvent(then, event.ptr)
