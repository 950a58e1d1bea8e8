"""A ufunc's inner loop at indices of an array: what ``ufunc.at`` commonly is.

NumPy calls the loops of others once an index; only its own take many at once.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from xdev.compile.divisions import ALL
from xdev.compile.team.threads import c_library

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MANY = 512  # indices: for fewer NumPy takes less time than these preparations
_LOOP = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)
_WORDS = ctypes.c_int64


def run(
    loop: int,
    dtypes: Sequence[np.dtype[Any]],
    a: Any,
    indices: Any,
    values: Sequence[Any],
) -> int | None:
    """Work in place at indices; return what ``fetestexcept`` told.

    Parameters
    ----------
    loop : int
        The inner loop's address.
    dtypes : sequence of numpy.dtype
        What it reads and writes.
    a, indices, values
        As :meth:`numpy.ufunc.at` takes them.

    Returns
    -------
    int or None
        None: these are for NumPy, to compute or to refuse; nothing was written.
    """
    others = [np.asarray(x) if isinstance(x, np.generic) else x for x in values]
    if not (_is_index(indices) and _suits(a, others, indices, dtypes)):
        return None
    if indices.min() < -a.size or indices.max() >= a.size:
        return None
    order = np.ascontiguousarray(indices, np.intp)
    operands = [a, *others, a]
    steps = [x.strides[0] if x.ndim else 0 for x in operands]
    clear, test = _exceptions()
    places = (_WORDS * len(operands))(*(x.ctypes.data for x in operands))
    clear(ALL)
    _LOOP(loop)(
        *(places, (_WORDS * 2)(order.size, a.size)),
        *((_WORDS * len(steps))(*steps), order.ctypes.data),
    )
    return test(ALL) & ALL


def _is_index(x: Any) -> bool:
    """Say whether these are many indices of one axis."""
    if type(x) is not ndarray or x.ndim != 1 or x.size < MANY:
        return False
    return x.dtype.kind in "iu" and np.can_cast(x.dtype, np.intp)


def _suits(
    a: Any, values: Sequence[Any], indices: Any, dtypes: Sequence[np.dtype[Any]]
) -> bool:
    """Say whether the inner loop can take arrays, one of one axis and what goes in."""
    operands = [a, *values, a]
    if len(operands) != len(dtypes) or not all(map(_is_plain, operands, dtypes)):
        return False
    if a.ndim != 1 or not a.flags.writeable:
        return False
    return all(x.shape in {(), indices.shape} for x in values) and not any(
        np.may_share_memory(a, x) for x in (indices, *values)
    )


def _is_plain(x: Any, dtype: np.dtype[Any]) -> bool:
    """Say whether an inner loop can read a value where it lies."""
    return type(x) is ndarray and x.dtype == dtype and x.flags.aligned


@cache
def _exceptions() -> tuple[Callable[[int], int], Callable[[int], int]]:
    """Return C's ``feclearexcept`` and ``fetestexcept``."""
    return c_library().feclearexcept, c_library().fetestexcept
