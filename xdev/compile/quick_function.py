"""Python functions whose calls on plain arrays are machine code.

A function of Python's that hands its arguments to NumPy's costs 40 ns, and 16 more for
each look at a type: as much as a third of what NumPy takes for one element. CPython
calls a function by a pointer in it, that may be changed (``PyFunction_SetVectorcall``):
here it leads to machine code that looks at the types and calls what computes. All else
goes where the pointer led before, to the function's own code, so that its signature,
its docstring and what it does with any other arguments stay.
"""

from __future__ import annotations

import ctypes
from functools import cache
from types import FunctionType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _machine_code
from xdev._machine_code import immortal
from xdev.compile.machine_words import HEADER, WORD

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

#: Where a type says where its objects keep that pointer (``tp_vectorcall_offset``).
_OFFSET = HEADER + 5 * WORD


@final
class QuickFunctions:
    """The functions that are called so, all by one piece of machine code.

    Parameters
    ----------
    python, hosts : collection of type
        Python's numbers, which may stand beside arrays of any kind, and NumPy's, which
        may stand beside NumPy's.
    """

    def __init__(self, python: Collection[type], hosts: Collection[type]) -> None:
        from xdev.compile.quick_function_code import (
            API,
            ARRAY,
            HOST_COUNT,
            HOSTS,
            MOST_HOSTS,
            NAME,
            PYTHON_COUNT,
            TABLE,
            WORDS,
            binary,
        )

        place = _machine_code.load(binary())
        self._table = (ctypes.c_int64 * WORDS).from_address(place(TABLE))
        self._code = place(NAME)
        for k, name in enumerate(API):
            self._table[k] = _address(getattr(ctypes.pythonapi, name))
        floats = np.dtype(np.float64), np.dtype(np.float32)
        objects = np.ndarray, *floats, TypeError, ValueError
        self._table[ARRAY : ARRAY + len(objects)] = list(map(id, immortal(objects)))
        kinds = [*python, *(kind for kind in hosts if kind not in python)][:MOST_HOSTS]
        self._table[PYTHON_COUNT], self._table[HOST_COUNT] = len(python), len(kinds)
        self._table[HOSTS : HOSTS + len(kinds)] = list(map(id, immortal(kinds)))
        self._rows: dict[Callable[..., Any], int] = {}

    def add(
        self,
        function: Callable[..., Any],
        nin: int,
        on_host: Callable[..., Any],
        *,
        reals: bool = False,
    ) -> None:
        """Call a function by machine code from now on.

        Parameters
        ----------
        function : function
            Of one or two arguments by position, in this case.
        nin : int
            How many.
        on_host : callable
            What computes NumPy's arrays; a TypeError or ValueError of its sends the
            call to the function's own code.
        reals : bool
            Whether only ``float64`` and ``float32`` may be handed to it.
        """
        from xdev.compile.quick_function_code import (
            COUNT,
            FUNCTION,
            MOST,
            PLACES,
            REALS,
            ROW,
            ROWS,
        )

        if _pointer(function) != _plain() or len(self._rows) >= MOST:
            return  # somebody else's by now
        place = (id(function) >> 4) % PLACES
        while self._table[ROWS + ROW * place]:
            place = (place + 1) % PLACES
        row = self._rows[immortal(function)] = ROWS + ROW * place
        words = FUNCTION, COUNT, REALS
        for k, value in zip(words, (id(function), nin, reals), strict=True):
            self._table[row + k] = value
        self._set(row, 0, on_host)
        _set_pointer(function, self._code)

    def add_kind(
        self, kind: type, find: Callable[[str], Callable[..., Any] | None]
    ) -> None:
        """Serve arrays of another type too, all of one device.

        Parameters
        ----------
        kind : type
            The type.
        find : callable
            Returns what computes them, by a function's name; None for nothing.
        """
        from xdev.compile.quick_function_code import OTHER

        for function, row in self._rows.items():
            self._set(row, 1, find(function.__name__))
        self._table[OTHER] = id(immortal(kind))

    def _set(self, row: int, k: int, target: Callable[..., Any] | None) -> None:
        from xdev.compile.quick_function_code import TARGETS

        self._table[row + TARGETS + k] = 0 if target is None else id(immortal(target))


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@cache
def _plain() -> int:
    """Return where the pointer leads in functions that nobody changed."""
    return _pointer(_plain.__wrapped__)


def _place(function: Any) -> Any:
    offset = ctypes.c_int64.from_address(id(FunctionType) + _OFFSET).value
    return ctypes.c_void_p.from_address(id(function) + offset)


def _pointer(function: Any) -> int:
    return _place(function).value or 0


def _set_pointer(function: Any, code: int) -> None:
    setter = getattr(ctypes.pythonapi, "PyFunction_SetVectorcall", None)
    if setter is not None:
        setter(ctypes.py_object(function), ctypes.c_void_p(code))
    else:  # CPython 3.11
        function.__code__ = function.__code__  # calls that were specialised look again
        _place(function).value = code
