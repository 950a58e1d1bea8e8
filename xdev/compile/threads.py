"""Ranges shared by threads that run without the interpreter's lock.

The caller works along, so that a call always ends: by itself where no worker has time.
"""

from __future__ import annotations

import importlib
from array import array
from typing import TYPE_CHECKING

from xdev import _config, native

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PIECES = 32  # of a thread's share, where they are not too small; others wait for one
PYTHON_PIECES = 4  # where each takes the interpreter's lock
TURNS = 30_000  # looks for what comes next before a thread sleeps: 0.7 ms on an EPYC

# What has the threads; see xdev.native.plain_threads.
team = native.module("threads") or importlib.import_module("xdev.native.plain_threads")


def share(
    function: int, context: int, start: int, stop: int, *, grain: int = 1
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
    """
    team.share(function, context, _shares(start, stop, grain, PIECES))


def elements(
    loop: int,
    shape: Sequence[int],
    places: Sequence[int],
    steps: Sequence[Sequence[int]],
    n: int,
    *,
    grain: int = 1,
) -> int:
    """Run a ufunc's inner loop in threads; return what ``fetestexcept`` told them.

    Parameters
    ----------
    loop : int
        The inner loop's address.
    shape : sequence of int
        Extents of the result; the innermost is last.
    places : sequence of int
        The operands' addresses.
    steps : sequence of sequences of int
        For each extent, the operands' strides [B].
    n : int
        How many elements the result has.
    grain : int
        So many elements or more are worth a piece of their own.
    """
    words = array("q", [len(places), len(shape) - 1, *shape, *places])
    for row in steps:
        words.extend(row)
    told: int = team.elements(loop, words.tobytes(), _shares(0, n, grain, PIECES))
    return told


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
    if _config.num_threads() > 1 and n > grain:
        team.run(task, _shares(0, n, grain, PYTHON_PIECES))
    elif n > 0:
        task(0, n)


def turns() -> int:
    """Return how often a thread looks: with more threads than processors, never."""
    return TURNS if _config.num_threads() <= _config.processors() else 0


def _shares(start: int, stop: int, grain: int, each: int) -> tuple[int, ...]:
    """Return how a range is shared, in so many pieces a thread at most."""
    n, threads = stop - start, _config.num_threads()
    size = -(-n // (each * threads * grain)) * grain
    return start, stop, size, min(threads, -(-n // size)), turns()
