"""Pinned (page-locked) host memory, and how long the memory of queued copies lives.

That is until the device is done with it. A block of xdev's pools is noted there:
dropped, it waits for the stream before it is handed out again, and the pool's reports
see to that. Memory of others is kept here, with an event, and let go of at a later
copy. No host thread waits for either.
"""

from __future__ import annotations

import operator
from collections import deque
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from xdev._freed import refuse
from xdev.device import Device
from xdev.device.streams import live_streams
from xdev.memory.arrays import (
    HostLease,
    find,
    host_array,
    is_pinned_address,
    pinned_array,
)
from xdev.memory.sources.cuda import PinnedSource, on_device
from xdev.transfer.exporters import numpys, refuse_mask

if TYPE_CHECKING:
    from xdev.memory.blocks import Chunk

PER_THREAD = 2  # a stream handle that means another stream in every thread

#: Memory of others, with the event that it is kept for.
_under_way: deque[tuple[Any, Any]] = deque()


def empty_pinned(shape: int | tuple[int, ...], dtype: Any = float) -> Any:
    """Return an uninitialised NumPy array in pinned memory.

    Copies from and to it with ``non_blocking=True`` are asynchronous. Where CUDA
    cannot be used there is nothing to pin for, and the memory is ordinary.

    Parameters
    ----------
    shape : int or tuple of int
        As :func:`numpy.empty` takes it.
    dtype : dtype
        NumPy's, or another library's of the same name; float64 unless given.

    Raises
    ------
    ValueError
        ``shape`` is negative or too large to address.
    TypeError
        ``shape`` is not a shape; NumPy has no such dtype, or it holds Python objects.
    OutOfMemoryError
        The pinned pool cannot serve it.

    Examples
    --------
    >>> empty_pinned((2, 3), "float32").shape
    (2, 3)
    """
    extents = shape if isinstance(shape, tuple | list) else (shape,)
    try:
        extents = tuple(map(operator.index, extents))
    except TypeError as error:
        message = f"{shape!r} is not a shape: give a whole number or a tuple of them"
        raise TypeError(message) from error
    return _empty(extents, numpys(dtype, "use one that it has, such as float32"))


def _empty(
    shape: tuple[int, ...], dtype: np.dtype[Any], order: Literal["C", "F"] = "C"
) -> Any:
    if dtype.hasobject:
        raise TypeError(
            f"pinned memory cannot hold Python objects: {dtype} is not a plain dtype; "
            f'convert them to numbers first, as in x.astype("float64")'
        )
    drop_done()
    if Device("cuda").available:
        return pinned_array(shape, dtype, order)
    return host_array(shape, dtype, order)


def pin(x: Any) -> Any:
    """Return a host array's values in pinned memory; ``x`` itself if it is pinned.

    What is laid out in Fortran's order stays so, and any other strides become C's.

    Raises
    ------
    TypeError
        ``x`` is not a host array; move it first, ``xdev.to_numpy(x)``. Or it is masked,
        or holds Python objects.
    OutOfMemoryError
        The pinned pool cannot serve it.
    UseAfterFreeError
        It was freed.

    Examples
    --------
    >>> import numpy as np
    >>> pin(np.arange(3))
    array([0, 1, 2])
    """
    refuse("xdev.pin", x)
    if not isinstance(x, np.ndarray):
        raise TypeError(
            f"only NumPy arrays can be pinned, not {type(x).__name__}: bring it to the "
            f"host first, xdev.pin(xdev.to_numpy(x))"
        )
    if is_pinned(x):
        return x
    refuse_mask(x)
    pinned = _empty(x.shape, x.dtype, "F" if x.flags.fnc else "C")
    np.copyto(pinned, x)
    return pinned


def is_pinned(x: Any) -> bool:
    """Say whether an array's memory is pinned, by xdev or by another library.

    Parameters
    ----------
    x : object
        An array of any library.

    Returns
    -------
    bool
        False also of what is no array.

    Examples
    --------
    >>> import numpy as np
    >>> is_pinned(np.arange(3))
    False
    """
    refuse("xdev.is_pinned", x)
    return isinstance(x, np.ndarray) and is_pinned_address(x.ctypes.data)


def keep(queue: Any, index: int, *arrays: Any) -> None:
    """Keep arrays' memory, once they are dropped, until a stream's work so far is done.

    Parameters
    ----------
    queue : cupy.cuda.Stream
        A stream of the current device.
    index : int
        That device.
    *arrays : numpy.ndarray or cupy.ndarray
        Page-locked host memory; or memory of a device, which is of no pool or marked as
        used on the stream (:func:`xdev.memory.arrays.mark_uses`).
    """
    if queue.ptr in live_streams.captured:  # who replays a graph keeps what it works on
        return
    others = []
    for x in arrays:
        if not isinstance(x, np.ndarray):
            chunk = getattr(x.data.mem, "xdev_chunk", None)  # quicker than a search
            if chunk is None and find(x.data.ptr, "device") is None:
                others.append(x)
            continue
        pinned = None if queue.ptr == PER_THREAD else pinned_chunk(x)
        if pinned is None:
            others.append(x)
            continue
        name = on_device(live_streams.see(queue), index)
        if name not in (pinned.uses or ()):
            state: Any = pinned.segment.owner
            state.mark(pinned, (name,))
    if _under_way:
        drop_done()
    if others:
        _under_way.append((queue.record(), others))


def pinned_chunk(x: np.ndarray[Any, Any]) -> Chunk | None:
    """Return the chunk of the pinned pool that an array lies in, or None."""
    return leased_chunk(x) or find(x.ctypes.data, "pinned")


def leased_chunk(x: np.ndarray[Any, Any]) -> Chunk | None:
    """Return the chunk of the pinned pool that an array or a view was made of."""
    lease = getattr(x.base, "base", None)  # quicker than a search
    if not isinstance(lease, HostLease):
        return None
    state: Any = lease.chunk.segment.owner
    return lease.chunk if isinstance(state.source, PinnedSource) else None


def drop_done() -> None:
    """Let go of what was kept for copies that are done."""
    for _ in range(len(_under_way)):
        try:
            event, others = _under_way.popleft()
        except IndexError:  # another thread was faster
            return
        if not event.done:
            _under_way.append((event, others))
