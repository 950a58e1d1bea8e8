"""The standard's data type functions; they take xdev's and any library's types."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from xdev.device import as_device
from xdev.facade.dtype_names import NAMES, is_numpys, library_of_dtype, to_numpy_dtype
from xdev.facade.libraries import (
    HOST_SCALARS,
    PYTHON_SCALARS,
    library_named,
    library_of,
)
from xdev.facade.places import stays

if TYPE_CHECKING:
    from xdev.facade.protocols import Array, DType, Library

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]


class FloatInfo(NamedTuple):
    """Limits of a floating-point data type, as Python numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


def _library(thing: Any, name: str, label: str) -> Library | None:
    """Return the library of an array or data type; None where NumPy's rules hold."""
    if is_numpys(thing) or type(thing) in PYTHON_SCALARS:
        return None
    if hasattr(thing, "dtype") or library_of_dtype(thing) is None:
        library = library_of(thing, name, label)
    else:
        root: Any = library_of_dtype(thing)
        if not hasattr(root, "empty"):
            raise TypeError(_no_dtype(name, label, thing))
        compat = importlib.import_module("array_api_compat")
        library = library_named(compat.array_namespace(root.empty(0)))
    return None if library.numpy_dtypes else library


def _no_dtype(name: str, label: str, thing: Any) -> str:
    known = ", ".join(f"xdev.{dtype}" for dtype in NAMES)
    return f"xdev.{name}: {label} is {thing!r}, no array and no data type: use {known}"


def _numpy_dtype(thing: Any) -> np.dtype[Any]:
    return to_numpy_dtype(
        getattr(thing, "dtype", thing) if _has_dtype(thing) else thing
    )


def _has_dtype(thing: Any) -> bool:
    # Not a class: numpy.float32.dtype is a descriptor.
    return hasattr(thing, "dtype") and not isinstance(thing, type)


def astype(
    x: Array, dtype: DType, /, *, copy: bool = True, device: object = None
) -> Array:
    """Convert an array to another data type.

    Parameters
    ----------
    x : array
        Any shape.
    dtype : dtype
        The new type; what does not fit it is the library's own affair.
    copy : bool
        False: give ``x`` itself where it has that type already.
    device : device, optional
        Where the result is to be; where ``x`` is unless given.

    Returns
    -------
    array
        Of ``x``'s shape.

    Raises
    ------
    TypeError
        ``dtype`` is no data type of the library.

    Examples
    --------
    >>> import xdev
    >>> xdev.astype(xdev.asarray([1.7, -1.7]), xdev.int32)
    array([ 1, -1], dtype=int32)
    """
    library = library_of(x, "astype")
    kind: Any = library.dtype(dtype)
    stay = stays(x, device)
    if library.numpy_dtypes:
        method = library.bound("astype", x)
        result: Any = method(x, kind, copy=copy and stay)
    else:
        result = library.bound("astype", x)(x, kind, copy=copy and stay)
    if not stay:
        transfer = importlib.import_module("xdev.transfer")
        result = transfer.to_device(result, as_device(device))
    converted: Array = result
    return converted


def can_cast(from_: Any, to: DType, /) -> bool:
    """Say whether a data type can be converted to another without loss.

    Parameters
    ----------
    from_ : dtype or array
        The type, or an array of it.
    to : dtype
        The other type.

    Returns
    -------
    bool
        By the standard's type promotion rules.

    Raises
    ------
    TypeError
        One of them is no data type.

    Examples
    --------
    >>> import xdev
    >>> xdev.can_cast(xdev.int8, xdev.int16), xdev.can_cast(xdev.int16, xdev.int8)
    (True, False)
    """
    library = _library(from_, "can_cast", "from_") or _library(to, "can_cast", "to")
    if library is None:
        return bool(np.can_cast(_numpy_dtype(from_), to_numpy_dtype(to)))
    source = from_ if _has_dtype(from_) else library.dtype(from_)
    return bool(library.bound("can_cast", from_)(source, library.dtype(to)))


