"""Worker threads for loops that run without the interpreter's lock.

The caller works along, so that a call always ends: by itself where no worker has time.
"""

from __future__ import annotations

import ctypes
import os
import threading
from itertools import pairwise
from queue import SimpleQueue
from typing import TYPE_CHECKING, final

from xdev import _config
from xdev.compile.spinning import spin

if TYPE_CHECKING:
    from collections.abc import Callable

SMALLEST = 8  # a piece is at least such a part of a thread's share
TURNS = 2000  # looks for what comes next before a thread sleeps: some 60 µs


def run(task: Callable[[int, int], object], n: int, *, grain: int = 1) -> None:
    """Call ``task(start, stop)`` on the pieces of a range, in several threads.

    Parameters
    ----------
    task : callable
        What works on ``range(start, stop)``. To gain anything it lets go of the
        interpreter's lock, as a function of ``ctypes.CDLL`` and NumPy's ufuncs do.
    n : int
        The length of the whole range.
    grain : int
        Pieces start at its multiples.

    Raises
    ------
    BaseException
        The first that a task raised. All tasks that began have ended by then.

    Examples
    --------
    >>> import numpy as np
    >>> squares = np.arange(1000)
    >>> def square(start, stop):
    ...     squares[start:stop] **= 2
    >>> run(square, 1000)
    >>> int(squares[-1])
    998001
    """
    threads = _config.num_threads()
    if threads == 1 or n <= grain:
        if n > 0:
            task(0, n)
        return
    job = _Job(task, _bounds(n, grain, threads))
    _workers.hand_out(job, threads - 1)
    job.finish()


def _bounds(n: int, grain: int, threads: int) -> list[int]:
    """Return where pieces start, and the end: large ones first, then smaller ones.

    So the threads end at about the same time, also where one of them is held up.
    """
    bounds = [0]
    least = max(n // (SMALLEST * threads), 1)
    while bounds[-1] < n:
        size = max((n - bounds[-1]) // (2 * threads), least)
        bounds.append(min(bounds[-1] + -(-size // grain) * grain, n))
    return bounds


@final
class _Job:
    """One call's pieces. Nobody waits for a thread that is asleep, only for pieces."""

    __slots__ = ("_bounds", "_count", "_done", "_ended", "_failed", "_task")

    def __init__(self, task: Callable[[int, int], object], bounds: list[int]) -> None:
        self._task = task
        self._bounds = list(pairwise(bounds))[::-1]
        self._count, self._failed = len(self._bounds), False
        self._done: SimpleQueue[BaseException | None] = SimpleQueue()
        self._ended = ctypes.c_int64(0)

    def work(self) -> None:
        """Do pieces while there are any; after an error they count as done."""
        while True:
            try:
                start, stop = self._bounds.pop()  # atomic: a piece is one thread's
            except IndexError:
                return
            error = None
            try:
                if not self._failed:
                    self._task(start, stop)
            except BaseException as raised:  # noqa: BLE001 - the caller raises it
                error, self._failed = raised, True
            self._done.put(error)
            if self._done.qsize() == self._count:
                self._ended.value = 1

    def finish(self) -> None:
        """Work along, wait for every piece, and raise the first error."""
        self.work()
        if self._done.qsize() < self._count:
            spin()(ctypes.addressof(self._ended), 0, TURNS)
        errors = [self._done.get() for _ in range(self._count)]
        del self._task  # a thread that wakes late still holds this job, and no arrays
        for error in errors:
            if error is not None:
                raise error


@final
class _Workers:
    """The threads, started at first use and again in a forked child."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin without threads: a forked child has none of its parent's."""
        self._lock = threading.Lock()  # guards the starting
        self._count = 0
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._calls = ctypes.c_int64(0)  # threads that are awake see it change

    def hand_out(self, job: _Job, wanted: int) -> None:
        """Give a job to so many threads."""
        for _ in range(self._started(wanted)):
            self._jobs.put(job)
        self._calls.value += 1

    def _started(self, wanted: int) -> int:
        """Return how many threads there are, at most ``wanted`` of them."""
        if self._count >= wanted:
            return wanted
        with self._lock:
            while self._count < wanted:
                name = f"xdev-{self._count + 1}"
                work = self._jobs, self._calls
                thread = threading.Thread(target=_serve, args=work, name=name)
                thread.daemon = True  # asleep, it keeps no program from ending
                try:
                    thread.start()
                except RuntimeError:  # no more threads here: fewer work, too
                    break
                self._count += 1
            return min(self._count, wanted)


def _serve(jobs: SimpleQueue[_Job], calls: ctypes.c_int64) -> None:
    wait, address = spin(), ctypes.addressof(calls)
    while True:
        job = jobs.get()
        job.work()
        del job  # it holds arrays
        known = calls.value
        if jobs.empty():
            wait(address, known, TURNS)


_workers = _Workers()
os.register_at_fork(after_in_child=_workers.reset)
