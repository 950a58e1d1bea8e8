"""Calls of a NumPy ufunc on arrays that it reads by rows: slices, what broadcasts.

NumPy copies such operands into its buffers where two rows fit in there, so that an
inner loop gets several at once. But for short rows the copies take longer than a loop
over each row; with smaller buffers there are none.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

if TYPE_CHECKING:
    from collections.abc import Sequence

MANY = 16384  # elements: of fewer the copies take less time than finding them
LONG = 2048  # bytes of a row whose copies take longer than another inner loop
BUFFER = 16  # elements: the fewest that NumPy has
MATRIX = 2  # axes


def call(
    ufunc: np.ufunc,
    args: Sequence[Any],
    outs: tuple[Any, ...] | None,
    dtypes: Sequence[np.dtype[Any]],
) -> Any:
    """Call a ufunc whose inner loop reads and writes ``dtypes``."""
    keywords = {} if outs is None else {"out": outs}
    if not _by_row((*args, *(outs or ())), dtypes):
        return ufunc(*args, **keywords)
    usual = np.setbufsize(BUFFER)
    try:
        return ufunc(*args, **keywords)
    finally:
        np.setbufsize(usual)


def _by_row(operands: Sequence[Any], dtypes: Sequence[np.dtype[Any]]) -> bool:
    """Say whether NumPy would copy long rows that the inner loop can take as they are.

    Rows are along the last axis; others are copied whatever their length.
    """
    arrays = [x for x in operands if type(x) is ndarray]
    largest: Any = max(arrays, key=attrgetter("size"), default=None)
    if largest is None or largest.ndim < MATRIX:
        return False
    shape: tuple[int, ...] = largest.shape
    nbytes = 0
    for x, dtype in zip(operands, dtypes, strict=False):  # outputs may be left out
        if type(x) is ndarray:
            if x.dtype != dtype:  # is cast in the buffers
                return False
            if x.shape != shape or not x.flags.c_contiguous:
                near = x.ndim > 0 and x.strides[-1] in {0, x.itemsize}
                nbytes += x.itemsize if near else 0
    return nbytes * shape[-1] >= LONG
