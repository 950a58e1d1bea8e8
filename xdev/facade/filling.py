"""Functions that make arrays of one value, of a shape or like another array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xdev._config import TRACKING
from xdev._freed import FREED, is_freed, use_after_free
from xdev.device import as_device, default_device, device_of
from xdev.device.choice import CPU, from_environment, in_context
from xdev.errors import type_name
from xdev.facade.backends import PYTHON_SCALARS
from xdev.facade.cpu import HOST, POOLED_FROM, bare, is_small
from xdev.facade.dispatch import factory, factory_of, own_function, stays
from xdev.ufunc.argument_errors import elsewhere, misplaced, where_is

if TYPE_CHECKING:
    from typing import Never

    from xdev.facade.backends import Array, DType, ShapeLike

__all__ = [
    "empty", "empty_like", "full", "full_like", "ones", "ones_like", "zeros",
    "zeros_like",
]  # fmt: skip

#: Types of numbers of the host, which go to every device.
NUMBERS = (int, float, complex, np.number, np.bool)


def checked(name: str, value: Any, like: Any, device: object) -> Any:
    """Return a fill value that is no plain number of Python's, checked."""
    if is_freed(value):
        raise use_after_free(value, f"xdev.{name}: fill_value")
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    if isinstance(value, NUMBERS) and not isinstance(value, np.timedelta64):
        return value
    if isinstance(value, np.generic | np.dtype) or getattr(value, "shape", 0) != ():
        raise TypeError(
            f"xdev.{name}: fill_value is {type_name(value)}, no number: give a bool, "
            f"int, float or complex, or a 0-d array"
        )
    if device is not None:
        target: Any = as_device(device)
    else:
        target = default_device() if like is None else where_is(like)
    here = where_is(value)
    if here is not None and target not in (None, here):
        raise elsewhere(name, value, here, target)
    return value


_empty: Any = np.empty
_empty_like = bare("empty_like")
_zeros: Any = np.zeros


def empty(
    shape: ShapeLike,
    dtype: DType = None,
    *more: Never,
    device: object = None,
    chunks: Any = None,
) -> Any:
    """Array of any content, not cleared.

    Parameters
    ----------
    shape : int or tuple of ints
        None of them negative.
    dtype : dtype, optional
        float64 unless given.
    device : device, optional
        The default device unless given.
    chunks : int, tuple, dict or str, optional
        Given, the result is a collection of Dask's in such chunks, each made on the
        device when it is computed.

    Returns
    -------
    array
        C-contiguous, in memory from xdev's pool.

    Raises
    ------
    ValueError
        ``shape`` is negative, or more than memory could ever hold.
    OutOfMemoryError
        The pool cannot serve it.
    ConfigurationError, DeviceUnavailableError
        There is no such device, or it cannot be used.

    Examples
    --------
    >>> import xdev
    >>> xdev.empty((2, 3), dtype=xdev.float32).shape
    (2, 3)
    """
    if device is chunks is None and not more and is_small(shape, dtype):
        chosen = in_context() or (from_environment and from_environment[0])
        if chosen is CPU:
            try:
                return _empty(shape, dtype)
            except (TypeError, ValueError):
                pass  # said better below
    return factory(device, chunks, "empty", more).empty(shape, dtype)


def empty_like(
    x: Array,
    /,
    dtype: DType = None,
    *more: Never,
    device: object = None,
    chunks: Any = None,
) -> Array:
    """Array of the shape of ``x``, of any content.

    Parameters
    ----------
    x : array
        Any shape.
    dtype, device : optional
        Those of ``x`` unless given.
    chunks : int, tuple, dict or str, optional
        Given, the result is a collection of Dask's in such chunks, each made on the
        device when it is computed.

    Returns
    -------
    array
        Of ``x``'s shape.

    Raises
    ------
    TypeError
        ``x`` is no array.

    Examples
    --------
    >>> import xdev
    >>> xdev.empty_like(xdev.ones((2, 3))).shape
    (2, 3)
    """
    plain = type(x) is np.ndarray and device is dtype is chunks is None and not more
    if plain and 0 < x.nbytes < POOLED_FROM and TRACKING.off:
        return _empty_like(x)  # not freed: that has no bytes
    return _like("empty_like", more, x, dtype, device, chunks)


def full(
    shape: ShapeLike,
    fill_value: complex,
    dtype: DType = None,
    *more: Never,
    device: object = None,
    chunks: Any = None,
) -> Any:
    """Array of one value.

    Parameters
    ----------
    shape : int or tuple of ints
        None of them negative.
    fill_value : number
        The value.
    dtype : dtype, optional
        ``fill_value``'s unless given.
    device : device, optional
        The default device unless given.
    chunks : int, tuple, dict or str, optional
        Given, the result is a collection of Dask's in such chunks, each made on the
        device when it is computed.

    Returns
    -------
    array
        C-contiguous, in memory from xdev's pool.

    Raises
    ------
    ValueError, OverflowError
        ``shape`` is negative or too large; ``fill_value`` does not fit ``dtype``.
    TypeError
        ``fill_value`` is no number; as DeviceMismatchError, it is on another device.

    Examples
    --------
    >>> import xdev
    >>> xdev.full((2, 2), 0.5)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    if not more and type(fill_value) not in PYTHON_SCALARS:
        fill_value = checked("full", fill_value, None, device)
    return factory(device, chunks, "full", more).full(shape, fill_value, dtype)


def full_like(
    x: Array,
    /,
    fill_value: complex,
    dtype: DType = None,
    *more: Never,
    device: object = None,
    chunks: Any = None,
) -> Array:
    """Array of the shape of ``x``, of one value.

    Parameters
    ----------
    x : array
        Any shape.
    fill_value : number
        The value.
    dtype, device : optional
        Those of ``x`` unless given.
    chunks : int, tuple, dict or str, optional
        Given, the result is a collection of Dask's in such chunks, each made on the
        device when it is computed.

    Returns
    -------
    array
        Of ``x``'s shape.

    Raises
    ------
    TypeError, OverflowError, DeviceMismatchError
        ``x`` is no array, or ``fill_value`` no number; it does not fit the data type,
        or is an array of another device.

    Examples
    --------
    >>> import xdev
    >>> xdev.full_like(xdev.arange(3), 7)
    array([7, 7, 7])
    """
    if not more and type(fill_value) not in PYTHON_SCALARS:
        fill_value = checked("full_like", fill_value, x, device)
    return _like("full_like", more, x, dtype, device, chunks, fill_value)


def ones(
    shape: ShapeLike,
    dtype: DType = None,
    *more: Never,
    device: object = None,
    chunks: Any = None,
) -> Any:
    """Array of ones.

    Parameters
    ----------
    shape : int or tuple of ints
        None of them negative.
    dtype : dtype, optional
        float64 unless given.
    device : device, optional
        The default device unless given.
    chunks : int, tuple, dict or str, optional
        Given, the result is a collection of Dask's in such chunks, each made on the
        device when it is computed.

    Returns
    -------
    array
        C-contiguous, in memory from xdev's pool.

    Raises
    ------
    ValueError
        ``shape`` is negative, or more than memory could ever hold.

    Examples
    --------
    >>> import xdev
    >>> xdev.ones(3)
    array([1., 1., 1.])
    """
    return factory(device, chunks, "ones", more).ones(shape, dtype)


def ones_like(
    x: Array,
    /,
    dtype: DType = None,
    *more: Never,
    device: object = None,
    chunks: Any = None,
) -> Array:
    """Array of the shape of ``x``, of ones.

    Parameters
    ----------
    x : array
        Any shape.
    dtype, device : optional
        Those of ``x`` unless given.
    chunks : int, tuple, dict or str, optional
        Given, the result is a collection of Dask's in such chunks, each made on the
        device when it is computed.

    Returns
    -------
    array
        Of ``x``'s shape.

    Raises
    ------
    TypeError
        ``x`` is no array.

    Examples
    --------
    >>> import xdev
    >>> xdev.ones_like(xdev.arange(3))
    array([1, 1, 1])
    """
    return _like("ones_like", more, x, dtype, device, chunks)


def zeros(
    shape: ShapeLike,
    dtype: DType = None,
    *more: Never,
    device: object = None,
    chunks: Any = None,
) -> Any:
    """Array of zeros.

    Parameters
    ----------
    shape : int or tuple of ints
        None of them negative.
    dtype : dtype, optional
        float64 unless given.
    device : device, optional
        The default device unless given.
    chunks : int, tuple, dict or str, optional
        Given, the result is a collection of Dask's in such chunks, each made on the
        device when it is computed.

    Returns
    -------
    array
        C-contiguous, in memory from xdev's pool.

    Raises
    ------
    ValueError
        ``shape`` is negative, or more than memory could ever hold.

    Examples
    --------
    >>> import xdev
    >>> xdev.zeros((2, 2), dtype=xdev.int8)
    array([[0, 0],
           [0, 0]], dtype=int8)
    """
    if device is chunks is None and not more and is_small(shape, dtype):
        chosen = in_context() or (from_environment and from_environment[0])
        if chosen is CPU:
            try:
                return _zeros(shape, dtype)
            except (TypeError, ValueError):
                pass  # said better below
    return factory(device, chunks, "zeros", more).zeros(shape, dtype)


def zeros_like(
    x: Array,
    /,
    dtype: DType = None,
    *more: Never,
    device: object = None,
    chunks: Any = None,
) -> Array:
    """Array of the shape of ``x``, of zeros.

    Parameters
    ----------
    x : array
        Any shape.
    dtype, device : optional
        Those of ``x`` unless given.
    chunks : int, tuple, dict or str, optional
        Given, the result is a collection of Dask's in such chunks, each made on the
        device when it is computed.

    Returns
    -------
    array
        Of ``x``'s shape.

    Raises
    ------
    TypeError
        ``x`` is no array.

    Examples
    --------
    >>> import xdev
    >>> xdev.zeros_like(xdev.arange(3))
    array([0, 0, 0])
    """
    return _like("zeros_like", more, x, dtype, device, chunks)


def _like(
    name: str, more: Any, x: Any, dtype: DType, device: object, chunks: Any, *value: Any
) -> Any:
    """Make an array of the shape of another, where that is unless told otherwise."""
    if more:
        raise misplaced(own_function(name), more)
    plain = type(x) is np.ndarray and device is chunks is None
    if plain and x.dtype not in FREED:
        where: Any = HOST
    elif chunks is not None:
        where = factory(device_of(x) if device is None else device, chunks)
    elif device is None or stays(x, device):
        where = factory_of(x, name)
    else:
        make = getattr(factory(device), name.removesuffix("_like"))
        return make(x.shape, *value, x.dtype if dtype is None else dtype)
    return getattr(where, name)(x, *value, dtype)
