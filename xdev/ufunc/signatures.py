"""Explicit signatures, as Numba writes them: ``"float32(float32, float32)"``."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

Dtypes = tuple[np.dtype[Any], ...]
SIZED = {"i": "int", "u": "uint", "f": "float", "c": "complex"}
NAMES = {
    **{
        f"{kind}{bits}": f"{kind}{bits}"
        for kind in ("int", "uint")
        for bits in (8, 16, 32, 64)
    },
    **{f"{c}{n}": f"{SIZED[c]}{8 * n}" for c in "iu" for n in (1, 2, 4, 8)},
    **{
        name: name
        for name in ("float16", "float32", "float64", "complex64", "complex128")
    },
    "bfloat16": "bfloat16",
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "c8": "complex64",
    "c16": "complex128",
    "half": "float16",
    "float": "float32",
    "double": "float64",
    **dict.fromkeys(("bool", "bool_", "boolean", "b1"), "bool"),
    "intp": "intp",
    "uintp": "uintp",
    "ssize_t": "intp",
    "size_t": "uintp",
    "byte": "uint8",
    "uchar": "uint8",
    "char": "int8",
    "short": "int16",
    "ushort": "uint16",
    "intc": "intc",
    "uintc": "uintc",
    "int_": "int64",
    "uint": "uint64",
    "long_": "long",
    "ulong": "ulong",
    "longlong": "longlong",
    "ulonglong": "ulonglong",
    "float_": "float32",
}


def parse(signature: object) -> tuple[Dtypes, Dtypes]:
    """Turn one signature into the dtypes of its inputs and outputs.

    Parameters
    ----------
    signature : str or Numba signature
        ``"float32(float32, float32)"`` or ``numba.float32(numba.float32, …)``.
        Several results are written ``"(float32, bool)(float32)"``.

    Raises
    ------
    TypeError
        It is neither, or names a type that ufuncs do not have.

    Examples
    --------
    >>> parse("float64(int32, float32)")
    ((dtype('int32'), dtype('float32')), (dtype('float64'),))
    """
    returned = getattr(signature, "return_type", None)
    if returned is not None:
        taken = getattr(signature, "args", ())
        parts = returned if hasattr(returned, "__iter__") else (returned,)
        return _dtypes(map(str, taken), signature), _dtypes(map(str, parts), signature)
    pattern = r"\s*(?:\(([^()]+)\)|(\w+))\s*\(([^()]+)\)\s*"
    found = re.fullmatch(pattern, signature) if isinstance(signature, str) else None
    if found is None:
        message = (
            f"{signature!r} is no signature: write it as Numba does, "
            "'float32(float32, float32)'"
        )
        raise TypeError(message)
    given = found[1] or found[2]
    return _dtypes(found[3].split(","), signature), _dtypes(given.split(","), signature)


def _dtypes(names: Any, signature: object) -> Dtypes:
    try:
        return tuple(np.dtype(NAMES[name.strip()]) for name in names)
    except KeyError as error:
        message = f"{signature}: no type {error}; ufuncs have {', '.join(NAMES)}"
        raise TypeError(message) from None
    except TypeError as error:  # the only name that NumPy has not from itself
        message = f"{signature}: bfloat16 is ml_dtypes' data type: import ml_dtypes"
        raise TypeError(message) from error
