"""Python's integers that functions take: an array on a device is none of them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: By their names in NumPy's functions: the parameters that are integers of Python's, or
#: sequences of them; and the one truth.
INTEGERS = frozenset(
    (
        *("axes", "axis", "axis1", "axis2", "destination", "k", "keepdims", "n"),
        *("newshape", "num", "offset", "reps", "s", "shape", "source"),
    )
)
#: Those that are sequences of integers, or arrays.
COUNTS = frozenset(("repeats", "shift"))


def positions(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a function's parameters that are given by position.

    Examples
    --------
    >>> import numpy as np
    >>> positions(np.expand_dims)
    ('a', 'axis')
    """
    if isinstance(function, np.ufunc):  # NumPy 2.3 has no signatures of them
        inputs = [f"x{k + 1}" for k in range(function.nin)]
        return (*(inputs if inputs[1:] else ["x"]), *["out"] * function.nout)
    try:
        found = inspect.signature(function).parameters.values()
    except ValueError:  # nor has it of others that are written in C
        return ()
    place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(each.name for each in found if each.kind in place)


def refuse_arrays(name: str, kind: Any, arguments: Iterable[tuple[str, Any]]) -> None:
    """Refuse arrays where Python's integers belong.

    Parameters
    ----------
    name : str
        The function's, for the error.
    kind : type
        The arrays'.
    arguments : iterable of (str, object)
        What it got, by the names of its parameters.

    Raises
    ------
    TypeError
        One of them is such an array, or holds one.
    """
    for label, x in arguments:
        if label in INTEGERS or (label in COUNTS and not isinstance(x, kind)):
            _refuse(name, kind, label, x)


def _refuse(name: str, kind: Any, label: str, x: Any) -> None:
    if isinstance(x, list | tuple):
        for index, part in enumerate(x):
            _refuse(name, kind, f"{label}[{index}]", part)
    elif isinstance(x, kind):
        kind_of_it = "bool" if label == "keepdims" else "int"
        way = f"tuple({label}.tolist())" if x.ndim else f"{kind_of_it}({label})"
        message = (
            f"{name}: {label} is an array on {x.device}, which turns into no "
            f"{kind_of_it} of Python's unasked: pass {way}"
        )
        raise TypeError(message)
