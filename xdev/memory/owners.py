"""Which block an array lies in, and giving it back by hand."""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional
from xdev.device import Device
from xdev.errors import InUseError, UseAfterFreeError
from xdev.memory import registry
from xdev.memory.sources.cuda import live_streams

if TYPE_CHECKING:
    import weakref

    from xdev.memory.blocks import Chunk
    from xdev.memory.stock import Stock

PINNED = 1  # cudaMemoryTypeHost
FOREIGN = "does not lie in memory of xdev's pools"


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
        chunk = self.chunk
        chunk.give(chunk)


def _references(held: list[object]) -> int:
    """Return how many references the interpreter counts to a list's one item."""
    return sys.getrefcount(held[0])


ALONE = _references([object()])  # an object that nothing but the list refers to


def free(x: Any) -> None:
    """Give an array's memory back now, in place of when its last reference goes.

    It is for arrays that xdev's pools hold, and for nothing that is still needed: the
    array must not be used again, and work queued on other streams must be recorded
    (:func:`record_stream`).

    Parameters
    ----------
    x : numpy.ndarray or cupy.ndarray
        The array as it was made, not a view.

    Raises
    ------
    InUseError
        ``x`` is a view, or a view still uses its memory.
    UseAfterFreeError
        It was freed before.
    ValueError
        Its memory is no pool's.

    Examples
    --------
    >>> import xdev
    >>> x = xdev.empty(100_000, device="cpu")
    >>> free(x)
    >>> free(x)
    Traceback (most recent call last):
    xdev.errors.UseAfterFreeError: this array was freed before
    """
    chunk = _host_chunk(x) if isinstance(x, np.ndarray) else _device_chunk(x)
    if not chunk.segment.owner.free(chunk):
        raise UseAfterFreeError("this array was freed before")


def _host_chunk(x: Any) -> Any:
    held = [x.base]
    lease = getattr(held[0], "base", None)
    if not isinstance(lease, HostLease):
        message = f"this array of {x.nbytes:,} B {FOREIGN}"
        raise ValueError(message)  # noqa: TRY004 - the type is right, the memory not
    if lease.array() is not x:
        raise InUseError("this array is a view: free the array that it was made from")
    views = _references(held) - ALONE - 1  # the array itself has one
    if views > 0:
        message = f"{views} view(s) still use this array's memory: drop them first"
        raise InUseError(message)
    return lease.chunk


def _device_chunk(x: Any) -> Any:
    """Return the chunk of a CuPy array that the bridge's allocator served."""
    pointer: Any = getattr(x, "data", None)
    held: list[Any] = [getattr(pointer, "mem", None)]
    if not hasattr(type(held[0]), "xdev_chunk"):
        message = f"this {type(x).__name__} {FOREIGN}"
        raise ValueError(message)
    if x.base is not None or pointer.ptr != held[0].ptr:
        raise InUseError("this array is a view: free the array that it was made from")
    del pointer
    pointers = _references(held) - ALONE - 1  # the array's own pointer has one
    sharing = _references([x.data]) - ALONE - 1
    if pointers > 0 or sharing > 0:
        raise InUseError("a view still uses this array's memory: drop it first")
    return held[0].xdev_chunk


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
    ValueError
        The array's memory is no pool's.
    """
    found = find(_address(x))
    if found is None:
        message = f"this {type(x).__name__} {FOREIGN}"
        raise ValueError(message)
    stock, chunk = found
    live_streams.see(stream)
    handle = stream if isinstance(stream, int) else int(getattr(stream, "ptr"))  # noqa: B009
    stock.mark(chunk, (handle,))


def _address(x: Any) -> int:
    if isinstance(x, np.ndarray):
        return int(x.ctypes.data)
    interface = getattr(x, "__cuda_array_interface__", None)
    if interface is None:
        message = f"{type(x).__name__} is no array of host or CUDA memory"
        raise ValueError(message)
    return int(interface["data"][0])


def find(address: int, kind: str | None = None) -> tuple[Stock, Chunk] | None:
    """Return the stock and the live chunk that an address lies in, or None."""
    for (_, name), pool in registry.everything().items():
        if kind in (None, name):
            chunk = pool.find(address)
            if chunk is not None:
                return pool.stock, chunk
    return None


def is_pinned_address(address: int) -> bool:
    """Say whether an address lies in page-locked host memory, the pool's or other."""
    if find(address, "pinned") is not None:
        return True
    if "cupy" not in sys.modules or not Device("cuda").available:
        return False
    runtime = _optional.cupy().cuda.runtime
    return int(runtime.pointerGetAttributes(address).type) == PINNED
