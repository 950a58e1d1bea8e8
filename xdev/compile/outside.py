"""The globals that a function's copies are made with: those that it names."""

from __future__ import annotations

from types import CodeType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

EVERY = ("__builtins__", "__name__")  # what functions themselves are made by


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
