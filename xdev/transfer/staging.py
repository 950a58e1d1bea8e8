"""Copies between pageable memory and CUDA, through pinned memory, by several threads.

The array is cut into *pieces*. Several *workers*, a thread each, take the next piece
each until none is left; a worker has pinned *slots* of its own, so workers wait for
nothing of each other, and while one of its slots is on the bus the worker fills or
drains another.
What is packed alike on both sides is copied by the compiled threads without Python;
strides and casts are NumPy's.
"""

from __future__ import annotations

import ctypes
from collections import deque
from contextlib import suppress
from functools import cache, partial
from itertools import product, repeat
from sys import is_finalizing
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from xdev import _config, _optional, native
from xdev.compile import threads
from xdev.compile.launch import driver_library
from xdev.errors import OutOfMemoryError, XdevError
from xdev.memory.arrays import pinned_array
from xdev.transfer.pinned import PER_THREAD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import EllipsisType

    Array = np.ndarray[Any, Any]

WORKERS = 8  # more threads than saturate the bus only take rounds at it
SMALL = 64 << 10  # CUDA's own copy takes so much of pageable memory at once [B]
DIRECT = 2 << 20  # up to here it is quicker than a staged one [B]
SLOTS = 2  # of a worker: one on the bus, one in the thread's hands
FUNCTIONS = (
    *("cuCtxSetCurrent", "cuEventSynchronize", "cuEventRecord"),
    *("cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2"),
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
    workers, slots : int
        Threads, and slots of each.
    chunk : int
        The size of a slot [B].
    """

    workers: int
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
    Plan(workers=8, slots=2, chunk=4194304)
    >>> plan(100_000, 16, GENERAL)
    Plan(workers=1, slots=1, chunk=100000)
    """
    threads = min(threads, WORKERS)
    share = -(-nbytes // (threads * SLOTS * sizes.rounds))
    power = 1 << (share - 1).bit_length()  # so that a pool meets few sizes
    chunk = min(nbytes, max(sizes.smallest, min(sizes.largest, power)))
    count = -(-nbytes // chunk)
    workers = min(threads, count)
    return Plan(workers, min(SLOTS, -(-count // workers)), chunk)


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
    compiled = alike and threads.team() is native.module("threads")
    workers = min(WORKERS, _config.num_threads())
    if queue.ptr == PER_THREAD or is_finalizing():  # then no thread is left
        workers = 1
    parts = plan(packed.nbytes, workers, PACKED if compiled else GENERAL)
    workers, slots = _slots(parts)
    event = partial(_optional.cupy().cuda.Event, disable_timing=True)
    events = [event() for _ in slots]
    staged = Staged(host, packed, queue, index, up, parts, slots, events)
    try:
        (staged.run_compiled if compiled else staged.run)(workers)
    except BaseException:
        with suppress(Exception):  # a device that is lost: the first error says it
            queue.synchronize()
        raise
    return slots


class Staged(NamedTuple):
    """A copy, with all that its workers use, as :func:`copy` has it."""

    host: Array
    packed: Any
    queue: Any
    device: int
    up: bool
    parts: Plan
    slots: Array
    events: Sequence[Any]

    def run(self, workers: int) -> None:
        """Copy by NumPy and CuPy, any strides, with casts."""
        _, packed, queue, device, up, parts, *_ = self
        host = self.host.reshape(-1) if self.host.flags.c_contiguous else self.host
        runtime = _optional.cupy().cuda.runtime
        kind = runtime.memcpyHostToDevice if up else runtime.memcpyDeviceToHost
        work = [*pieces(host.shape, packed.dtype.itemsize, parts.chunk)]
        # Slots that no worker has, what was used first is first, and what is in them.
        unused = zip(self.slots, self.events, repeat(None), strict=False)
        free: deque[tuple[Array, Any, Piece | None]] = deque(unused)

        def move(slot: Array, piece: Piece) -> None:
            there = host[piece.where]
            here = slot[: piece.nbytes].view(packed.dtype).reshape(there.shape)
            to, origin = (here, there) if up else (there, here)
            np.copyto(to, origin, "same_kind")

        def task(number: int, _: int) -> None:
            slot, event, before = free.popleft()
            piece = work[number] if number < len(work) else None
            try:
                runtime.setDevice(device)
                if before:
                    event.synchronize()
                    if not up:
                        move(slot, before)
                if piece:
                    here, there = slot.ctypes.data, packed.data.ptr + piece.start
                    if up:
                        move(slot, piece)
                    to, origin = (there, here) if up else (here, there)
                    runtime.memcpyAsync(to, origin, piece.nbytes, kind, queue.ptr)
                    event.record(queue)
            except runtime.CUDARuntimeError as error:
                start = (piece or before or work[0]).start
                raise self.failed(start, error) from error
            free.append((slot, event, piece))

        self.share(partial(threads.team().run, task), len(work), workers)

    def run_compiled(self, workers: int) -> None:
        """Copy what is packed alike on both sides, without Python."""
        host, packed, queue, _, up, parts, slots, events = self
        enter, wait, record, *queues = addresses()
        context = _optional.cupy().cuda.driver.ctxGetCurrent()
        count = -(-packed.nbytes // parts.chunk)
        words = [enter, wait, record, queues[up], up]
        words += [host.ctypes.data, packed.data.ptr, slots.ctypes.data, packed.nbytes]
        words += [parts.chunk, parts.slots, queue.ptr, context, count]
        result = len(words)
        words += [0, 0]  # an error, and the start of the piece that it came up at
        for event in events:
            words += [event.ptr, 0, 0, 0]  # a slot, with nothing in it
        memory = np.array(words, np.int64)
        team: Any = threads.team()
        step = partial(team.share, team.COPY_PIECE, memory.ctypes.data)
        self.share(step, count, workers)
        error, start = memory[result:][:2].tolist()
        if error:
            raise self.failed(start, explain(error))

    def share(self, work: Callable[..., object], count: int, workers: int) -> None:
        """Give pieces to threads by their numbers, and what empties the last slots."""
        work((0, count, 1, workers, threads.spins()))
        if not self.up:
            work((count, count + len(self.slots), 1, workers, threads.spins()))

    def failed(self, start: int, why: object) -> XdevError:
        """Return the error for a piece that starts there."""
        return XdevError(
            f"cuda:{self.device}: a copy of {self.packed.nbytes:,} B failed at byte "
            f"{start:,}: {why}"
        )


def _slots(parts: Plan) -> tuple[int, Array]:
    """Return how many workers there are, fewer under a tight limit, and all slots."""
    workers = parts.workers
    while True:
        shape = workers * parts.slots, parts.chunk
        try:
            return workers, pinned_array(shape, np.dtype(np.uint8))
        except OutOfMemoryError:
            if workers == 1:
                raise
            workers //= 2


@cache
def addresses() -> list[int]:
    """Return the addresses of the driver's functions that a copy calls."""
    functions = [getattr(driver_library(), name) for name in FUNCTIONS]
    return [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions]


def explain(status: int) -> str:
    """Return the name and the text of an error of the driver's."""
    return str(_optional.cupy().cuda.driver.CUDADriverError(status))
