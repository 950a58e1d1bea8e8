"""What calls, and values from outside, are known to be."""

from __future__ import annotations

import ast
import math
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.ufunc.widths.kinds import (
    BOOL,
    NUMBERS,
    Kind,
    binary,
    is_dtype,
    mixed,
    operated,
    same,
    together,
    weak,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Kinds = tuple[Kind, ...]

# Of a number the number itself, or nothing that is meant.
REDUCTIONS = [
    getattr(np, nan + name)
    for name in ("sum", "prod", "mean", "std", "var", "max", "min", "median")
    for nan in ("", "nan")
] + [np.any, np.all, np.ptp, np.average, np.cumsum, np.cumprod, np.argmax, np.argmin]
EXTREMES = frozenset({"max", "min"})
DIVISION = "divmod"
CASTS = {
    "bool": BOOL,
    "int": int,
    "float": float,
    "complex": complex,
    "len": int,
    "round": int,
}


def value(found: object) -> Kind:
    """Return the kind of an outside value."""
    if type(found) in NUMBERS:
        return found
    if isinstance(found, bool):
        return BOOL
    if isinstance(found, np.generic):
        return _dtype(found.dtype)
    return tuple(map(value, found)) if type(found) is tuple else None


def call(name: str, function: Any, kinds: Kinds) -> Kind:
    """Return the kind of what a function gives.

    Parameters
    ----------
    name : str
        That of a builtin, or ''.
    function : object
        Else what is called.
    kinds : tuple of kinds
        Its arguments'.
    """
    if name in CASTS and (name, len(kinds)) != ("round", 2):
        return CASTS[name]
    if name in EXTREMES and kinds:
        return _extreme(kinds)
    if isinstance(function, type) and issubclass(function, np.generic):
        return _dtype(np.dtype(function))
    if getattr(function, "__module__", "") == "math":
        return _mathematical(function, kinds)
    return _arithmetic(name, kinds)


def reduces_number(function: object, kinds: Kinds) -> bool:
    """Say whether a call makes one number of one number, where an array is meant."""
    is_number = bool(kinds) and (is_dtype(kinds[0]) or weak(kinds[0]) is not None)
    return is_number and any(function is each for each in REDUCTIONS)


def ufunc(function: np.ufunc, kinds: Kinds) -> tuple[Any, Kind]:
    """Return the dtypes that one of NumPy's ufuncs takes, and what it gives.

    None where compilers have others: where NumPy has float16.
    """
    known = all(is_dtype(kind) or weak(kind) for kind in kinds)
    strong = any(map(is_dtype, kinds))
    if not known or not strong or (function.nin, function.nout) != (len(kinds), 1):
        return None, None
    try:
        dtypes = function.resolve_dtypes(
            (*(weak(kind) or kind for kind in kinds), None)
        )
    except TypeError:
        return None, None
    *taken, given = dtypes
    half = any(dtype.char == "e" for dtype in dtypes)
    return (None, None) if half else (tuple(taken), given)


def _dtype(dtype: np.dtype[Any]) -> Kind:
    return dtype if is_dtype(dtype) and dtype.char not in "egG" else None


def _extreme(kinds: Kinds) -> Kind:
    """Return the kind of the largest, or smallest, of several, or of a tuple's items.

    Uint64 and signed integers have no common dtype.
    """
    found = None if mixed(*kinds) else reduce(together, kinds, kinds[0])
    return None if isinstance(found, tuple) else weak(found) or found


def _arithmetic(name: str, kinds: Kinds) -> Kind:
    """Return the kind of what a builtin that is an operator too gives."""
    if name == DIVISION and len(kinds) == 2:  # noqa: PLR2004 - the two divided
        return binary(ast.FloorDiv(), *kinds), binary(ast.Mod(), *kinds)
    if name == "abs" and not any(same(kind, BOOL) for kind in kinds):
        return operated(np.absolute, *kinds)
    return None


def _mathematical(function: Callable[..., Any], kinds: Kinds) -> Kind:
    """Return the kind of what a function of :mod:`math` gives."""
    if function is math.gcd and all(is_dtype(k, "iu") or weak(k) is int for k in kinds):
        return reduce(partial(operated, np.maximum), kinds)
    try:
        found = type(function(*[1.0] * len(kinds)))
    except TypeError:  # it is for integers
        return None
    except ValueError:  # there is none of 1
        found = float
    if found is not float:
        return CASTS.get(found.__name__)
    if len(kinds) == 1 and is_dtype(kinds[0], "biu"):
        return np.dtype(np.float64)
    alike = is_dtype(kinds[0], "f") and all(same(kind, kinds[0]) for kind in kinds)
    return kinds[0] if alike else None
