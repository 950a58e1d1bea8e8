"""Results on the CPU: large ones from xdev's pool, laid out as NumPy would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from xdev import memory
from xdev.memory.arrays import large_array, transposed
from xdev.ufunc import layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.ufunc.scalar import Dtypes

POOLED = 64 * 1024  # results of so many bytes come from xdev's pool


def bound(operands: Sequence[Any]) -> int:
    """Return a number of elements that the result does not exceed.

    It is the result's own where all arrays have one shape.
    """
    shapes = []
    size = 1
    for x in operands:
        if type(x) is ndarray and (shape := x.shape) not in shapes:
            shapes.append(shape)
            size *= x.size
    return size


def plain(operands: Sequence[Any], outputs: Dtypes, size: int) -> tuple[Any] | None:
    """Return the one result in the pool, of arrays that are alike, in C order.

    Parameters
    ----------
    operands : sequence
        NumPy's own arrays and numbers.
    outputs : tuple of numpy.dtype
        The results'.
    size : int
        The operands' bound.
    """
    like: Any = None
    if len(outputs) > 1:
        return None
    for x in operands:
        if type(x) is ndarray:
            if not x.flags.c_contiguous or (like is not None and x.shape != like.shape):
                return None
            like = x
        elif isinstance(x, ndarray):
            return None  # a subclass, which decides on its results
    return None if like is None else (large_array(like.shape, outputs[0], size),)


def pooled(
    operands: Sequence[Any],
    outputs: Dtypes,
    *,
    where: Any = True,
    order: str = "K",
    least: int = POOLED,
    **_: Any,
) -> tuple[Any, ...] | None:
    """Return large results from xdev's pool, in the layout that NumPy would choose.

    Parameters
    ----------
    operands : sequence
        The inputs.
    outputs : tuple of numpy.dtype
        The results'.
    where, order
        As in the call.
    least : int
        Smaller results are left to NumPy [B].

    Returns
    -------
    tuple of arrays and None, or None
        None: NumPy makes all of them.
    """
    arrays = [x for x in (*operands, where) if isinstance(x, ndarray)]
    if not arrays or {*map(type, arrays)} != {ndarray}:
        return None  # NumPy scalars; or a subclass, which decides on its results
    shape, size = arrays[0].shape, arrays[0].size
    if len({x.shape for x in arrays}) > 1:
        try:
            broadcast = np.broadcast(*arrays)
        except ValueError:
            return None  # NumPy words the refusal
        shape, size = broadcast.shape, broadcast.size
    if not shape:
        return None
    axes: Any = None
    flags = [x.flags for x in arrays]
    if order == "K" and not all(x.c_contiguous for x in flags):
        axes = layout.axes([layout.strides(x, shape) for x in arrays])
        shape = tuple(shape[axis] for axis in axes)
    fortran = order == "F" or (order == "A" and all(x.fnc for x in flags))
    outs = [
        None
        if size * dtype.itemsize < least
        else memory.host_array(shape, dtype, order="F" if fortran else "C")
        for dtype in outputs
    ]
    if axes is not None:
        back = sorted(range(len(axes)), key=axes.__getitem__)
        outs = [None if x is None else transposed(x, back) for x in outs]
    return tuple(outs) if any(x is not None for x in outs) else None