def finfo(type: Any, /) -> Any:
    """Limits of a floating-point data type.

    Parameters
    ----------
    type : dtype or array
        Floating-point; of a complex type, its parts are described.

    Returns
    -------
    object
        ``bits``, ``eps``, ``max``, ``min``, ``smallest_normal``, ``dtype``.

    Raises
    ------
    ValueError, TypeError
        It is not floating-point, or no data type.

    Examples
    --------
    >>> import xdev
    >>> xdev.finfo(xdev.float32).bits
    32
    """
    library = _library(type, "finfo", "type")
    if library is not None:
        return library.bound("finfo", type)(
            type if _has_dtype(type) else library.dtype(type)
        )
    found: Any = np.finfo(_numpy_dtype(type))
    return FloatInfo(
        int(found.bits),
        float(found.eps),
        float(found.max),
        float(found.min),
        float(found.smallest_normal),
        found.dtype,
    )


def iinfo(type: Any, /) -> Any:
    """Limits of an integer data type.

    Parameters
    ----------
    type : dtype or array
        Integer.

    Returns
    -------
    object
        ``bits``, ``max``, ``min``, ``dtype``.

    Raises
    ------
    ValueError, TypeError
        It is not an integer type, or no data type.

    Examples
    --------
    >>> import xdev
    >>> xdev.iinfo(xdev.int8).max
    127
    """
    library = _library(type, "iinfo", "type")
    if library is not None:
        return library.bound("iinfo", type)(
            type if _has_dtype(type) else library.dtype(type)
        )
    return np.iinfo(_numpy_dtype(type))


def isdtype(dtype: DType, kind: Any) -> bool:
    """Say whether a data type is of a kind.

    Parameters
    ----------
    dtype : dtype
        Of xdev or of any library.
    kind : str, dtype or tuple of them
        ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``,
        ``"real floating"``, ``"complex floating"``, ``"numeric"``, or a data type.

    Returns
    -------
    bool
        Whether it is of any of them.

    Raises
    ------
    TypeError, ValueError
        ``dtype`` is no data type, or ``kind`` no kind.

    Examples
    --------
    >>> import xdev
    >>> xdev.isdtype(xdev.float32, "real floating")
    True
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    for each in kinds:
        if isinstance(each, str) and each not in _KINDS:
            message = f"{each!r} is no kind of data type: use one of {_KINDS}"
            raise ValueError(message)
    named = tuple(
        each if isinstance(each, str) else to_numpy_dtype(each) for each in kinds
    )
    return bool(np.isdtype(to_numpy_dtype(dtype), named))


_KINDS = (
    "bool",
    "signed integer",
    "unsigned integer",
    "integral",
    "real floating",
    "complex floating",
    "numeric",
)


def result_type(*arrays_and_dtypes: Any) -> Any:
    """Return the data type that arguments promote to when they meet.

    Parameters
    ----------
    *arrays_and_dtypes : array, number or dtype
        At least one is an array or data type. Numbers adapt to the others.

    Returns
    -------
    dtype
        Of the arguments' library.

    Raises
    ------
    TypeError
        There is no common type.

    Examples
    --------
    >>> import xdev
    >>> xdev.result_type(xdev.int8, xdev.asarray([1.0], dtype=xdev.float32), 3)
    dtype('float32')
    """
    for index, thing in enumerate(arrays_and_dtypes):
        library = _library(thing, "result_type", f"argument {index}")
        if library is not None:
            return library.bound("result_type", thing)(
                *(_in_terms_of(library, each) for each in arrays_and_dtypes)
            )
    return np.result_type(
        *(
            each if type(each) in PYTHON_SCALARS else _numpy_dtype(each)
            for each in arrays_and_dtypes
        )
    )


def _in_terms_of(library: Library, thing: Any) -> Any:
    """Return a library's own form of an array, number or data type."""
    if type(thing) in PYTHON_SCALARS:
        return thing
    if type(thing) in HOST_SCALARS or (isinstance(thing, np.ndarray)):
        return library.dtype(thing.dtype)
    return thing if _has_dtype(thing) else library.dtype(thing)
