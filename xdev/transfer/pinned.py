"""Pinned (page-locked) host memory: arrays, lifetimes, and copies staged through it.

The memory of a queued copy lives until the device is done with it. A block of xdev's
pools is noted there: dropped, it waits for the stream before it is handed out again,
and the pool's reports see to that. Memory of others is kept here, with an event, and
let go of at a later copy. No host thread waits for either.

A large copy from or to pageable memory is cut into *pieces*. Several *workers*, a
compiled thread each, take the next piece each until none is left; a worker has pinned
*slots* of its own, so workers wait for nothing of each other, and while one of its
slots is on the bus the worker fills or drains another.
"""

from __future__ import annotations

import ctypes
import operator
from collections import deque
from contextlib import suppress
from functools import cache
from sys import is_finalizing
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from xdev import _config, _optional, native
from xdev._freed import refuse
from xdev.compile import threads
from xdev.device import Device
from xdev.device.cuda import driver_library
from xdev.device.streams import live_streams
from xdev.errors import OutOfMemoryError, XdevError
from xdev.memory import arrays
from xdev.memory.arrays import host_array, is_pinned_address, lease_of, pinned_array
from xdev.memory.reclamation import taken
from xdev.memory.sources.cuda import PinnedSource, on_device
from xdev.transfer.copies import numpys, refuse_mask

if TYPE_CHECKING:
    from xdev.memory.blocks import Chunk

    Array = np.ndarray[Any, Any]

PER_THREAD = 2  # a stream handle that means another stream in every thread

#: Memory of others, with the event that it is kept for.
_under_way: deque[tuple[Any, Any]] = deque()

WORKERS = 8  # more threads than saturate the bus only take rounds at it
SMALL = 64 << 10  # CUDA's own copy takes so much of pageable memory at once [B]
DIRECT = 2 << 20  # up to here it is quicker than a staged one [B]
SLOTS = 2  # of a worker: one on the bus, one in the thread's hands
#: The size of a piece [B]: a smaller one costs a thread as long as its wake-up, a
#: larger one does not fit into caches.
SMALLEST, LARGEST = 256 << 10, 1 << 20
#: How often each slot is used, if that makes no piece too small: the bus waits until
#: the first slots are full.
ROUNDS = 2
FUNCTIONS = (
    *("cuCtxSetCurrent", "cuEventSynchronize", "cuEventRecord"),
    *("cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2"),
)


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

    Returns
    -------
    numpy.ndarray
        Its memory goes back to the pinned pool when it and its views are gone.

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
    known = numpys(dtype, "use one that it has, such as float32")
    return _empty(tuple(map(operator.index, extents)), known)


def _empty(
    shape: tuple[int, ...], dtype: np.dtype[Any], order: Literal["C", "F"] = "C"
) -> Any:
    if dtype.hasobject:
        way = 'convert them to numbers first, as in x.astype("float64")'
        raise TypeError(f"pinned memory cannot hold Python objects, {dtype}: {way}")
    drop_done()
    if Device("cuda").available:
        return pinned_array(shape, dtype, order)
    return host_array(shape, dtype, order)


def pin(x: Any) -> Any:
    """Return a host array's values in pinned memory; ``x`` itself if it is pinned.

    What is laid out in Fortran's order stays so, and any other strides become C's.

    Parameters
    ----------
    x : numpy.ndarray
        Of any shape, and any data type but Python objects.

    Returns
    -------
    numpy.ndarray
        Of the same shape and data type; ordinary memory where CUDA cannot be used.

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
        text = f"only NumPy arrays can be pinned, not {type(x).__name__}: bring it to"
        raise TypeError(f"{text} the host first, xdev.pin(xdev.to_numpy(x))")
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


def keep(queue: Any, index: int, *used: Any) -> None:
    """Keep arrays' memory, once they are dropped, until a stream's work so far is done.

    ``queue`` is a CuPy stream of the current device, of number ``index``. The memory is
    page-locked; or a device's, of no pool or marked as used on the stream
    (:func:`xdev.memory.arrays.mark_uses`).
    """
    if queue.ptr in live_streams.captured:  # who replays a graph keeps what it works on
        return
    others = []
    for x in used:
        if isinstance(x, np.ndarray):
            chunk: Any = leased_chunk(x) or arrays.find(x.ctypes.data, "pinned")
            if chunk and queue.ptr != PER_THREAD:
                name = on_device(live_streams.see(queue), index)
                if name not in (chunk.uses or ()):
                    chunk.segment.owner.mark(chunk, (name,))
                continue
        elif getattr(x.data.mem, "xdev_chunk", None) or arrays.find(
            x.data.ptr, "device"
        ):
            continue
        others.append(x)
    if _under_way:
        drop_done()
    if others:
        _under_way.append((queue.record(), others))


def leased_chunk(x: Array) -> Chunk | None:
    """Return the chunk of the pinned pool that an array or a view was made of."""
    lease = lease_of(x)  # quicker than a search
    if lease is None:
        return None
    state: Any = lease.chunk.segment.owner
    return lease.chunk if isinstance(state.source, PinnedSource) else None


def drop_done() -> None:
    """Let go of what was kept for copies that are done."""
    for event, others in taken(_under_way):
        if not event.done:
            _under_way.append((event, others))


# -- copies through pinned memory -----------------------------------------------------


def copy_async(host: Array, packed: Any, stream: int, *, up: bool) -> None:
    """Queue one copy of the driver's between arrays that are packed alike."""
    runtime = _optional.cupy().cuda.runtime
    here, there = host.ctypes.data, packed.data.ptr
    to, origin = (there, here) if up else (here, there)
    kind = runtime.memcpyHostToDevice if up else runtime.memcpyDeviceToHost
    runtime.memcpyAsync(to, origin, packed.nbytes, kind, stream)


