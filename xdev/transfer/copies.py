"""``to_device`` and ``to_numpy``: explicit copies between devices, and none besides."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional, memory
from xdev.device import Device, as_device, device_of, registry
from xdev.errors import DeviceMismatchError
from xdev.transfer import cuda
from xdev.transfer.guard import announce

if TYPE_CHECKING:
    from xdev.device import Stream


def to_device(
    x: Any,
    device: object,
    *,
    stream: Stream | None = None,
    copy: bool | None = None,
    non_blocking: bool = False,
    out: Any = None,
) -> Any:
    """Return an array's values on a device.

    Parameters
    ----------
    x : array
        NumPy, CuPy, Numba or array_api_strict array, or any exporter of
        ``__cuda_array_interface__``, DLPack or the buffer protocol; any strides.
    device : device
        Where to; the result is NumPy's array on the CPU, CuPy's on CUDA.
    stream : Stream, optional
        The stream that the copy is queued on; the device's current one unless given.
    copy : bool, optional
        True always copies; False never, but raises; None copies where it must.
    non_blocking : bool
        Return without waiting for the copy. It is asynchronous only from and to pinned
        memory; ``x`` is kept alive until it is done.
    out : array, optional
        Preallocated destination on ``device``, of ``x``'s shape and dtype.

    Returns
    -------
    array
        ``x`` itself where no copy is needed, ``out`` where given.

    Raises
    ------
    ValueError
        ``copy=False`` where a copy is needed; ``out`` of another shape, dtype, or
        read-only.
    DeviceMismatchError
        ``out`` is on another device.
    TypeError
        ``x`` is no array, or of a dtype that CUDA does not have.
    UseAfterFreeError
        ``x`` or ``out`` was freed.

    Examples
    --------
    >>> import numpy as np
    >>> to_device(np.arange(3), "cpu")
    array([0, 1, 2])
    """
    target = as_device(device)
    x = _as_array(x)
    source = device_of(x)
    if out is not None:
        _check_out(x, out, target)
    elif copy is not True and source == target:
        return x if _is_native(x, target) else _adopt(x, target)
    if copy is False:
        where = "into out=" if source == target else f"from {source} to {target}"
        message = f"copy=False, but only a copy gets the array {where}: leave copy out"
        raise ValueError(message)
    if source != target:
        announce(source, target, math.prod(x.shape) * _dtype(x).itemsize)
    if target.type == "cuda":
        return cuda.copy_in(x, source, target, stream, non_blocking, out)
    if source.type == "cuda":
        return cuda.copy_out(x, source, stream, non_blocking, out)
    return _copy_host(x, target, out)


def to_numpy(x: Any, *, out: Any = None, non_blocking: bool = False) -> Any:
    """Return an array's values as a NumPy array.

    Parameters
    ----------
    x : array
        As in :func:`to_device`; a NumPy array comes back itself.
    out : numpy.ndarray, optional
        Preallocated destination, of ``x``'s shape and dtype.
    non_blocking : bool
        Return without waiting; the values are there after ``synchronize``.

    Returns
    -------
    numpy.ndarray
        ``out`` where given.

    Raises
    ------
    ValueError, DeviceMismatchError, TypeError
        As :func:`to_device`.

    Examples
    --------
    >>> import numpy as np
    >>> to_numpy(np.arange(3))
    array([0, 1, 2])
    """
    return to_device(x, "cpu", out=out, non_blocking=non_blocking)


def _as_array(x: Any) -> Any:
    """Give an exporter the attributes of an array; arrays come back themselves."""
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return x
    if hasattr(x, "__cuda_array_interface__"):
        return _optional.cupy().asarray(x)
    if hasattr(x, "__dlpack__"):
        on_host = device_of(x).type != "cuda"
        return (np if on_host else _optional.cupy()).from_dlpack(x)
    if hasattr(x, "__array_interface__") or hasattr(x, "__buffer__"):
        return np.asarray(x)
    try:
        return np.asarray(memoryview(x))
    except TypeError:
        pass
    message = (
        f"{type(x).__name__} is no array: make one first, xdev.asarray(x, device=...)"
    )
    raise TypeError(message)


def _dtype(x: Any) -> np.dtype[Any]:
    """Return NumPy's name for an array's dtype, such as ``array_api_strict.int8``."""
    if isinstance(x.dtype, np.dtype):
        return x.dtype
    return np.dtype(str(x.dtype).rpartition(".")[2])


def _library(device: Device) -> Any:
    return np if device.type == "cpu" else _optional.cupy()


def _is_native(x: Any, device: Device) -> bool:
    """Say whether an array on a device is of the library that xdev uses there."""
    return device.type == "fake" or isinstance(x, _library(device).ndarray)


def _adopt(x: Any, device: Device) -> Any:
    """Return the same memory as an array of the device's library."""
    if device.type == "cpu" and not hasattr(x, "__cuda_array_interface__"):
        return np.from_dlpack(x) if hasattr(x, "__dlpack__") else np.asarray(x)
    with registry.backend(device.type).use(device.index):
        return _library(device).asarray(x)


def _check_out(x: Any, out: Any, target: Device) -> None:
    where = device_of(out)
    if where != target:
        message = (
            f"out= is on {where}, but {target} was asked for: pass an array of "
            f"{target}, xdev.empty(shape, dtype=..., device='{target}')"
        )
        raise DeviceMismatchError(message)
    if tuple(out.shape) != tuple(x.shape) or _dtype(out) != _dtype(x):
        message = (
            f"out= has shape {tuple(out.shape)} and dtype {out.dtype}, but the array "
            f"has shape {tuple(x.shape)} and dtype {x.dtype}: make it with "
            f"xdev.empty_like(x, device='{target}')"
        )
        raise ValueError(message)
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        message = "out= is read-only: pass a writable array, such as out.copy()"
        raise ValueError(message)


def _copy_host(x: Any, target: Device, out: Any) -> Any:
    """Copy between arrays that the host holds: NumPy's and the fake devices'."""
    if device_of(x).type == "fake":  # explicit, so it may go where implicit may not
        x = x.to_device(_optional.array_api_strict().Device("CPU_DEVICE"))
    values = np.asarray(x)
    if target.type == "fake":
        native = registry.backend("fake").native(target.index)
        moved = _optional.array_api_strict().asarray(values, device=native, copy=True)
        if out is None:
            return moved
        out[...] = moved
        return out
    if out is None:
        out = memory.host_array(values.shape, values.dtype)
    np.copyto(out, values)
    return out
