"""The process's stations: started at first use, and again in a forked child."""

from __future__ import annotations

import ctypes
import os
import threading
from array import array
from functools import cache
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _config
from xdev._c_functions import address_of
from xdev._forks import module_lock
from xdev._machine_code import immortal
from xdev.compile.team import stations as words
from xdev.compile.team.plain import Code
from xdev.memory.native.operations import WORD

if TYPE_CHECKING:
    from collections.abc import Callable

TURNS = 30_000  # looks for what comes next before a thread sleeps: 0.7 ms on an EPYC
MOST = 1024  # threads

# For machine code: where the stations are, and how many; none in a forked child.
STARTED = immortal(np.zeros(2, np.int64))
CODE = Code("threads that help", (words,), {words.lead: 2, words.serve: 4})
_lock = module_lock()  # guards the stations' number


def work(job: array[int], body: int, lanes: int) -> int:
    """Work on a job, with as many threads as come to help; return the first error.

    Parameters
    ----------
    job : array of int64
        Its words; the head is filled in here.
    body : int
        The address of a C function ``body(job, lane)``, which returns 0 or an error.
    lanes : int
        How many threads at most.
    """
    nbytes = WORD * words.LINE
    lines = array("q", bytes(nbytes * (lanes + 1)))  # of which they begin in the first
    start = -(-lines.buffer_info()[0] // nbytes) * nbytes
    helpers = stations()
    job[words.BODY], job[words.LANES], job[words.LINES] = body, lanes, start
    job[words.STATIONS] = helpers.address
    job[words.STATION_COUNT] = helpers.have(lanes - 1)
    job[words.TURNS] = turns()
    job[words.POST], job[words.SLEEP] = c_address("sem_post"), c_address("sem_wait")
    return lead()(job.buffer_info()[0], 0)


@cache
def lead() -> Callable[[int, int], int]:
    """Return :func:`~xdev.compile.team.stations.lead`; other threads run meanwhile."""
    return CODE.function(words.lead)


@cache
def c_address(name: str) -> int:
    """Return the address of a function of the C library."""
    return address_of(getattr(c_library(), name))


@cache
def c_library() -> Any:
    """Return the process's own symbols, the C library among them."""
    return ctypes.CDLL(None)


def turns() -> int:
    """Return how often a thread looks: with more threads than processors, never."""
    return TURNS if _config.num_threads() <= _config.processors() else 0


@final
class Stations:
    """Threads that help with jobs: asleep, they take no part in Python.

    Attributes
    ----------
    address : int
        Of their words.
    count : int
        How many there are.
    """

    def __init__(self) -> None:
        self.count = 0
        # For ever: a thread looks there until the process is gone.
        self._words = immortal(np.zeros((MOST, words.STATION_WORDS), np.int64))
        self.address = int(self._words.ctypes.data)

    def have(self, wanted: int) -> int:
        """Return how many there are, at most ``wanted``; start those that are not."""
        if self.count < wanted:
            with _lock:
                while self.count < min(wanted, MOST):
                    self.count += 1  # a finalizer may have others started meanwhile
                    if not self._start(self.count):
                        self.count -= 1
                        break
                STARTED[:] = self.address, self.count
        return min(self.count, wanted)

    def _start(self, number: int) -> bool:
        station = self._words[number - 1]
        for gate in (words.WORK, words.DONE):
            semaphore = station[gate + words.SEMAPHORE :].ctypes.data
            c_library().sem_init(ctypes.c_void_p(semaphore), 0, 0)
        functions = c_address("sem_post"), c_address("sem_wait")
        arguments = station.ctypes.data, turns(), *functions
        thread = threading.Thread(
            target=CODE.function(words.serve),
            args=arguments,
            name=f"xdev-{number}",
            daemon=True,  # it never ends
        )
        try:
            thread.start()
        except RuntimeError:  # no more threads here, or Python shuts down
            return False
        return True


def stations() -> Stations:
    """Return the process's."""
    with _lock:
        return _stations()


@cache
def _stations() -> Stations:
    return Stations()


def _forget() -> None:
    STARTED[:] = 0
    _stations.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)  # a child has no threads