def plan(nbytes: int, workers: int) -> tuple[int, int, int]:
    """Return how to cut up a copy: how many threads, slots of each, their size [B]."""
    share = -(-nbytes // (workers * SLOTS * ROUNDS))
    power = 1 << (share - 1).bit_length()  # so that a pool meets few sizes
    chunk = min(nbytes, max(SMALLEST, min(LARGEST, power)))
    count = -(-nbytes // chunk)
    workers = min(workers, count)
    return workers, min(SLOTS, -(-count // workers)), chunk


def staged(host: Array, packed: Any, queue: Any, index: int, *, up: bool) -> Array:
    """Copy between pageable memory and a CUDA device, which are packed alike.

    ``host`` is not empty, and not used any more afterwards; ``packed`` is on the
    current device, of number ``index``. Up, the copy is only queued. Return the pinned
    slots: for an upload, to be kept until the stream is done.

    Raises
    ------
    OutOfMemoryError
        There is no room for a slot.
    XdevError
        The driver refused; nothing is queued that uses the slots.
    """
    compiled: Any = native.module("threads")
    if threads.team() is not compiled:  # the driver stages by itself, slower
        copy_async(host, packed, queue.ptr, up=up)
        queue.synchronize()
        return host
    workers = min(WORKERS, _config.num_threads())
    if queue.ptr == PER_THREAD or is_finalizing():  # then no thread is left
        workers = 1
    workers, depth, chunk = plan(packed.nbytes, workers)
    while True:
        try:
            slots = pinned_array((workers * depth, chunk), np.dtype(np.uint8))
            break
        except OutOfMemoryError:  # under a tight limit there are fewer
            if workers == 1:
                raise
            workers //= 2
    cuda = _optional.cupy().cuda
    events = [cuda.Event(disable_timing=True) for _ in slots]
    enter, wait, record, *copies = addresses()
    count = -(-packed.nbytes // chunk)
    words = [enter, wait, record, copies[up], up]
    words += [host.ctypes.data, packed.data.ptr, slots.ctypes.data, packed.nbytes]
    words += [chunk, depth, queue.ptr, cuda.driver.ctxGetCurrent(), count]
    result = len(words)
    words += [0, 0]  # an error, and the start of the piece that it came up at
    for event in events:
        words += [event.ptr, 0, 0, 0]  # a slot, with nothing in it
    memory = np.array(words, np.int64)
    # Threads take pieces by number; numbers beyond empty the last slots of a download.
    ends = (count,) if up else (count, count + len(slots))
    error, at = -1, 0
    try:
        for start, stop in zip((0, *ends), ends, strict=False):
            shares = start, stop, 1, workers, threads.spins()
            compiled.share(compiled.COPY_PIECE, memory.ctypes.data, shares)
        error, at = memory[result:][:2].tolist()
    finally:
        if error:  # or an interrupt came: nothing that uses the slots may be left
            with suppress(Exception):  # a device that is lost: the first error says it
                queue.synchronize()
    if error:
        reason = cuda.driver.CUDADriverError(error)  # its name and text
        copy = f"cuda:{index}: a copy of {packed.nbytes:,} B"
        raise XdevError(f"{copy} failed at byte {at:,}: {reason}")
    return slots


@cache
def addresses() -> list[int]:
    """Return the addresses of the driver's functions that a copy calls."""
    functions = [getattr(driver_library(), name) for name in FUNCTIONS]
    return [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions]
