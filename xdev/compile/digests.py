"""Names for all that a function computes: its code, and the values that the code reads.

They are the keys of compiled code on disk. What changes nothing is left out: where the
function stands, what it is called, what its docstring says. A value that no text tells
in full, such as an object of a user's class, leaves the function without a digest.
"""

from __future__ import annotations

import hashlib
import linecache
import os
import sys
from functools import cache
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN = (int, float, complex, bool, str, bytes, type(None), type(...))
LIBRARIES = frozenset({"builtins", "math", "cmath", "operator", "numpy", "numba"})
COMPILERS = ("numba", "llvmlite", "numpy", "xdev_array")
NAMED = {FunctionType, type, type(np.real)}  # callables that know their full names
SOURCES = (".py", ".cu", ".cuh")
HAS_DOCSTRING = 0x4000000  # a code object's flag


def digest(
    function: Callable[..., Any],
    within: Callable[[object], object] = lambda value: value,
) -> str | None:
    """Return a name for what a function computes, None where it has none.

    Parameters
    ----------
    function : callable
        A Python function.
    within : callable
        Turns a value that the function reads into the plain function that it stands
        for, or returns it.

    Examples
    --------
    >>> def scaled(x, factor=2.0):
    ...     "Return a multiple."
    ...     return x * factor
    >>> def other(x, factor=2.0):
    ...     "Return the same."
    ...     return x * factor
    >>> digest(scaled) == digest(other) == digest(scaled)
    True
    >>> other.__defaults__ = (3.0,)
    >>> digest(scaled) == digest(other)
    False
    """
    digester = _Digester(within)
    try:
        digester.function(function)
    except _Untold:
        return None
    return digester.found.hexdigest()


def joined(*parts: object) -> str:
    """Return one key of several values, of which each has its own ``repr``."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


@cache
def environment() -> str:
    """Return what compiled code depends on but the function: compilers, our own code.

    It is found without loading a compiler, and without reading our files: when they
    were changed, and their sizes, tell them apart, as they do for Python's own cache.
    """
    versions = [(name, _optional.distributions().get(name)) for name in COMPILERS]
    parts: list[object] = [versions, sys.implementation.cache_tag]
    here = os.path.dirname(__file__)  # noqa: PTH120 - pathlib doubles the time
    folders = [here, f"{here}/../ufunc"]
    for folder in folders:  # it grows
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name.endswith(SOURCES):
                    found = entry.stat()
                    parts.append((entry.name, found.st_size, found.st_mtime_ns))
                elif "." not in entry.name and not entry.name.startswith("_"):
                    folders.append(entry.path)
    return joined(*parts)


class _Untold(Exception):  # noqa: N818 - it never leaves this module
    """A value has no text that tells it in full."""


@final
class _Digester:
    """Takes in values, each after its kind; functions once."""

    def __init__(self, within: Callable[[object], object]) -> None:
        self.found = hashlib.sha256()
        self._within = within
        self._seen: dict[FunctionType, int] = {}

    def function(self, function: Any) -> None:
        """Take in a function with its defaults and all that it reads."""
        if function in self._seen:
            return self._text("seen", self._seen[function])
        self._seen[function] = len(self._seen)
        code: CodeType = function.__code__
        # Without its source, a function's literals would keep the compiler's own types.
        if not linecache.getline(code.co_filename, code.co_firstlineno):
            raise _Untold
        self._text("function")
        self.value(function.__defaults__)
        self.value(tuple(sorted((function.__kwdefaults__ or {}).items())))
        self._code(code)
        known = function.__globals__
        for name in _names(code):
            if name in known:
                self._text("global", name)
                self._outside(known[name], _names(code))
        for cell in function.__closure__ or ():
            try:
                self._outside(cell.cell_contents, _names(code))
            except ValueError as error:  # not assigned yet
                raise _Untold from error
        return None

    def value(self, value: Any) -> None:
        """Take in a value.

        Raises
        ------
        _Untold
            There is no text that tells it in full.
        """
        value = self._within(value)
        kind = type(value)
        if kind in PLAIN:
            self._text(kind.__name__, value)
        elif kind in {tuple, frozenset}:
            items = value if kind is tuple else sorted(value, key=repr)
            self._text(kind.__name__, len(value))
            for item in items:
                self.value(item)
        elif kind is CodeType:
            self._code(value)
        elif isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
            self._text(kind.__name__, value.dtype.str, value.shape)
            self.found.update(value.tobytes())
        elif isinstance(value, np.dtype):
            self._text("dtype", value)
        else:
            self._callable(value)

    def _callable(self, value: Any) -> None:
        """Take in a function: one of a library by its name alone."""
        kind = type(value)
        compiled = getattr(value, "py_func", None)
        if kind is BuiltinFunctionType and isinstance(value.__self__, ModuleType):
            self._text("builtin", value.__self__.__name__, value.__name__)
        elif kind is np.ufunc:
            self._text("ufunc", value.__name__)
        elif _library(kind.__module__) and type(compiled) is FunctionType:
            self._text("compiled", sorted(value.targetoptions.items()))
            self.function(compiled)
        elif kind.__module__.startswith("numba.core.types."):
            self._text("type", str(value))
        elif kind in NAMED and _library(value.__module__):
            self._text("library", value.__module__, value.__qualname__)
        elif kind is FunctionType:
            self.function(value)
        else:
            raise _Untold

    def _outside(self, value: Any, names: tuple[str, ...]) -> None:
        """Take in an outside value; of a user's module, what the code may read."""
        if not isinstance(value, ModuleType):
            self.value(value)
            return
        self._text("module", value.__name__)
        if not _library(value.__name__):
            for name in names:
                if name in vars(value):
                    self._text("attribute", name)
                    rest = tuple(other for other in names if other != name)
                    self._outside(vars(value)[name], rest)

    def _code(self, code: CodeType) -> None:
        """Take in instructions and constants; not line numbers, nor a docstring."""
        shape = code.co_argcount, code.co_kwonlyargcount, code.co_flags
        self._text("code", *shape, code.co_code, code.co_names)
        self._text(code.co_freevars, code.co_cellvars, code.co_exceptiontable)
        constants = code.co_consts
        if constants and isinstance(constants[0], str) and _documented(code):
            constants = ("", *constants[1:])
        self.value(constants)

    def _text(self, *words: object) -> None:
        self.found.update(repr(words).encode() + b"\n")


def _names(code: CodeType) -> tuple[str, ...]:
    """Return the outside names of a function, those of its inner functions too."""
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return (*code.co_names, *(name for c in inner for name in _names(c)))


def _documented(code: CodeType) -> bool:
    """Say whether a text that is the first constant is the docstring."""
    if sys.version_info >= (3, 13):
        return bool(code.co_flags & HAS_DOCSTRING)
    return not code.co_name.startswith("<")


def _library(module: str | None) -> bool:
    """Say whether a module is of a library whose version is in every key."""
    return (module or "").partition(".")[0] in LIBRARIES
