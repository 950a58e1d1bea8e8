"""The limits of data types: xdev's and any library's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.facade.dtype_names import CLASSES, has_dtype, numpy_dtype_of
from xdev.facade.libraries import owner_of

if TYPE_CHECKING:
    from xdev.facade.float_info import FloatInfo

__all__ = ["finfo", "iinfo"]

kind_of = type  # where a parameter bears that name
# Filled at the first question; two threads may do the same work.
_floats: dict[Any, FloatInfo] = {}
_integers: dict[Any, Any] = {}


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
    known = _floats.get(type) if kind_of(type) in CLASSES else None
    if known is not None:
        return known
    library = owner_of(type, "finfo", "type")
    if library is not None:
        return library.bound("finfo", type)(
            type if has_dtype(type) else library.dtype(type)
        )
    from xdev.facade.float_info import FloatInfo

    found: Any = np.finfo(numpy_dtype_of(type))
    made = FloatInfo(
        int(found.bits),
        float(found.eps),
        float(found.max),
        float(found.min),
        float(found.smallest_normal),
        found.dtype,
    )
    if kind_of(type) in CLASSES:
        _floats[type] = made
    return made


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
    known = _integers.get(type) if kind_of(type) in CLASSES else None
    if known is not None:
        return known
    library = owner_of(type, "iinfo", "type")
    if library is not None:
        return library.bound("iinfo", type)(
            type if has_dtype(type) else library.dtype(type)
        )
    made = np.iinfo(numpy_dtype_of(type))
    if kind_of(type) in CLASSES:
        _integers[type] = made
    return made
