"""Pinned (page-locked) host memory, from the pinned pool."""

from __future__ import annotations

import operator
from typing import Any, Literal

import numpy as np

from xdev._freed import refuse
from xdev.device import Device
from xdev.memory.arrays import host_array, pinned_array
from xdev.memory.owners import is_pinned_address
from xdev.transfer.exporters import numpys, refuse_mask
from xdev.transfer.lifetimes import drop_done


def empty_pinned(shape: int | tuple[int, ...], dtype: Any = float) -> Any:
    """Return an uninitialised NumPy array in pinned memory.

    Copies from and to it with ``non_blocking=True`` are asynchronous. Where CUDA
    cannot be used there is nothing to pin for, and the memory is ordinary.

    Parameters
    ----------
    shape : int or tuple of int
        As :func:`numpy.empty` takes it.
    dtype : dtype
        NumPy's, or another library's of the same name; float64 unless given.

    Raises
    ------
    ValueError
        ``shape`` is negative or too large to address.
    TypeError
        ``shape`` is none; NumPy has no such dtype, or it holds Python objects.
    OutOfMemoryError
        The pinned pool cannot serve it.

    Examples
    --------
    >>> empty_pinned((2, 3), "float32").shape
    (2, 3)
    """
    extents = shape if isinstance(shape, tuple | list) else (shape,)
    try:
        extents = tuple(map(operator.index, extents))
    except TypeError as error:
        message = f"{shape!r} is not a shape: give a whole number or a tuple of them"
        raise TypeError(message) from error
    return _empty(extents, numpys(dtype, "use one that it has, such as float32"))


def _empty(
    shape: tuple[int, ...], dtype: np.dtype[Any], order: Literal["C", "F"] = "C"
) -> Any:
    if dtype.hasobject:
        message = (
            f"pinned memory cannot hold Python objects: {dtype} is not a plain dtype; "
            f'convert them to numbers first, as in x.astype("float64")'
        )
        raise TypeError(message)
    drop_done()
    if Device("cuda").available:
        return pinned_array(shape, dtype, order)
    return host_array(shape, dtype, order)


def pin(x: Any) -> Any:
    """Return a host array's values in pinned memory; ``x`` itself if it is pinned.

    What is laid out in Fortran's order stays so, and any other strides become C's.

    Raises
    ------
    TypeError
        ``x`` is no host array; move it first, ``xdev.to_numpy(x)``. Or it is masked, or
        holds Python objects.
    OutOfMemoryError
        The pinned pool cannot serve it.
    UseAfterFreeError
        It was freed.

    Examples
    --------
    >>> import numpy as np
    >>> pin(np.arange(3))
    array([0, 1, 2])
    """
    refuse("xdev.pin", x)
    if not isinstance(x, np.ndarray):
        message = (
            f"only NumPy arrays can be pinned, not {type(x).__name__}: bring it to the "
            f"host first, xdev.pin(xdev.to_numpy(x))"
        )
        raise TypeError(message)
    if is_pinned(x):
        return x
    refuse_mask(x)
    pinned = _empty(x.shape, x.dtype, "F" if x.flags.fnc else "C")
    np.copyto(pinned, x)
    return pinned


def is_pinned(x: Any) -> bool:
    """Say whether an array's memory is pinned, by xdev or by another library.

    Examples
    --------
    >>> import numpy as np
    >>> is_pinned(np.arange(3))
    False
    """
    refuse("xdev.is_pinned", x)
    return isinstance(x, np.ndarray) and is_pinned_address(x.ctypes.data)
