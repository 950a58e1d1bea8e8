"""Ranges shared by threads without the interpreter's lock, where that is worth it.

The caller works along, so that a call always ends: by itself where no worker has time.
What is worth it is measured on the calls themselves, since a function may take a tenth
of a nanosecond for an element, or a microsecond.
"""

from __future__ import annotations

import ctypes
import os
import threading
from array import array
from collections import deque
from contextlib import suppress
from functools import cache, reduce
from operator import or_
from queue import SimpleQueue
from sys import is_finalizing, maxsize
from time import perf_counter
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _config, native
from xdev.errors import XdevError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Shares = tuple[int, int, int, int, int]

COMPILED = native.STATE == native.COMPILED
PYTHON_PIECES = 4  # of a thread's share, where each takes the interpreter's lock
PIECES = 32 if COMPILED else PYTHON_PIECES  # else; others wait for one
PIECE = 5e-6  # seconds of work that are worth a thread's look for them
SPINS = 30_000  # looks for what comes next before a thread sleeps: 0.7 ms on an EPYC

BYTES = bytes.__basicsize__ - 1  # where an object of bytes has them; the 1 ends them


@cache
def team() -> Any:
    """Return what has the threads: the compiled tier, or what stands in for it."""
    return native.module("threads") or PythonTeam


def share(
    function: int, context: int, start: int, stop: int, *, grain: int = 1
) -> None:
    """Call ``function(start, stop, context, lane)`` of C on the pieces of a range.

    All are words. No two calls at a time have one lane, and lanes are fewer than
    ``XDEV_NUM_THREADS``. The range is not empty; pieces start at multiples of
    ``grain``, from ``start`` on.
    """
    team().share(function, context, _shares(start, stop, grain, PIECES))


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

    The result has the extents ``shape`` and ``n`` elements, of which ``grain`` are
    worth a piece of their own; the operands are at addresses, and have strides [B] for
    each extent.
    """
    words = array("q", [len(places), len(shape) - 1, *shape, *places])
    for row in steps:
        words.extend(row)
    exceptions: int = team().elements(
        loop, words.tobytes(), _shares(0, n, grain, PIECES)
    )
    return exceptions


def loop_of(ufunc: np.ufunc, dtype: np.dtype[Any]) -> int:
    """Return the address of a ufunc's inner loop of one data type; 0: none is known."""
    return int(team().loop_of(ufunc, dtype.num)) if COMPILED and dtype.isnative else 0


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
    XdevError
        A task forked, and this is the child.

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
    # At the very end no other thread gets the interpreter's lock.
    if _config.num_threads() > 1 and n > grain and not is_finalizing():
        process = os.getpid()

        def piece(start: int, stop: int) -> None:
            task(start, stop)
            if os.getpid() != process:
                raise XdevError(
                    "a task in several threads was forked, and the others are the "
                    "parent's: end the child in the task, by os._exit"
                )

        team().run(piece, _shares(0, n, grain, PYTHON_PIECES))
    elif n > 0:
        task(0, n)


def spins() -> int:
    """Return how often a thread looks: with more threads than processors, never."""
    return SPINS if _config.num_threads() <= _config.processors() else 0


def _shares(start: int, stop: int, grain: int, each: int) -> Shares:
    """Return how a range is shared, in so many pieces a thread at most."""
    n, threads = stop - start, _config.num_threads()
    size = -(-n // (each * threads * grain)) * grain
    return start, stop, size, min(threads, -(-n // size)), spins()


# What is worth it, where a call may be begun by one thread and gone on with by several.

# Seconds of one thread's work that are worth several threads: some take as long to
# wake, and Python's to start.
LONG = 1e-5 if COMPILED else 1e-3
FEW, PART = 1024, 256  # elements that are timed first: so many, or such a part of few
MORE = 8  # times as many come then
TELLING = 3e-6  # seconds; what takes less tells of the call's own time


def compute(
    loop: Callable[[int, int, bytes], None],
    function: int,
    memory: bytes,
    n: int,
    each: float,
) -> float:
    """Compute a range of ``n``, in several threads where there is enough to do.

    ``loop(start, stop, memory)`` is a C function, ``function`` its address. The seconds
    of an element, ``each``, are those that the last call returned; 0 before.
    """
    lanes, first, now = _config.num_threads(), 0, each
    if lanes > 1 and each * n < LONG:  # by the guess: is it so this time too?
        first, now = _begin(loop, memory, n)
    if lanes == 1 or now * (n - first) < LONG:
        if n > first:
            loop(first, n, memory)
        return each
    start, context = perf_counter(), id(memory) + BYTES
    share(function, context, first, n, grain=int(PIECE / now) + 1)
    return max(perf_counter() - start - LONG, 0.0) * lanes / (n - first)


def _begin(
    loop: Callable[[int, int, bytes], None], memory: bytes, n: int
) -> tuple[int, float]:
    """Compute the first elements; return how many, and the seconds that each took."""
    first, few, each = 0, max(min(n // PART, FEW), 1), 1.0
    while each * (n - first) >= LONG:
        start = perf_counter()
        loop(first, first + few, memory)
        seconds = perf_counter() - start
        first, each = first + few, seconds / few
        if seconds >= TELLING:
            break
        few = min(MORE * few, n - first)
    return first, each


# What is worth it, where a call is one thread's, or several's from the beginning.

CUT = 5 * LONG  # what takes one thread so long is worth several, and their preparation
LEAST = 1024  # elements that tell how long one takes
CALLS = 2  # are measured first: the very first one meets pages that nobody touched yet
CALL = 20e-6  # seconds; a call that takes less says little of the time of an element
SURE = 4  # times CUT: what takes less is measured first at its own size
LINE = 64  # elements: no two threads write to one cache line
SLOWER = 1.25  # so much slower are several threads where the processors have other work
REST = 15  # calls that then go by one thread


@final
class CostModel:
    """How long one thread takes for an element, and so which calls are several's.

    A call of ``times`` as long as ``CUT`` is worth several threads, and so is one of
    ``threshold`` elements; 0: not known yet. They rest where they are ``slower``.
    """

    def __init__(self, times: int = 1, slower: float = SLOWER) -> None:
        self._times, self._slower = times, slower
        self.threshold = maxsize if _config.num_threads() == 1 else 0
        self._calls = self._rest = 0  # measured ones; those to go by one thread
        self._seconds = float("inf")  # for an element, the least measured
        # The same of one thread, for each power of two of sizes: caches end somewhere.
        self._alone: dict[int, float] = {}

    @property
    def small(self) -> int:
        """So many elements or more are worth a look at the time that they take."""
        if self.threshold:
            return self.threshold
        measured = self._calls and self._seconds * LEAST >= self._times * CUT
        return 0 if measured else LEAST

    @property
    def grain(self) -> int:
        """So many elements or more are worth a piece of their own."""
        grain = int(PIECE / self._seconds) + 1
        return grain if grain < LINE else -(-grain // LINE) * LINE

    def is_worth_threads(self, n: int) -> bool:
        """Say whether a call is known to be worth several threads."""
        if self._rest:
            self._rest -= 1
            return False
        sure = n >= SURE * self.threshold or n.bit_length() in self._alone
        return n >= self.threshold > 0 and sure

    def add_serial(self, seconds: float, n: int) -> None:
        """Take in how long one thread took."""
        self._learn(seconds, n)
        if n:
            least = self._alone.get(n.bit_length(), seconds / n)
            self._alone[n.bit_length()] = min(least, seconds / n)

    def add_parallel(self, seconds: float, n: int) -> None:
        """Take in how long several threads took; where that is longer, they rest."""
        alone = self._alone.get(n.bit_length())
        if alone is not None and seconds > self._slower * alone * n:
            self._rest = REST
        self._learn(seconds * _config.num_threads(), n)

    def _learn(self, seconds: float, n: int) -> None:
        if self.threshold < maxsize:
            self._seconds = min(self._seconds, seconds / max(n, 1))
            self._calls += n >= LEAST or seconds >= CALL
            if self._calls >= CALLS:
                self.threshold = max(int(self._times * CUT / self._seconds), 2)


# What stands in for the compiled threads: Python's, which call C by ``ctypes``.

ERRORS = 0x1F  # of floating point, as xdev.compile.formulas.ALL
_WORD = ctypes.c_int64
_PIECE = ctypes.CFUNCTYPE(*[_WORD] * 5)  # lets go of the interpreter's lock
_LOOP = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)


@final
class PythonTeam:
    """The functions that the compiled threads have, too.

    A range given to threads is ``(start, stop, size, lanes, spins)``: where it starts
    and stops, the size of a piece, how many threads work on it at most, and how often
    one looks for what comes next before it sleeps, which the compiled ones alone do.
    """

    @staticmethod
    def share(function: int, context: int, shares: Shares) -> None:
        """Call a C function on the pieces of a range, as :func:`share` does."""
        piece = _PIECE(function)
        _divide(lambda start, stop, lane: piece(start, stop, context, lane), shares)

    @staticmethod
    def run(task: Callable[[int, int], object], shares: Shares) -> None:
        """Call ``task(start, stop)`` on the pieces; raise the first error."""
        _divide(lambda start, stop, _: task(start, stop), shares)

    @staticmethod
    def elements(loop: int, words: bytes, shares: Shares) -> int:
        """Run a ufunc's inner loop on ranges of elements; return ``fetestexcept``'s.

        The words: how many operands; how many dimensions besides the innermost, which
        is last of the extents that follow; the operands' addresses; for each dimension
        their strides.
        """
        count, outer, *_ = values = np.frombuffer(words, np.int64)
        shape, rest = np.split(values[2:], [outer + 1])
        places, *steps = rest.reshape(-1, count)
        call, libc = _LOOP(loop), ctypes.CDLL(None)
        exceptions: list[int] = []

        def piece(start: int, stop: int, _: int) -> None:
            libc.feclearexcept(ERRORS)
            while start < stop:
                here = places + np.dot(np.unravel_index(start, shape), steps)
                n = min(int(shape[-1]) - start % int(shape[-1]), stop - start)
                call(here.ctypes, ctypes.byref(_WORD(n)), steps[-1].ctypes, None)
                start += n
            exceptions.append(libc.fetestexcept(ERRORS))

        _divide(piece, shares)
        return reduce(or_, exceptions, 0)


def _taken(todo: deque[int]) -> Iterator[int]:
    """Take pieces off a queue that other threads take from, too."""
    while todo:
        with suppress(IndexError):  # another thread was faster
            yield todo.popleft()


def _divide(piece: Callable[[int, int, int], object], shares: Shares) -> None:
    """Call ``piece(start, stop, lane)`` on the pieces of a range."""
    first, last, size, lanes, _ = shares
    todo = deque(range(first, last, size))

    def lane(number: int) -> None:
        for start in _taken(todo):
            piece(start, min(start + size, last), number)

    _together(lane, lanes, todo)


def _together(lane: Callable[[int], None], lanes: int, todo: deque[int]) -> None:
    """Run the lanes, the first one here; return or raise when none runs any more.

    The lists tell what is so at any moment, since an interrupt may come at any. A lane
    is noted before it looks for a piece: it is waited for, or finds none. In a child
    that a lane forked there are no others.
    """
    begun, ended = list[int](), list[int]()
    ends: SimpleQueue[None] = SimpleQueue()
    errors: list[BaseException] = []
    process = os.getpid()

    def run(number: int) -> None:
        begun.append(number)
        try:
            lane(number)
        except BaseException as raised:  # noqa: BLE001 - the caller raises it
            todo.clear()
            errors.append(raised)
        ended.append(number)
        ends.put(None)

    try:
        with suppress(RuntimeError):  # no more threads here, or Python shuts down
            for number in range(1, lanes):
                name, args = f"xdev-{number}", (number,)
                threading.Thread(target=run, args=args, name=name, daemon=True).start()
        lane(0)
    except BaseException as raised:  # noqa: BLE001 - likewise
        errors.append(raised)
    over = False
    while not over:
        try:
            todo.clear()
            while len(ended) < len(begun) and os.getpid() == process:
                ends.get()
            over = True
        except BaseException as raised:  # noqa: BLE001 - threads use what is the call's
            errors.append(raised)
    try:
        if errors:
            raise errors[0]
    finally:
        errors.clear()  # an error's frames must not lead back to it
