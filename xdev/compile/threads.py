"""Ranges shared by threads that run without the interpreter's lock.

The caller works along, so that a call always ends: by itself where no worker has time.
"""

from __future__ import annotations

import ctypes
from array import array
from typing import TYPE_CHECKING

from xdev import _config
from xdev._c_functions import address_of
from xdev.compile.team import pieces, stations
from xdev.compile.team.plain import Code
from xdev.compile.team.threads import work
from xdev.memory.native.operations import WORD

if TYPE_CHECKING:
    from collections.abc import Callable

PIECES = 32  # of a thread's share, where they are not too small; others wait for one
PYTHON_PIECES = 4  # where each takes the interpreter's lock
CODE = Code(
    "ranges that threads share",
    (stations, pieces),
    {pieces.share: 2, pieces.elements: 4},
)
_PIECE = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 5)


def share(
    function: int,
    context: int,
    start: int,
    stop: int,
    *,
    grain: int = 1,
    each: int = PIECES,
) -> None:
    """Call a C function on the pieces of a range, in as many threads as are useful.

    Parameters
    ----------
    function : int
        The address of ``function(start, stop, context, lane)``, words all. No two
        calls at a time have one lane, and lanes are fewer than ``XDEV_NUM_THREADS``.
    context : int
        Any word.
    start, stop : int
        The range, not empty.
    grain : int
        Pieces start at its multiples, from ``start`` on.
    each : int
        Pieces of a thread, where they are not too small.
    """
    n, threads = stop - start, _config.num_threads()
    size = -(-n // (each * threads * grain)) * grain
    count = -(-n // size)
    job = array("q", bytes(WORD * pieces.JOB_WORDS))
    job[pieces.FUNCTION], job[pieces.CONTEXT] = function, context
    job[pieces.START], job[pieces.STOP] = start, stop
    job[pieces.SIZE], job[pieces.COUNT] = size, count
    work(job, CODE.address(pieces.share), min(threads, count))


def run(task: Callable[[int, int], object], n: int, *, grain: int = 1) -> None:
    """Call ``task(start, stop)`` on the pieces of a range, in several threads.

    Parameters
    ----------
    task : callable
        What works on ``range(start, stop)``. To gain anything it lets go of the
        interpreter's lock, as NumPy does on large arrays.
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
    if _config.num_threads() == 1 or n <= grain:
        if n > 0:
            task(0, n)
        return
    errors: list[BaseException] = []
    done: list[int] = []

    def piece(start: int, stop: int, _context: int, _lane: int) -> int:
        try:
            if not errors:
                task(start, stop)
                done.append(stop - start)
        except BaseException as raised:  # noqa: BLE001 - the caller raises it
            errors.append(raised)
        return 0

    function = _PIECE(piece)
    share(address_of(function), 0, 0, n, grain=grain, each=PYTHON_PIECES)
    try:
        if errors:
            raise errors[0]
        if sum(done) < n:  # an interrupt came before a task began, and is on stderr
            raise KeyboardInterrupt
    finally:
        errors.clear()  # its frames must not lead back to it
