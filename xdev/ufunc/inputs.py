"""The dtypes of a ufunc's arguments: arrays', and numbers' beside them (NEP 50)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.compile.halves import is_bfloat16

if TYPE_CHECKING:
    from collections.abc import Sequence

Dtypes = tuple[np.dtype[Any], ...]
SUPPORTED = frozenset("?bhilqBHILQefdFD")
WEAK = (int, float, complex)


def check(dtype: np.dtype[Any], name: str) -> None:
    """Refuse a dtype that ufuncs do not have; ``name`` is the function's.

    Raises
    ------
    TypeError
        They do not have it; the text has those that they do.
    """
    if dtype.char not in SUPPORTED and not is_bfloat16(dtype):
        message = (
            f"{name}: dtype {dtype} is not supported; use bool, integers, float16, "
            "bfloat16, float32, float64, complex64 or complex128"
        )
        raise TypeError(message)


def resolve(args: Sequence[Any], name: str) -> Dtypes:
    """Return each argument's dtype; Python numbers are weak, as in NEP 50.

    Parameters
    ----------
    args : sequence
        Arrays of any library with a NumPy ``dtype``, NumPy scalars, or Python
        numbers; a number takes the arrays' dtype as far as its kind allows.
    name : str
        The function's, for errors.

    Raises
    ------
    TypeError
        An argument is neither an array nor a number, or has a dtype that ufuncs do not
        have.

    Examples
    --------
    >>> resolve((np.zeros(3, "float32"), 2.0), "f")
    (dtype('float32'), dtype('float32'))
    """
    strong = [None if type(x) in WEAK else dtype_of(x) for x in args]
    known = [d for d in strong if d is not None]
    for dtype in known:
        check(dtype, name)
    return tuple(
        _weak(known, x) if d is None else d for d, x in zip(strong, args, strict=True)
    )


def _weak(known: Sequence[np.dtype[Any]], x: complex) -> np.dtype[Any]:
    """Return what a Python number is beside dtypes; bfloat16 takes it as float16 does.

    ml_dtypes makes float64 of bfloat16 and a float.
    """
    if known and type(x) is not complex:
        others = np.result_type(*known)
        if is_bfloat16(others):
            return others
    return np.result_type(*known, x)


def fits(x: Any, dtype: np.dtype[Any]) -> bool:
    """Say whether a signature's dtype takes an argument; Python numbers by kind."""
    if type(x) not in WEAK:
        return np.can_cast(dtype_of(x), dtype)
    return dtype.kind in {int: "iufc", float: "fc", complex: "c"}[type(x)]


def dtype_of(x: Any) -> np.dtype[Any]:
    """Return the NumPy dtype of an array or a number."""
    dtype = getattr(x, "dtype", None)
    if dtype is None and isinstance(x, bool | int | float | complex):
        return np.result_type(x)
    if dtype is None and (interface := getattr(x, "__cuda_array_interface__", None)):
        dtype = interface["typestr"]
    try:
        found = np.dtype(dtype) if dtype is not None else np.asarray(x).dtype
    except (TypeError, ValueError):
        found = None
    if found is None or (dtype is None and found.hasobject and not _is_list(x)):
        message = (
            f"{type(x).__name__} object has no dtype that NumPy knows: pass an array "
            "(xdev.asarray) or a number"
        )
        raise TypeError(message)
    return found


def _is_list(x: Any) -> bool:
    return isinstance(x, list | tuple)
