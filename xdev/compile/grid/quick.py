"""Known calls of a kernel, made by machine code: its table, and the rows in it.

What the code does is told in :mod:`xdev.compile.grid.calls`.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from itertools import chain, count
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _config
from xdev._c_functions import address_of, let_call, slot, understood
from xdev._machine_code import immortal
from xdev.compile import grid, machine_words
from xdev.compile.grid import called, calls
from xdev.compile.grid.called import MOST
from xdev.compile.team import pieces, stations, threads
from xdev.compile.team.plain import Code
from xdev.compile.threads import CODE as SHARING, PIECES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from xdev.compile.grid.called import Connection

NANO = 1e9  # nanoseconds in a second
CALLS = 1_000  # of known kind, of all kernels: then the code is worth compiling
# Python without its lock has larger objects, and no moment at which nobody else can
# change a row.
LOCKED = object.__basicsize__ == 16  # noqa: PLR2004
API = (
    "PyObject_Vectorcall",
    "Py_IncRef",
    "PyLong_AsLongLongAndOverflow",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
)
CODE = Code(
    "calls of kernels",
    (stations, calls),
    {calls.again: 4},
    also=(machine_words, pieces, grid, called),
)
_asked = count()


def is_worth_it() -> bool:
    """Say whether the code is on disk, or by now so many have asked for it.

    To compile it takes a second, once per machine.
    """
    return next(_asked) >= CALLS or _kept()


@cache
def _kept() -> bool:
    return CODE.kept()


@final
@dataclass(frozen=True, slots=True)
class Given:
    """What an argument has to be.

    Parameters
    ----------
    kind : numpy.dtype or type
        The dtype of an array, this very object; the type of a number.
    axes : int
        An array's number of axes; of a number what is done with it, as
        :mod:`~xdev.compile.grid.calls` has it: ``COPIED`` and those that follow.
    detail : int
        An array's flags; the words of a number that is copied.
    """

    kind: object
    axes: int
    detail: int


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """By which the code decides whether threads share a call's points.

    Parameters
    ----------
    long, telling, own, piece : float
        Seconds, as :mod:`xdev.ufunc.kernels.cpu` tells of them.
    few, part, more : int
        Its numbers of points.
    """

    long: float
    telling: float
    own: float
    piece: float
    few: int
    part: int
    more: int

    @property
    def words(self) -> tuple[int, ...]:
        """As a row has them."""
        seconds = self.long, self.telling, self.own, self.piece
        return *map(_nanoseconds, seconds), self.few, self.part, self.more, PIECES


@final
class Rows:
    """The calls that machine code makes of one object.

    Parameters
    ----------
    connection : Connection
        Of the object, which keeps this one.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection, self._table = connection, connection.table
        self._kept: list[tuple[NDArray[np.int64], object]] = []

    def add(
        self,
        given: Sequence[Given],
        memory: bytes,
        loop: int,
        points: int,
        *,
        limits: Limits,
        seconds: float,
        kept: object,
    ) -> None:
        """Make such calls by machine code from now on.

        Parameters
        ----------
        given : sequence of Given
            The arguments.
        memory : bytes
            The loop's, with any addresses and numbers.
        loop : int
            The loop's address.
        points : int
            How many it computes.
        limits : Limits
            By which points are shared.
        seconds : float
            What they may take, all threads' together; 0: it is not known.
        kept : object
            What the loop needs.
        """
        process = _process(self._connection.kind)
        number = int(self._table[calls.ROW_COUNT])
        if process is None or number == MOST:
            return
        row = _row(given, memory, loop, points, limits)
        row[calls.COST] = _nanoseconds(seconds)
        self._kept.append((row, (given, kept)))
        self._table[calls.PROCESS] = _address(process)
        self._table[calls.FIRST_ROW + number] = _address(row)
        self._table[calls.ROW_COUNT] = number + 1
        self._connection.word.value = int(process[calls.AGAIN])

    def clear(self) -> None:
        """Send every call to Python."""
        self._table[calls.ROW_COUNT] = 0
        # Another thread may be in machine code, which it entered by a row.
        self._kept = [each for each in self._kept if each[0][calls.BUSY]]


def _row(
    given: Sequence[Given], memory: bytes, loop: int, points: int, limits: Limits
) -> NDArray[np.int64]:
    """Return a row's words, with the loop's memory and the threads' job behind them."""
    lanes, specs = _config.num_threads(), calls.SPEC_WORDS * len(given)
    words = np.frombuffer(memory, np.int64)
    start = calls.SPECS + specs
    job_at = start + words.size
    lines_at = job_at + pieces.JOB_WORDS
    row = np.zeros(lines_at + stations.LINE * (lanes + 1), np.int64)
    row[start:job_at] = words
    known = ((id(each.kind), each.axes, each.detail) for each in given)
    row[calls.SPECS : start] = list(chain.from_iterable(known))
    slots, job, after = (_address(row[k:]) for k in (start, job_at, lines_at))
    row[calls.RUN], row[calls.MEMORY] = loop, slots
    row[calls.POINTS], row[calls.THREADS] = points, lanes
    row[calls.LONG : calls.PIECES + 1] = limits.words
    row[calls.SLOTS] = slots + grid.WORD * grid.HEADER
    row[calls.LAYOUTS] = row[calls.SLOTS] + grid.WORD * grid.SLOT * len(given)
    row[calls.JOB], row[calls.GIVEN] = job, len(given)
    filled = row[job_at:lines_at]
    filled[stations.BODY] = SHARING.address(pieces.share)
    nbytes = grid.WORD * stations.LINE
    filled[stations.LINES] = -(-after // nbytes) * nbytes
    filled[stations.TURNS] = threads.turns()
    filled[stations.POST] = threads.c_address("sem_post")
    filled[stations.SLEEP] = threads.c_address("sem_wait")
    filled[pieces.FUNCTION], filled[pieces.CONTEXT] = loop, slots
    filled[pieces.STOP] = points
    return row


@cache
def _process(kind: type[Any]) -> NDArray[np.int64] | None:
    """Return the process's words, for a class whose objects may then use them."""
    known = understood(kind) and slot(called.Called, "_table") == calls.TABLE
    if not LOCKED or not known:
        return None
    # For ever: finalizers call until the very end.
    words = immortal(np.zeros(calls.PROCESS_WORDS, np.int64))
    objects = immortal((None, True, np.ndarray))
    words[calls.NONE : calls.AGAIN] = list(map(id, objects))
    words[calls.AGAIN] = CODE.address(calls.again)
    functions = [address_of(getattr(ctypes.pythonapi, name)) for name in API]
    words[calls.PYTHON : calls.CLOCK] = functions
    words[calls.CLOCK] = threads.c_address("clock_gettime")
    words[calls.HELPERS] = _address(threads.STARTED)
    let_call(kind)
    return words


def _address(words: NDArray[np.int64]) -> int:
    return int(words.ctypes.data)


def _nanoseconds(seconds: float) -> int:
    return int(min(seconds * NANO, calls.FOR_EVER))
