"""Which block an array lies in."""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional, native
from xdev._freed import refuse
from xdev.device import Device
from xdev.errors import not_array
from xdev.memory import registry
from xdev.memory.streams import handle_of, live_streams

if TYPE_CHECKING:
    import weakref
    from collections.abc import Iterable

    from xdev.memory.blocks import Chunk

PINNED = 1  # cudaMemoryTypeHost
FOREIGN = (
    "does not lie in memory of xdev's pools: drop it (NumPy keeps its own arrays, and "
    "those below 64 KiB)"
)


@final
class HostLease(ctypes.Array[ctypes.c_char]):
    """A block that a NumPy array stands on.

    The hidden array made from it is the ``.base`` of the user's array and of every
    view (NumPy collapses bases), so it counts them; when all are gone, so is this.

    To NumPy it is a buffer that starts at the block and ends nowhere, so that one
    type serves every size: ``ctypes`` makes one in 50 ns, and NumPy reads it faster
    than an ``__array_interface__``. The hidden array ends where the block does.
    """

    _type_ = ctypes.c_char
    _length_ = sys.maxsize
    __slots__ = ("array", "chunk")

    chunk: Chunk
    array: weakref.ref[Any]  # the user's, as first made

    def __del__(self) -> None:
        try:
            chunk = self.chunk
        except AttributeError:  # an exception came between: the pool finds the chunk
            return
        chunk.release(chunk)


def record_stream(x: Any, stream: object) -> None:
    """Keep an array's memory, once dropped, until a stream is done with it.

    Needed where an array made on one stream is used on another by a library that xdev
    does not see.

    Parameters
    ----------
    x : array
        NumPy (pinned or not), or any ``__cuda_array_interface__`` exporter.
    stream : int or Stream
        xdev's or CuPy's stream, or a CUDA stream handle.

    Raises
    ------
    TypeError
        ``stream`` is neither a stream nor an int.
    ValueError
        It is no handle, or the array's memory is no pool's.
    UseAfterFreeError
        It was freed.
    """
    if not hasattr(stream, "ptr"):
        stream = handle_of(stream)
    refuse("xdev.memory.record_stream", x)
    if is_fake(x):
        return  # its work is done when a call returns
    chunk: Any = find(_address(x))
    if chunk is None:
        raise ValueError(f"this {type(x).__name__} {FOREIGN}")
    chunk.segment.owner.mark(chunk, (live_streams.see(stream),))


def mark_uses(
    operands: Iterable[Any], device: int | None = None, stream: Any = None
) -> None:
    """Do as :func:`record_stream` for all CUDA arrays that the current stream uses.

    It costs little until there is a second stream. Who queues work on arrays calls it
    before.

    Parameters
    ----------
    operands : iterable
        Arguments of a function: arrays, sequences of arrays; others do not matter.
    device : int, optional
        The index of the arrays' device; CuPy's current one without it.
    stream : cupy.cuda.Stream, optional
        The current stream there, from who knows it.
    """
    if stream is None:
        if device is None and native.calls.are_of_current_stream(operands):
            return
        current = _optional.cupy().cuda.get_current_stream
        stream = current() if device is None else current(device)
    handle = live_streams.see(stream)
    if live_streams.several and handle not in live_streams.captured:
        _mark_all(operands, handle)


def _mark_all(operands: Iterable[Any], handle: int) -> None:
    for x in operands:
        if isinstance(x, list | tuple):
            _mark_all(x, handle)
            continue
        chunk = device_chunk(x)
        if chunk and chunk.stream != handle and handle not in (chunk.uses or ()):
            chunk.segment.owner.mark(chunk, (handle,))


def device_chunk(x: Any) -> Any:
    """Return the chunk that a CUDA array lies in, or None."""
    if not hasattr(type(x), "__cuda_array_interface__"):
        return None
    pointer: Any = getattr(x, "data", None)
    memory = getattr(pointer, "mem", None)  # CuPy's: quicker than the interface
    chunk = getattr(memory, "xdev_chunk", None)
    if chunk is not None:
        return chunk
    return find(_address(x) if memory is None else pointer.ptr, "device")


def _address(x: Any) -> int:
    if isinstance(x, np.ndarray):
        return int(x.ctypes.data)
    export = "__cuda_array_interface__"
    interface = None if isinstance(x, type) else getattr(x, export, None)
    if interface is None:
        raise ValueError(f"x is {not_array(x, 'pass an array of host or CUDA memory')}")
    return int(interface["data"][0] or 0)  # empty arrays may have none


def is_fake(x: Any) -> bool:
    """Say whether ``x`` is an array on a fake device."""
    arrays = sys.modules.get("xdev.device.fake_arrays")  # else there is none
    return arrays is not None and type(x) is arrays.FakeArray


def find(address: int, kind: str | None = None) -> Chunk | None:
    """Return the live chunk that an address lies in, or None."""
    for (_, name), pool in registry.everything().items():
        if kind in (None, name) and (chunk := pool.find(address)):
            return chunk
    return None


def is_pinned_address(address: int) -> bool:
    """Say whether an address lies in page-locked host memory, the pool's or other."""
    if find(address, "pinned") is not None:
        return True
    if "cupy" not in sys.modules or not Device("cuda").available:
        return False
    runtime = _optional.cupy().cuda.runtime
    return int(runtime.pointerGetAttributes(address).type) == PINNED
