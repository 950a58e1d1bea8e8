"""The call of a ufunc on operands of known types, as machine code.

``Vectorized.__call__`` in Python costs more than NumPy takes for ten elements. This
looks the operands' types up in a table and calls the NumPy ufunc that is there; what it
does not find goes to the Python function. CPython calls it without a tuple or a dict of
the arguments: by PEP 590, as it calls its own C functions.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _machine_code
from xdev._c_functions import (
    Word,
    address_of,
    let_call,
    of_numpy,
    slot,
    understood,
    word_of,
)
from xdev._machine_code import immortal
from xdev.memory.blocks import Chunk
from xdev.memory.owners import HostLease
from xdev.memory.spares import KEPT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST_ROWS, MOST_OPERANDS = 16, 32


class Quick(Word):  # type: ignore[misc] # made in C
    """What has quick calls, once the class was given to :func:`install`.

    Each object remembers ufuncs by the types of their inputs: the dtype of a plain
    NumPy array, else the type.
    """

    # Behind the word, and in the alphabet's order: it is where machine code looks.
    __slots__ = ("_quick", "_quick_launches")
    _quick: np.ndarray[Any, Any]
    _quick_launches: np.ndarray[Any, Any]  # the table of quick_launch.Launches

    def connect(self) -> None:
        """Let machine code be called, if the class has it."""
        code = _codes.get(type(self))
        if code is not None:
            word_of(self).value = code.address

    def remember(
        self,
        inputs: Sequence[Any],
        ufunc: np.ufunc,
        *,
        outputs: Sequence[np.dtype[Any]],
        limits: tuple[int, int],
    ) -> None:
        """Call the ufunc from now on where inputs have these types.

        Parameters
        ----------
        inputs : sequence
            Examples of the inputs.
        ufunc : numpy.ufunc
            Kept for ever by others, as are the dtypes.
        outputs : sequence of numpy.dtype
            Of one output, ``out`` may be given as an array.
        limits : tuple of two int
            A result of so many elements comes from the pool; so many are too many for
            a quick call.
        """
        from xdev.compile.quick_call_code import HEAD, ROW, ROWS

        nin = len(inputs)
        if nin > MOST_OPERANDS:
            return
        if not hasattr(self, "_quick"):
            table = np.zeros(HEAD + MOST_ROWS * (nin + ROW), np.int64)
            table[:HEAD] = nin, nin + (len(outputs) == 1), 0
            self._quick = table
        table = self._quick
        rows = table[HEAD:].reshape(MOST_ROWS, nin + ROW)
        row = [*map(_key, inputs), id(ufunc), id(outputs[0]), *limits]
        count = int(table[ROWS])
        known = (rows[:count, :nin] == row[:nin]).all(axis=1).nonzero()[0]
        k = int(known[0]) if known.size else count % MOST_ROWS
        rows[k] = row
        table[ROWS] = max(count, k + 1)
        self.connect()

    def forget(self) -> None:
        """Send every call to the Python function."""
        if hasattr(self, "_quick"):
            from xdev.compile.quick_call_code import ROWS

            self._quick[ROWS] = 0


class _Code:
    """The machine code of a class.

    Parameters
    ----------
    python : callable
        The class's ``__call__``.
    make_result : callable
        What makes a new array where no spare fits.
    """

    def __init__(
        self, python: Callable[..., Any], make_result: Callable[..., Any]
    ) -> None:
        from xdev.compile import quick_call_code as code

        place = _machine_code.load(code.binary())
        self.address = place(code.NAME)
        self.table = (ctypes.c_int64 * code.WORDS).from_address(place(code.TABLE))
        for k, name in enumerate(code.API):
            self.table[k] = address_of(getattr(ctypes.pythonapi, name))
        for k, number in enumerate(code.NUMPY_API, code.NEW_ARRAY):
            self.table[k] = of_numpy("_ARRAY_API", number)
        # Kept for ever: finalizers call until the very end.
        objects = (
            *(python, np.ndarray, "out", TypeError, ValueError, OverflowError),
            *(make_result, "shape", HostLease, KEPT),
        )
        self.table[code.PYTHON : code.AT_ARRAY] = list(map(id, immortal(objects)))
        self.table[code.AT_ARRAY] = slot(HostLease, "array")
        self.table[code.AT_CHUNK] = slot(HostLease, "chunk")
        self.table[code.AT_REUSES] = slot(Chunk, "reuses")


_codes: dict[type, _Code] = {}


def install(kind: type[Quick], make_result: Callable[..., Any]) -> None:
    """Give a class its machine code, once; each object connects itself.

    Parameters
    ----------
    kind : type
        The class, with the Python function ``__call__`` for all other calls.
    make_result : callable
        ``make_result(shape, dtype, size)`` returns a new array in C order, where none
        of :mod:`xdev.memory.spares` has the shape and dtype.
    """
    if kind not in _codes and understood(kind):
        _codes[kind] = _Code(vars(kind)["__call__"], make_result)
        let_call(kind)


def ask_first(kind: type[Quick], function: int) -> None:
    """Let calls that NumPy cannot do go to machine code before they go to Python.

    Parameters
    ----------
    kind : type
        The class, which has its machine code.
    function : int
        The address of ``f(self, args, nargs, kwnames)``; 0 for none.
    """
    from xdev.compile.quick_call_code import LAUNCH

    if kind in _codes:
        _codes[kind].table[LAUNCH] = function


def _key(x: Any) -> int:
    return id(x.dtype) if type(x) is np.ndarray else id(type(x))
