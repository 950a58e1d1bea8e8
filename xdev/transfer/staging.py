"""Copies between pageable memory and a device, through pinned slots, by threads.

:mod:`xdev.transfer.schedule` decides; this does, for arrays of any strides, with casts
(:mod:`xdev.transfer.express` does without Python what is packed). NumPy's copies and
the driver's waits let other threads run, so the lanes of one copy work side by side.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np

from xdev import _config
from xdev.errors import OutOfMemoryError
from xdev.transfer import schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from xdev.transfer.schedule import Piece, Plan, Step

    Steps = Callable[[Iterable[Piece], int], Iterator[Step]]
    Array = np.ndarray[Any, Any]


class Arrival(Protocol):
    """An event after a copy on the bus."""

    def synchronize(self) -> None:
        """Wait until the copy is done."""


class Bus(Protocol):
    """One stream of a device, and the packed array there that is copied.

    Every method may be called from any thread, inside :meth:`entered`.
    """

    threads: int  # how many of them may use it at a time

    def slots(self, count: int, nbytes: int) -> Array:
        """Return uint8 memory of that shape that the device copies from and to.

        Raises
        ------
        OutOfMemoryError
            There is none.
        """

    def entered(self) -> AbstractContextManager[Any]:
        """Return what a thread is in while it uses the bus."""

    def send(self, slot: Array, start: int) -> Arrival:
        """Queue a copy of a slot's bytes to the packed array, from byte ``start``."""

    def fetch(self, start: int, slot: Array) -> Arrival:
        """Queue a copy of the packed array's bytes from byte ``start`` into a slot."""

    def synchronize(self) -> None:
        """Wait for everything that is queued."""


def send(host: Array, dtype: np.dtype[Any], bus: Bus) -> list[Array]:
    """Queue the copy of an array to a device, where it is packed and of ``dtype``.

    Parameters
    ----------
    host : numpy.ndarray
        Any strides and byte order; not empty. It is not used any more afterwards.
    dtype : numpy.dtype
        Of the packed array; ``host`` is cast to it.
    bus : Bus
        Where the copies are queued.

    Returns
    -------
    list of numpy.ndarray
        The slots, to be kept until the stream is done.
    """
    return _run(schedule.upload, host, dtype, bus)


def fetch(host: Array, dtype: np.dtype[Any], bus: Bus) -> None:
    """Copy a packed array of ``dtype`` from a device into ``host``, any strides."""
    _run(schedule.download, host, dtype, bus)


def _run(steps: Steps, host: Array, dtype: np.dtype[Any], bus: Bus) -> list[Array]:
    """Work through all pieces; after an error nothing is queued that uses the slots."""
    if host.flags.c_contiguous:
        host = host.reshape(-1)
    nbytes = host.size * dtype.itemsize
    threads = min(bus.threads, _config.num_threads())
    plan = schedule.plan(nbytes, threads, schedule.GENERAL)
    work = deque(schedule.pieces(host.shape, dtype.itemsize, plan.chunk))
    lanes = [Lane(host, dtype, bus, slots) for slots in _rings(plan, bus)]
    runs: list[Callable[[], None]] = [partial(lane.run, steps, work) for lane in lanes]
    try:
        _together(runs, work)
    except BaseException:
        with suppress(Exception):  # a device that is lost: the first error says it
            bus.synchronize()
        raise
    return [lane.slots for lane in lanes]


def _rings(plan: Plan, bus: Bus) -> Iterator[Array]:
    """Return the slots of each lane; under a tight limit there are fewer lanes."""
    yield bus.slots(plan.slots, plan.chunk)
    for _ in range(plan.lanes - 1):
        try:
            yield bus.slots(plan.slots, plan.chunk)
        except OutOfMemoryError:
            return


@final
class Lane:
    """One thread's share of a copy: it takes pieces, and has slots of its own.

    Parameters
    ----------
    host : numpy.ndarray
        The array in pageable memory.
    dtype : numpy.dtype
        What its elements are on the device.
    bus : Bus
        To the device.
    slots : uint8 array, shape (slots, chunk)
        Memory that the bus copies from and to.
    """

    def __init__(
        self, host: Array, dtype: np.dtype[Any], bus: Bus, slots: Array
    ) -> None:
        self._host, self._dtype, self._bus, self.slots = host, dtype, bus, slots
        self._arrivals: dict[int, Arrival] = {}  # by slot: after its last copy

    def run(self, steps: Steps, work: deque[Piece]) -> None:
        """Take pieces until none is left, or another lane fails."""
        try:
            with self._bus.entered():
                for step in steps(_taken(work), len(self.slots)):
                    getattr(self, step.act.value)(step.slot, step.piece)
        except BaseException:
            work.clear()
            raise

    def wait(self, slot: int, _: Piece) -> None:
        """Wait until the slot's last piece is over the bus."""
        self._arrivals[slot].synchronize()

    def fill(self, slot: int, piece: Piece) -> None:
        """Write a piece into the slot, as the device wants it."""
        part = self._host[piece.where]
        np.copyto(self._view(slot, piece, part.shape), part, "same_kind")

    def send(self, slot: int, piece: Piece) -> None:
        """Queue the slot's copy to the device."""
        bytes_ = self.slots[slot, : piece.nbytes]
        self._arrivals[slot] = self._bus.send(bytes_, piece.start)

    def fetch(self, slot: int, piece: Piece) -> None:
        """Queue a piece's copy from the device into the slot."""
        bytes_ = self.slots[slot, : piece.nbytes]
        self._arrivals[slot] = self._bus.fetch(piece.start, bytes_)

    def drain(self, slot: int, piece: Piece) -> None:
        """Read a piece out of the slot."""
        part = self._host[piece.where]
        np.copyto(part, self._view(slot, piece, part.shape), "same_kind")

    def _view(self, slot: int, piece: Piece, shape: tuple[int, ...]) -> Array:
        return self.slots[slot, : piece.nbytes].view(self._dtype).reshape(shape)


def _taken(work: deque[Piece]) -> Iterator[Piece]:
    """Take pieces off a queue that other threads take from, too."""
    while True:
        try:
            yield work.popleft()
        except IndexError:
            return


def _together(runs: list[Callable[[], None]], work: deque[Piece]) -> None:
    """Run the lanes, the first one here; return or raise when none runs any more."""
    helpers: list[Future[None]] = []
    try:
        for run in runs[1:]:
            try:
                helpers.append(_threads().submit(run))
            except RuntimeError:  # Python shuts down: this thread does it all
                break
        runs[0]()
    except BaseException:
        work.clear()
        raise
    finally:
        # One that did not start yet is behind another copy's, and has nothing to do.
        wait([helper for helper in helpers if not helper.cancel()])
    helpers = [helper for helper in helpers if not helper.cancelled()]
    while helpers:  # an error's frames must not lead back to it: they hold the slots
        helpers.pop().result()


@cache
def _threads() -> ThreadPoolExecutor:
    """Return the threads of all copies; the calling thread is a lane's as well."""
    return ThreadPoolExecutor(max(1, schedule.LANES - 1), "xdev-copy")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.cache_clear)  # a child has no threads
