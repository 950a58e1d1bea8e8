"""Copies between pageable memory and CUDA, through pinned memory, by several threads.

The array is cut into *pieces*. Several *lanes*, a thread each, take the next piece each
until none is left; a lane has pinned *slots* of its own, so lanes wait for nothing of
each other, and while one of its slots is on the bus the lane fills or drains another.
What is packed alike on both sides is copied by the compiled threads without Python;
strides and casts are NumPy's.
"""

from __future__ import annotations

import ctypes
import sys
from collections import deque
from contextlib import suppress
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from xdev import _config, native
from xdev.compile import threads
from xdev.compile.plain_threads import Copy
from xdev.errors import OutOfMemoryError, XdevError
from xdev.memory.arrays import pinned_array
from xdev.transfer.pinned import PER_THREAD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import EllipsisType

    Array = np.ndarray[Any, Any]

LANES = 8  # more threads than saturate the bus only take rounds at it
SMALL = 64 << 10  # CUDA's own copy takes so much of pageable memory at once [B]
DIRECT = 2 << 20  # up to here it is quicker than a staged one [B]
SLOTS = 2  # of a lane: one on the bus, one in the thread's hands
UNTIMED = 2  # CU_EVENT_DISABLE_TIMING
FUNCTIONS = (
    *("cuCtxSetCurrent", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"),
    *("cuEventRecord", "cuEventSynchronize"),
)


class Sizes(NamedTuple):
    """How large pieces are.

    Attributes
    ----------
    smallest : int
        Of more pieces than one: what costs a thread as long as its wake-up [B].
    largest : int
        What an event costs nothing beside [B].
    rounds : int
        How often each slot is used, if that makes no piece too small: the bus waits
        until the first slots are full.
    """

    smallest: int
    largest: int
    rounds: int


GENERAL = Sizes(1 << 20, 4 << 20, rounds=1)  # a piece is some steps of Python
PACKED = Sizes(256 << 10, 1 << 20, rounds=2)  # without Python: what caches hold


class Plan(NamedTuple):
    """How a copy is cut up.

    Attributes
    ----------
    lanes, slots : int
        Threads, and slots of each.
    chunk : int
        The size of a slot [B].
    """

    lanes: int
    slots: int
    chunk: int


class Piece(NamedTuple):
    """A part of an array whose elements are together in C order.

    Attributes
    ----------
    where : tuple
        The index of the part in the array.
    start, nbytes : int
        Where it lies in the packed array, and its size [B].
    """

    where: tuple[int | slice | EllipsisType, ...]
    start: int
    nbytes: int


def plan(nbytes: int, threads: int, sizes: Sizes) -> Plan:
    """Return how to cut up a copy.

    Parameters
    ----------
    nbytes : int
        Its size, above 0 [B].
    threads : int
        How many threads may work on it.
    sizes : Sizes
        Of the pieces: ``GENERAL`` or ``PACKED``.

    Examples
    --------
    >>> plan(1 << 30, 16, GENERAL)
    Plan(lanes=8, slots=2, chunk=4194304)
    >>> plan(100_000, 16, GENERAL)
    Plan(lanes=1, slots=1, chunk=100000)
    """
    threads = min(threads, LANES)
    share = -(-nbytes // (threads * SLOTS * sizes.rounds))
    power = 1 << (share - 1).bit_length()  # so that a pool meets few sizes
    chunk = min(nbytes, max(sizes.smallest, min(sizes.largest, power)))
    count = -(-nbytes // chunk)
    lanes = min(threads, count)
    return Plan(lanes, min(SLOTS, -(-count // lanes)), chunk)


def pieces(shape: tuple[int, ...], itemsize: int, chunk: int) -> Iterator[Piece]:
    """Cut an array into pieces of at most ``chunk`` bytes, in C order.

    Examples
    --------
    >>> [(piece.start, piece.nbytes) for piece in pieces((5,), itemsize=8, chunk=16)]
    [(0, 16), (16, 16), (32, 8)]
    """
    axis, row = len(shape), itemsize  # a row: one index of the axes before
    while axis and row * shape[axis - 1] <= chunk:
        axis -= 1
        row *= shape[axis]
    if not axis:
        yield Piece((...,), 0, row)
        return
    *outer, extent = shape[:axis]
    rows = max(1, chunk // row)
    for number, at in enumerate(product(*map(range, outer))):
        for first in range(0, extent, rows):
            last = min(extent, first + rows)
            start = (number * extent + first) * row
            yield Piece((*at, slice(first, last), ...), start, (last - first) * row)


def copy(host: Array, packed: Any, queue: Any, index: int, *, up: bool) -> Array:
    """Copy between pageable memory and a CUDA device.

    Parameters
    ----------
    host : numpy.ndarray
        Any strides and byte order; not empty. It is not used any more afterwards.
    packed : cupy.ndarray
        As many elements in C order, on the current device; they are cast.
    queue : cupy.cuda.Stream
        Where the copies are queued.
    index : int
        The device.
    up : bool
        Whether to the device: then it is only queued.

    Returns
    -------
    numpy.ndarray
        The slots: for an upload, to be kept until the stream is done.

    Raises
    ------
    OutOfMemoryError
        There is no room for a slot.
    XdevError
        The driver refused; nothing is queued that uses the slots.
    """
    alike = host.flags.c_contiguous and host.dtype == packed.dtype
    lanes = 1 if queue.ptr == PER_THREAD else min(LANES, _config.num_threads())
    compiled = threads.team() is native.module("threads")
    sizes = PACKED if alike and compiled else GENERAL
    parts = plan(packed.nbytes, lanes, sizes)
    lanes, slots = _slots(parts)
    work: list[Piece] = []
    starts = [*range(0, packed.nbytes, parts.chunk)]
    if not alike:
        host = host.reshape(-1) if host.flags.c_contiguous else host
        work = list(pieces(host.shape, packed.dtype.itemsize, parts.chunk))
        starts = [piece.start for piece in work]

    def move(slot: int, number: int) -> None:
        piece = work[number]
        there = host[piece.where]
        bytes_ = slots[slot, : piece.nbytes]
        here = bytes_.view(packed.dtype).reshape(there.shape)
        to, origin = (here, there) if up else (there, here)
        np.copyto(to, origin, "same_kind")

    api = driver()
    context = api.context(index)
    events = api.take_events(context, len(slots))
    staged = Copy(
        enter=api.enter,
        wait=api.wait,
        record=api.record,
        queue=api.up if up else api.down,
        up=up,
        host=host.ctypes.data,
        device=packed.data.ptr,
        ring=slots.ctypes.data,
        chunk=parts.chunk,
        slots=parts.slots,
        stream=queue.ptr,
        context=context,
        pieces=len(starts),
        events=events,
        starts=[*starts, packed.nbytes],
    )
    done = False
    try:
        error, number = threads.team().copy(
            staged, None if alike else move, lanes, threads.spins()
        )
        done = not error
    finally:
        if not done:
            with suppress(Exception):  # a device that is lost: the first error says it
                queue.synchronize()
        api.give_events(context, events)
    if error:
        message = (
            f"cuda:{index}: a copy of {packed.nbytes:,} B failed at byte "
            f"{staged.starts[number]:,}: {api.explain(error)}"
        )
        raise XdevError(message)
    return slots


def _slots(parts: Plan) -> tuple[int, Array]:
    """Return how many lanes there are, fewer under a tight limit, and all slots."""
    lanes = parts.lanes
    while True:
        try:
            shape = lanes * parts.slots, parts.chunk
            return lanes, pinned_array(shape, np.dtype(np.uint8))
        except OutOfMemoryError:
            if lanes == 1:
                raise
            lanes //= 2


@final
class Driver:
    """The functions of CUDA's driver, by address, and events to be used again.

    Attributes
    ----------
    enter, up, down, record, wait : int
        They make a context the thread's, queue a copy to the device and from it,
        record an event, wait for one.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        self.enter, self.up, self.down, self.record, self.wait = (
            ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
            for name in FUNCTIONS
        )
        self._contexts: dict[int, int] = {}
        self._events: dict[int, deque[int]] = {}  # by context: those nobody uses

    def context(self, index: int) -> int:
        """Return a device's primary context, which the CUDA runtime uses, too."""
        found = self._contexts.get(index)
        if found is None:
            device, context = ctypes.c_int(), ctypes.c_void_p()
            self._check(self._library.cuDeviceGet(ctypes.byref(device), index))
            # For ever: the runtime keeps it as well, until the process ends.
            retain = self._library.cuDevicePrimaryCtxRetain
            self._check(retain(ctypes.byref(context), device))
            found = self._contexts[index] = context.value or 0
        return found

    def take_events(self, context: int, count: int) -> Sequence[int]:
        """Return events of a context, which is the current device's."""
        free = self._events.setdefault(context, deque())
        taken = []
        for _ in range(count):
            try:
                taken.append(free.pop())
            except IndexError:
                taken.append(self._event(context))
        return taken

    def _event(self, context: int) -> int:
        """Make one; to the runtime a device is current before its context is."""
        event = ctypes.c_void_p()
        self._check(self._library.cuCtxSetCurrent(ctypes.c_void_p(context)))
        self._check(self._library.cuEventCreate(ctypes.byref(event), UNTIMED))
        return event.value or 0

    def give_events(self, context: int, events: Sequence[int]) -> None:
        """Take events back; they may have been recorded."""
        self._events[context].extend(events)

    def explain(self, status: int) -> str:
        """Return the name and the text of an error."""
        name, text = ctypes.c_char_p(), ctypes.c_char_p()
        self._library.cuGetErrorName(status, ctypes.byref(name))
        self._library.cuGetErrorString(status, ctypes.byref(text))
        words = [part.value.decode() for part in (name, text) if part.value]
        return ": ".join(words) or f"error {status} of CUDA's driver"

    def _check(self, status: int) -> None:
        if status:
            raise XdevError(self.explain(status))


@cache
def driver() -> Driver:
    """Return the process's."""
    return Driver(library())


@cache
def library() -> ctypes.CDLL:
    """Return the library of CUDA's driver."""
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
