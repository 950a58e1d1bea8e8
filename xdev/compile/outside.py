"""The outside names that a function reads, and the globals of its copies."""

from __future__ import annotations

from dis import get_instructions
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

EVERY = ("__builtins__", "__name__")  # what functions themselves are made by
GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
CELLS = frozenset({"LOAD_DEREF"})
ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
BETWEEN = frozenset({"EXTENDED_ARG", "CACHE"})  # no instructions of their own


class Read(NamedTuple):
    """An outside name that code reads, and the attributes that it reads of it."""

    name: str
    cell: bool  # of the closure, not a global
    attributes: tuple[str, ...]


def reads(code: CodeType) -> Iterator[Read]:
    """Return what a function's code reads from outside, and the functions inside it.

    The cells of a function inside may also be variables of the one around it.
    """
    attributes: tuple[str, ...] = ()
    name, cell = "", False
    for instruction in get_instructions(code):
        operation = instruction.opname
        if operation in BETWEEN:
            continue
        if name and operation in ATTRIBUTES:
            attributes = (*attributes, instruction.argval)
            continue
        if name:
            yield Read(name, cell, attributes)
        name, cell, attributes = "", operation in CELLS, ()
        if cell or operation in GLOBALS:
            name = instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from reads(constant)


def named_globals(function: Any, code: CodeType | None = None) -> dict[str, Any]:
    """Return the globals of a function that its code names.

    All of a module's would keep every array of the user's alive.

    Parameters
    ----------
    function : function
        Whose globals.
    code : code, optional
        Another code for it.
    """
    known = function.__globals__
    names = (*EVERY, *_names(function.__code__ if code is None else code))
    return {name: known[name] for name in names if name in known}


def _names(code: CodeType) -> Iterator[str]:
    """Return the names in a function's code, and in that of functions inside."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
