"""Pinned (page-locked) host memory, from the pinned pool."""

from __future__ import annotations

from typing import Any

import numpy as np

from xdev import memory
from xdev._freed import refuse
from xdev.device import Device


def empty_pinned(shape: int | tuple[int, ...], dtype: Any = float) -> Any:
    """Return an uninitialised NumPy array in pinned memory.

    Copies from and to it with ``non_blocking=True`` are asynchronous. Where CUDA
    cannot be used there is nothing to pin for, and the memory is ordinary.

    Parameters
    ----------
    shape : int or tuple of int
        As :func:`numpy.empty` takes it.
    dtype : dtype
        float64 unless given.

    Raises
    ------
    ValueError
        ``shape`` is negative or too large to address.

    Examples
    --------
    >>> empty_pinned((2, 3), "float32").shape
    (2, 3)
    """
    extents = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    if Device("cuda").available:
        return memory.pinned_array(extents, np.dtype(dtype))
    return memory.host_array(extents, np.dtype(dtype))


def pin(x: Any) -> Any:
    """Return a host array's values in pinned memory; ``x`` itself if it is pinned.

    Raises
    ------
    TypeError
        ``x`` is no host array; move it first, ``xdev.to_numpy(x)``.
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
    pinned = empty_pinned(x.shape, x.dtype)
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
    return isinstance(x, np.ndarray) and memory.is_pinned_address(x.ctypes.data)
