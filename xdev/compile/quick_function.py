"""Calls of array functions that look at types, as C functions of Python.

A look at a type costs Python 16 ns, and a function of NumPy's is called with one
element in 60. This looks at the types and calls what computes: NumPy's function, or
that of one other library. All else goes to a function of Python's. From Python 3.12 on
it is called in the array function's place, whose frame takes 50 ns; and so is what
makes the one call that a function makes for the other library's arrays.
"""

from __future__ import annotations

import ctypes
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _machine_code
from xdev._c_functions import address_of, call_instead, caller_of, made_of
from xdev._machine_code import immortal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping


@final
class QuickFunctions:
    """Makes such functions, all of one piece of machine code.

    Parameters
    ----------
    python, hosts : collection of type
        Python's numbers, which may stand beside arrays of any kind, and NumPy's, which
        may stand beside NumPy's.
    """

    def __init__(self, python: Collection[type], hosts: Collection[type]) -> None:
        from xdev.compile import quick_function_code as code

        place = _machine_code.load(code.binary())
        words: Any = (ctypes.c_int64 * code.WORDS).from_address(place(code.TABLE))
        self._table = np.frombuffer(words, np.int64)
        for k, name in enumerate(code.API):
            self._table[k] = address_of(getattr(ctypes.pythonapi, name))
        floats = np.dtype(np.float64), np.dtype(np.float32)
        names = ("out",)
        errors = TypeError, ValueError, RuntimeError
        kinds = np.ndarray, *floats, list, tuple
        self._fill(code.NONE, None, names, *names, *errors, *kinds)
        numbers = [*python, *(kind for kind in hosts if kind not in python)]
        numbers = numbers[: code.MOST_HOSTS]
        self._table[code.PYTHON_COUNT], self._table[code.HOST_COUNT] = (
            len(python),
            len(numbers),
        )
        self._fill(code.HOSTS, *numbers)
        self._place = place
        self._rows: list[tuple[str, Any]] = []
        self._handing: list[tuple[Any, ...]] = []

    def _fill(self, first: int, *objects: object) -> None:
        self._table[first : first + len(objects)] = list(map(id, immortal(objects)))

    def make(
        self,
        function: Any,
        general: Callable[..., Any],
        numpys: Callable[..., Any],
        *,
        reals: bool = False,
    ) -> Callable[..., Any]:
        """Return ``call(*inputs, out)``, for one or two inputs.

        Where Python can, it no longer calls the function for such calls.

        Parameters
        ----------
        function : function
            Calls it, ``out`` being None by default. By its name :meth:`serve` finds
            what computes other arrays.
        general : callable
            Takes the same, and serves all else.
        numpys : callable
            Takes the inputs, if they are NumPy's arrays, and an ``out`` of their shape
            that is not None; a TypeError or ValueError of its sends the call to
            ``general``.
        reals : bool
            Whether ``float64`` and ``float32`` alone may be handed to it.
        """
        from xdev.compile import quick_function_code as code

        k = len(self._rows)
        row = self._table[code.ROWS + k * code.ROW :][: code.ROW]
        row[code.GENERAL : code.GENERAL + 2] = _words(general)
        row[code.NUMPYS : code.NUMPYS + 2] = _words(numpys)
        row[code.REALS] = reals
        row[code.INPUTS] = function.__code__.co_argcount - 1
        row[code.PYTHON] = caller_of(function)
        self._rows.append((function.__name__, row))
        call_instead(function, self._place(code.VECTORCALL(k)))
        return made_of("call", self._place(code.NAME), row)

    def hand_on(
        self,
        name: str,
        function: Any,
        theirs: Callable[..., Any],
        *,
        arrays: int,
        defaults: Mapping[str, object],
        given: Collection[str],
        nones: Mapping[str, object],
    ) -> None:
        """Let a call of a function be that of what it calls itself, where it can be.

        Parameters
        ----------
        name : str
            By it :meth:`serve` finds what replaces ``theirs``.
        function : function
            Hands all it is given on: by place what it takes by place, by name the rest.
            If it does more for some calls, those are not among these.
        theirs : callable
            What computes the other type's arrays. If it only calls what its attribute
            ``tried`` is, but where that raises a RuntimeError, it is left out.
        arrays : int
            How many of its first arguments must be such arrays; 0: the first must be a
            list or tuple of them; -1: it takes any number of them.
        defaults : mapping
            What is handed on by name where a call says nothing of it, unless it is the
            default there too.
        given : collection of str
            What of that a call may say.
        nones : mapping
            What None stands for as a default there.
        """
        from xdev.compile import quick_function_code as code

        k = len(self._handing)
        row = self._table[code.HANDING + k * code.HANDING_ROW :][: code.HANDING_ROW]
        row[code.ARRAYS] = arrays
        row[code.PLACES] = (
            code.MANY if arrays == code.MANY else function.__code__.co_argcount
        )
        row[code.INSTEAD] = caller_of(function)
        known = defaults, given, nones
        _aim(row, theirs, *known)
        self._handing.append((name, row, *known))
        call_instead(function, self._place(code.HAND_ON(k)))

    def serve(self, kind: type, functions: Mapping[str, Callable[..., Any]]) -> None:
        """Serve arrays of another type too, all of one device.

        Parameters
        ----------
        kind : type
            The type.
        functions : mapping
            What computes them, by a function's name.
        """
        from xdev.compile import quick_function_code as code

        for name, row in self._rows:
            row[code.OTHERS : code.OTHERS + 2] = _words(functions[name])
        for name, row, *known in self._handing:
            _aim(row, functions[name], *known)
        self._fill(code.OTHER, kind)


def _aim(
    row: Any,
    function: Callable[..., Any],
    defaults: Mapping[str, object],
    given: Collection[str],
    nones: Mapping[str, object],
) -> None:
    """Have a row that hands on call a function, or what that one tries first."""
    from xdev.compile import quick_function_code as code

    tried = getattr(function, "tried", None)
    theirs = _defaults(tried or function)
    theirs |= {key: nones[key] for key in nones if theirs.get(key, theirs) is None}
    alike = [key for key in defaults if _same(defaults[key], theirs.get(key, theirs))]
    unlike = [key for key in defaults if key not in alike]
    names, unnamed = immortal((*unlike, *alike)), immortal(tuple(unlike))
    words = row.copy()
    words[code.TARGET : code.TARGET + 2] = _words(tried or function)
    words[code.AGAIN] = tried is not None
    words[code.KEYWORDS], words[code.NAMED] = id(names) if names else 0, len(names)
    words[code.UNNAMED] = id(unnamed) if unnamed else 0
    for at, key in enumerate(names):
        words[code.DEFAULTS + at] = id(immortal(defaults[key]))
        words[code.GIVEN + at] = id(key) if key in given else 0
    row[:] = words  # at once: other threads call


def _defaults(function: Any) -> dict[str, object]:
    """Return the defaults of a function of Python's, by name; none of any other."""
    if isinstance(function, partial):
        return _defaults(function.func) | function.keywords
    if not isinstance(function, FunctionType):
        return {}
    values = function.__defaults__ or ()
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    by_place = zip(reversed(names), reversed(values), strict=False)
    return {**dict(by_place), **(function.__kwdefaults__ or {})}


def _same(one: object, other: object) -> bool:
    """Say whether two defaults are the same: None, a number or a text."""
    return type(one) is type(other) and one == other


def _words(function: Callable[..., Any]) -> tuple[int, int]:
    """Return a callable's address, and that of what calls it by PEP 590."""
    return id(immortal(function)), caller_of(function)
