"""What stands in for the compiled threads: Python's, which call C by ``ctypes``.

That lets go of the interpreter's lock. Of a range given to threads, ``shares`` says:
``(start, stop, size, lanes, spins)``, where it starts and stops, the size of a piece,
how many threads work on it at most, and how often one looks for what comes next before
it sleeps, which concerns the compiled ones alone.
"""

from __future__ import annotations

import ctypes
import os
import threading
from array import array
from collections import deque
from contextlib import suppress
from functools import partial, reduce
from operator import or_
from queue import SimpleQueue
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Shares = tuple[int, int, int, int, int]

ERRORS = 0x1F  # of floating point, as xdev.compile.formulas.ALL
_WORD = ctypes.c_int64
_PIECE = ctypes.CFUNCTYPE(*[_WORD] * 5)
_LOOP = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)


def share(function: int, context: int, shares: Shares) -> None:
    """Call a C function on the pieces of a range.

    Parameters
    ----------
    function : int
        The address of ``function(start, stop, context, lane)``, words all. No two
        calls at a time have one lane.
    context : int
        Any word.
    shares : tuple
        The range.
    """
    piece = _PIECE(function)
    _share(lambda start, stop, lane: piece(start, stop, context, lane), shares)


def run(task: Callable[[int, int], object], shares: Shares) -> None:
    """Call ``task(start, stop)`` on the pieces of a range; raise the first error."""
    _share(lambda start, stop, _: task(start, stop), shares)


def elements(loop: int, words: bytes, shares: Shares) -> int:
    """Run a ufunc's inner loop on ranges of its result's elements.

    Parameters
    ----------
    loop : int
        The inner loop's address.
    words : bytes
        Words: how many operands; how many dimensions besides the innermost, which is
        last of the extents that follow; the operands' addresses; for each dimension
        their strides.
    shares : tuple
        A range of elements.

    Returns
    -------
    int
        What ``fetestexcept`` told, or-ed.
    """
    count, outer, *rest = array("q", words)
    shape, rest = rest[: outer + 1], rest[outer + 1 :]
    places, *steps = (rest[k : k + count] for k in range(0, len(rest), count))
    axes = list(zip(shape, steps, strict=True))[::-1]  # the innermost first
    call, libc, kind = _LOOP(loop), ctypes.CDLL(None), _WORD * count
    inner = kind(*steps[-1])
    exceptions: list[int] = []

    def piece(start: int, stop: int, _: int) -> None:
        libc.feclearexcept(ERRORS)
        while start < stop:
            row, here = start, places
            for extent, strides in axes:
                row, index = divmod(row, extent)
                here = [x + index * k for x, k in zip(here, strides, strict=True)]
            n = min(shape[-1] - start % shape[-1], stop - start)
            call(kind(*here), ctypes.byref(_WORD(n)), inner, None)
            start += n
        exceptions.append(libc.fetestexcept(ERRORS))

    _share(piece, shares)
    return reduce(or_, exceptions, 0)


def _taken(todo: deque[int]) -> Iterator[int]:
    """Take pieces off a queue that other threads take from, too."""
    while todo:
        with suppress(IndexError):  # another thread was faster
            yield todo.popleft()


def _share(piece: Callable[[int, int, int], object], shares: Shares) -> None:
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
    that the first lane forked there are no others.
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
        _workers.have(lanes - 1)
        for number in range(1, lanes):
            _workers.jobs.put(partial(run, number))
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


@final
class _Workers:
    """The threads of all calls; the calling thread is a lane's as well."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._count = 0
        self._lock = threading.RLock()  # guards it; a finalizer may come back here

    def have(self, count: int) -> None:
        """Start those that are not there."""
        with self._lock:
            while self._count < count:
                self._count += 1
                name = f"xdev-{self._count}"
                try:
                    threading.Thread(
                        target=self._serve, args=(self.jobs,), name=name, daemon=True
                    ).start()
                except RuntimeError:  # no more threads here, or Python shuts down
                    break

    @staticmethod
    def _serve(jobs: SimpleQueue[Callable[[], None]]) -> None:
        process = os.getpid()
        while os.getpid() == process:  # else a task forked, and this is the child's
            jobs.get()()


_workers = _Workers()
os.register_at_fork(after_in_child=_workers.__init__)  # a child has no threads
