"""The call of a ufunc on operands of known types, as a C method of Python.

``Vectorized.__call__`` in Python costs more than NumPy takes for ten elements. This
looks the operands' types up in a table and calls the NumPy ufunc that is there; what it
does not find goes to the Python function.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _machine_code
from xdev._machine_code import immortal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

METHOD = 0x80 | 0x2  # METH_FASTCALL | METH_KEYWORDS
MOST_ROWS, MOST_OPERANDS = 16, 32


class Quick:
    """What has quick calls, once the class was given to :func:`install`.

    Each object remembers ufuncs by the types of their inputs: the dtype of a plain
    NumPy array, else the type.
    """

    # First, and in the alphabet's order: it is where machine code looks.
    __slots__ = ("_quick", "_quick_launches")
    _quick: np.ndarray[Any, Any]
    _quick_launches: np.ndarray[Any, Any]  # the table of quick_launch.Launches

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

    def forget(self) -> None:
        """Send every call to the Python function."""
        if hasattr(self, "_quick"):
            from xdev.compile.quick_call_code import ROWS

            self._quick[ROWS] = 0


_tables: dict[type, Any] = {}  # of the classes that have the method


def install(kind: type[Quick], make_result: Callable[..., Any]) -> None:
    """Put the method in the place of a class's ``__call__``, once.

    Parameters
    ----------
    kind : type
        The class, with the Python function for all other calls.
    make_result : callable
        ``make_result(shape, dtype, size)`` returns a new array in C order.
    """
    python = vars(kind)["__call__"]
    if kind not in _tables:
        setattr(kind, "__call__", _method(kind, python, make_result))  # noqa: B010 - mypy's word


def ask_first(kind: type[Quick], function: int) -> None:
    """Let calls that NumPy cannot do go to machine code before they go to Python.

    Parameters
    ----------
    kind : type
        The class, whose method was installed.
    function : int
        The address of ``f(self, args, nargs, kwnames)``; 0 for none.
    """
    from xdev.compile.quick_call_code import LAUNCH

    _tables[kind][LAUNCH] = function


def _key(x: Any) -> int:
    return id(x.dtype) if type(x) is np.ndarray else id(type(x))


def _method(
    kind: type, python: Callable[..., Any], make_result: Callable[..., Any]
) -> Any:
    """Return the method descriptor; what it points to is kept for ever."""
    from xdev.compile.quick_call_code import (
        API,
        LAUNCH,
        NAME,
        PYTHON,
        TABLE,
        WORDS,
        binary,
    )

    place = _machine_code.load(binary())
    table = (ctypes.c_int64 * WORDS).from_address(place(TABLE))
    api = ctypes.pythonapi
    functions = [ctypes.cast(getattr(api, name), ctypes.c_void_p) for name in API]
    table[: len(API)] = [function.value or 0 for function in functions]
    objects = python, np.ndarray, "out", TypeError, ValueError, make_result, "shape"
    table[PYTHON:LAUNCH] = list(map(id, objects))
    text = f"__call__($self, /, *args, out=None, **keywords)\n--\n\n{python.__doc__}"
    definition = _Definition(b"__call__", place(NAME), METHOD, text.encode())
    immortal((objects, definition))  # finalizers call until the very end
    _tables[kind] = table
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)
    return make(("PyDescr_NewMethod", api))(kind, ctypes.addressof(definition))


class _Definition(ctypes.Structure):
    """CPython's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )
