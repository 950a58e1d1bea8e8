"""Functions that make arrays of numbers, sequences, ranges and other arrays."""

from __future__ import annotations

import math
import numbers
import operator
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev._freed import FREED
from xdev.device import as_device, device_of
from xdev.device.choice import CPU, from_environment, in_context
from xdev.errors import shown, type_name
from xdev.facade.cpu import SMALL
from xdev.facade.dispatch import (
    BESIDE,
    backend_of,
    factory,
    factory_of,
    is_array,
    moved,
    stays,
)
from xdev.ufunc.argument_errors import misplaced

if TYPE_CHECKING:
    from typing import Never

    from xdev.facade.backends import DType

__all__ = ["arange", "asarray", "eye", "from_dlpack", "linspace"]

ndarray = np.ndarray
_from_dlpack: Any = np.from_dlpack

#: Modules whose objects are no arrays: numbers, lists, buffers.
_PLAIN_MODULES = frozenset({"builtins", "array", "mmap"})


def asarray(
    obj: Any,
    /,
    dtype: DType = None,
    *more: Never,
    device: object = None,
    copy: bool | None = None,
    chunks: Any = None,
) -> Any:
    """Make an array of numbers, nested sequences, buffers, or another array.

    Parameters
    ----------
    obj : array, number, nested sequence or buffer
        An array stays on its device and in its library unless ``device`` says other.
    dtype : dtype, optional
        From ``obj`` unless given.
    device : device, optional
        For what is no array, the default device unless given.
    copy : bool, optional
        True: always; False: never; None: where it must be.
    chunks : int, tuple, dict or str, optional
        Given, the result is a collection of Dask's in such chunks.

    Returns
    -------
    array
        ``obj`` itself where it is an array and nothing must change.

    Raises
    ------
    ValueError
        ``copy=False``, but it must be copied.
    TypeError
        ``obj`` holds no numbers.
    ConfigurationError, DeviceUnavailableError
        There is no such device, or it cannot be used.

    Examples
    --------
    >>> import xdev
    >>> xdev.asarray([[1, 2], [3, 4]], dtype=xdev.float32)
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    if more:
        raise misplaced(asarray, more)
    if chunks is not None:
        return backend_of("dask").collection_of(obj, dtype, device, copy, chunks)
    kind = type(obj)
    if kind is ndarray:
        if dtype is device is None and not copy and obj.dtype not in FREED:
            return obj
    else:
        if kind in BESIDE or kind.__module__ in _PLAIN_MODULES:
            if (kind is list or kind is tuple) and sys.modules.get("dask.array"):
                backend_of("dask").refuse_collections(obj)
            return factory(device).asarray(obj, dtype, copy)
        if not is_array(obj):
            exported = _exported(obj)
            if exported is None:
                return factory(device).asarray(obj, dtype, copy)
            obj = exported
    if device is None or stays(obj, device):
        return factory_of(obj, "asarray").asarray(obj, dtype, copy)
    there = _moved(obj, device, "asarray", copy)
    return there if dtype is None else factory(device).asarray(there, dtype, None)


def _exported(obj: Any) -> Any:
    """Return the array whose memory an object lends by a protocol; None for others."""
    if hasattr(obj, "__cuda_array_interface__"):
        return factory(device_of(obj)).asarray(obj, None, None)
    if not hasattr(obj, "__dlpack__"):
        return None
    # NumPy takes what DLPack lent before its version 1 for read-only.
    lends = hasattr(obj, "__array_interface__")
    return np.asarray(obj) if lends else from_dlpack(obj)


def from_dlpack(
    x: object, /, *more: Never, device: object = None, copy: bool | None = None
) -> Any:
    """Take over an array that another library exports by DLPack.

    Parameters
    ----------
    x : object
        With ``__dlpack__`` and ``__dlpack_device__``.
    device : device, optional
        Where ``x`` is unless given.
    copy : bool, optional
        True: always; False: never; None: where it must be.

    Returns
    -------
    array
        Of the library of its device; it shares memory with ``x`` unless copied.

    Raises
    ------
    BufferError
        ``copy=False``, but ``device`` is another one.
    TypeError
        ``x`` does not speak DLPack.

    Examples
    --------
    >>> import numpy as np
    >>> import xdev
    >>> xdev.from_dlpack(np.arange(3))
    array([0, 1, 2])
    """
    if more:
        raise misplaced(from_dlpack, more)
    if device is copy is None and type(x) is ndarray and x.dtype not in FREED:
        return _from_dlpack(x)
    if not hasattr(x, "__dlpack__"):
        raise TypeError(
            f"xdev.from_dlpack: a {type(x).__name__} has no __dlpack__: use "
            f"xdev.asarray(x); a collection of Dask's has no memory before x.compute()"
        )
    here = factory_of(x, "from_dlpack") if is_array(x) else factory(device_of(x))
    if stays(x, device):
        return here.from_dlpack(x, copy)
    try:
        return _moved(here.from_dlpack(x, None), device, "from_dlpack", copy)
    except ValueError as error:
        raise BufferError(str(error)) from error


def _moved(x: Any, device: object, name: str, copy: bool | None) -> Any:
    """Copy an array to another device or library; ``copy=False`` forbids that."""
    target = as_device(device)
    if copy is False:
        raise ValueError(
            f"xdev.{name}: copy=False, but the array is on {device_of(x)} and must be "
            f"copied to {target!r}: leave copy= out, or keep it where it is"
        )
    return moved(x, target)


_arange: Any = np.arange
INT64 = np.dtype(np.int64)
ONE = 1  # compared by `is`: a step may be an array
PLAIN = frozenset({int, float, type(None)})  # types that ranges take unchecked


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    dtype: DType = None,
    *more: Never,
    device: object = None,
    chunks: Any = None,
) -> Any:
    """Evenly spaced numbers in the half-open range from ``start`` to ``stop``.

    Parameters
    ----------
    start, stop, step : number
        With one argument that is ``stop``, and ``start`` is 0.
    dtype : dtype, optional
        From the arguments unless given.
    device : device, optional
        The default device unless given.
    chunks : int, tuple, dict or str, optional
        Given, the result is a collection of Dask's in such chunks, each made on the
        device when it is computed.

    Returns
    -------
    array
        Shape ``(ceil((stop - start) / step),)``.

    Raises
    ------
    ValueError
        ``step`` is 0, a number is NaN, or the range more than memory could ever hold.
    TypeError
        An argument is no number of the host: an array of several, or one on a device.
    ConfigurationError, DeviceUnavailableError
        There is no such device, or it cannot be used.

    Examples
    --------
    >>> import xdev
    >>> xdev.arange(0, 10, 3)
    array([0, 3, 6, 9])
    """
    if (
        (stop is None and step is ONE and device is dtype is chunks is None)
        and (type(start) is int and start < SMALL and not more)
        and (in_context() or (from_environment and from_environment[0])) is CPU
    ):
        return _arange(0, start, ONE, INT64)  # its own look for a type takes 30 ns
    where = factory(device, chunks, "arange", more)
    start = number_of_host("arange", "start", start)
    stop = number_of_host("arange", "stop", stop)
    step = number_of_host("arange", "step", step)
    if not step:
        message = f"xdev.arange: step is {step}, which leads nowhere: use another"
        raise ValueError(message)
    try:
        return where.arange(start, stop, step, dtype)
    except (ArithmeticError, RuntimeError, ValueError) as error:
        for label, x in ("start", start), ("stop", stop), ("step", step):
            if x in (math.inf, -math.inf) or x != x:  # noqa: PLR0124 - NaN
                message = f"xdev.arange: {label} is {x}: give a finite number"
                raise ValueError(message) from error
        raise


def number_of_host(name: str, label: str, x: Any) -> Any:
    """Return a number of the host, None too, or refuse what is none."""
    if type(x) in PLAIN:
        return x
    if type(x) is np.ndarray and not x.ndim:
        x = x[()]
    if isinstance(x, numbers.Number | np.generic) and not isinstance(x, np.flexible):
        return x
    way = f" of the host, float({label})" if getattr(x, "shape", None) == () else ""
    message = f"xdev.{name}: {label} is not a number but {type_name(x)}: give one{way}"
    raise TypeError(message)


def whole_numbers(name: str, **arguments: Any) -> list[int]:
    """Return whole numbers of the host as Python's."""
    integers = []
    for label, x in arguments.items():
        try:
            integers.append(operator.index(x))
        except TypeError as error:
            scalar = getattr(x, "shape", None) == ()
            way = f" of the host, int({label})" if scalar else ""
            message = f"xdev.{name}: {label} is {shown(x)}: give a whole number{way}"
            raise TypeError(message) from error
    return integers


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    k: int = 0,
    dtype: DType = None,
    *more: Never,
    device: object = None,
    chunks: Any = None,
) -> Any:
    """Matrix with ones on a diagonal and zeros elsewhere.

    Parameters
    ----------
    n_rows, n_cols : int
        ``n_cols`` is ``n_rows`` unless given.
    k : int
        Which diagonal: 0 the main one, above it positive.
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
        Shape (n_rows, n_cols).

    Raises
    ------
    ValueError
        A size is negative.
    TypeError
        A size or ``k`` is no whole number.

    Examples
    --------
    >>> import xdev
    >>> xdev.eye(2, 3, k=1)
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    where = factory(device, chunks, "eye", more)
    columns = n_rows if n_cols is None else n_cols
    if type(n_rows) is not int or type(columns) is not int or type(k) is not int:
        # NumPy's own integers overflow in what is computed of them.
        n_rows, columns, k = whole_numbers("eye", n_rows=n_rows, n_cols=columns, k=k)
    return where.eye(n_rows, columns, k, dtype)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *more: Never,
    dtype: DType = None,
    device: object = None,
    endpoint: bool = True,
    chunks: Any = None,
    **rest: Never,
) -> Any:
    """Evenly spaced numbers over a range.

    Parameters
    ----------
    start, stop : number
        Ends of the range.
    num : int
        How many.
    dtype : dtype, optional
        Floating-point unless given.
    device : device, optional
        The default device unless given.
    endpoint : bool
        Whether ``stop`` is the last of them.
    chunks : int, tuple, dict or str, optional
        Given, the result is a collection of Dask's in such chunks, each made on the
        device when it is computed.

    Returns
    -------
    array
        Shape (num,).

    Raises
    ------
    ValueError
        ``num`` is negative.
    TypeError
        ``num`` is no whole number, or an end no number.

    Examples
    --------
    >>> import xdev
    >>> xdev.linspace(0, 1, 5)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    if rest:
        raise misplaced(linspace, more, rest)
    where = factory(device, chunks, "linspace", more)
    try:
        return where.linspace(start, stop, num, dtype=dtype, endpoint=endpoint)
    except (TypeError, ValueError):
        whole_numbers("linspace", num=num)
        number_of_host("linspace", "start", start)
        number_of_host("linspace", "stop", stop)
        raise
