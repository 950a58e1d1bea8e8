"""What is left of an array whose memory was given back by hand.

The object stays where users hold it, without any memory. A NumPy array gets, in place,
a data type of no bytes with which NumPy itself computes nothing: calls that work pay
no test, and only the way of an error looks whether an argument was freed. An array of
another library gets a class of this module's kind, which no fast way takes.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from xdev.errors import UseAfterFreeError

#: The data type of freed NumPy arrays, this very object. Of two fields: NumPy takes
#: the only field of a record for the record itself, as in ``logical_and``.
FREED = np.dtype([("freed", "V0"), ("memory", "V0")])
_lines: dict[int, tuple[weakref.ref[Any], str]] = {}  # by identity: where it was freed


class Remains:
    """What the class of a freed array of another library than NumPy derives from."""

    __slots__ = ()


def is_freed(x: object) -> bool:
    """Say whether an array's memory was given back by hand."""
    if isinstance(x, np.ndarray):
        return x.dtype is FREED
    return isinstance(x, Remains)


def refuse(name: str, *arguments: object) -> None:
    """Raise UseAfterFreeError if one of a function's arguments was freed."""
    for number, x in enumerate(arguments):
        if is_freed(x):
            raise use_after_free(x, f"{name}: argument {number}")


def remember(x: Any, line: str) -> None:
    """Keep the line that freed an array, for the error, as long as it lives."""
    key = id(x)
    _lines[key] = weakref.ref(x, lambda _: _lines.pop(key, None)), line


def use_after_free(x: Any, what: str = "this array") -> UseAfterFreeError:
    """Return the error for the use of a freed array.

    Parameters
    ----------
    x : array
        What was freed.
    what : str
        The function and argument that it was given as.
    """
    _, line = _lines.get(id(x), (None, ""))
    where = f" at {line}" if line else ""
    return UseAfterFreeError(
        f"{what} of shape {tuple(x.shape)} was freed before{where}, by "
        f"xdev.memory.free: free it after its last use"
    )
