"""Data types of one library in another's terms, by the standard's names."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from types import ModuleType

NAMES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
)


#: Types of numbers that are on no device.
PYTHON_SCALARS = frozenset({bool, int, float, complex})
#: NumPy's scalars: on the host, and welcome beside arrays of every device.
HOST_SCALARS = frozenset(
    scalar
    for scalar in np.sctypeDict.values()
    if issubclass(scalar, np.number | np.bool)
)
#: What is asked for most; the full way takes several times as long.
NAMED: dict[Any, np.dtype[Any]] = {
    key: np.dtype(name) for name in NAMES for key in (name, np.dtype(name).type)
}


#: The classes of NumPy's data types of the standard, and of scalars' classes.
CLASSES = frozenset(type(np.dtype(name)) for name in NAMES) | {type}


def is_numpys(dtype: Any) -> bool:
    """Say whether a data type is NumPy's own, or a name or type that NumPy reads."""
    return isinstance(dtype, np.dtype | str | type)


def to_numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """Return NumPy's data type for anybody's.

    Raises
    ------
    TypeError
        NumPy has no such type; the text lists those of the standard.
    """
    if isinstance(dtype, np.dtype):
        return dtype
    try:
        known = NAMED.get(dtype)
        if known is not None:
            return known
        if is_numpys(dtype):
            numpys: np.dtype[Any] = np.dtype(dtype)
            return numpys
        return np.dtype(_name(dtype))
    except TypeError as error:
        raise unknown(dtype, "NumPy") from error


def to_library_dtype(dtype: Any, namespace: ModuleType) -> Any:
    """Return a namespace's own data type for anybody's.

    Raises
    ------
    TypeError
        The library has no such type; the text lists those of the standard.
    """
    if type(dtype) is type(namespace.float32) and not isinstance(dtype, type):
        return dtype
    try:
        name = np.dtype(dtype).name if is_numpys(dtype) else _name(dtype)
        return getattr(namespace, name)
    except (TypeError, AttributeError) as error:
        raise unknown(dtype, namespace.__name__) from error


def has_dtype(thing: Any) -> bool:
    """Say whether it is an array or scalar, which has a data type, and is none."""
    # Not a class: numpy.float32.dtype is a descriptor.
    return hasattr(thing, "dtype") and not isinstance(thing, type)


def numpy_dtype_of(thing: Any) -> np.dtype[Any]:
    """Return NumPy's data type for an array's, or for anybody's data type."""
    return to_numpy_dtype(thing.dtype if has_dtype(thing) else thing)


def library_of_dtype(dtype: Any) -> ModuleType | None:
    """Return the library that a foreign data type is of; None for NumPy's."""
    if is_numpys(dtype):
        return None
    return sys.modules.get(type(dtype).__module__.partition(".")[0])


def unknown(dtype: Any, library: str) -> TypeError:
    """Return the error for a data type that a library does not have."""
    known = ", ".join(f"xdev.{name}" for name in NAMES)
    text = f"{dtype!r} is not a data type of {library}: use one of {known}"
    if type(dtype) is int:
        text += "; the extents of a shape go in one tuple, as in xdev.zeros((2, 3))"
    return TypeError(text)


def _name(dtype: Any) -> str:
    # "torch.float32", "array_api_strict.float32": the name comes last everywhere.
    return str(dtype).rpartition(".")[2]
