"""Functions that turn things into arrays."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev._freed import FREED
from xdev.device import Device, as_device, device_of
from xdev.facade.dispatch import (
    BESIDE,
    direct,
    moved,
    place,
    place_of,
    stays,
)
from xdev.ufunc.complaints import PAGE, misplaced

if TYPE_CHECKING:
    from typing import Never

    from xdev.facade.protocols import DType

__all__ = [
    "asarray",
    "from_dlpack",
]

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
        return _cut(obj, dtype, device, copy, chunks)
    kind = type(obj)
    if kind is ndarray:
        if dtype is device is None and not copy and obj.dtype not in FREED:
            return obj
    else:
        if kind in BESIDE or kind.__module__ in _PLAIN_MODULES:
            if (kind is list or kind is tuple) and "dask.array" in sys.modules:
                _refuse_collections(obj)
            return place(device).asarray(obj, dtype, copy)
        if not _is_array(obj):
            exported = _exported(obj)
            if exported is None:
                return place(device).asarray(obj, dtype, copy)
            obj = exported
    if stays(obj, device):
        return place_of(obj, "asarray").asarray(obj, dtype, copy)
    there = _moved(obj, device, "asarray", copy)
    return there if dtype is None else place(device).asarray(there, dtype, None)


def _exported(obj: Any) -> Any:
    """Return the array whose memory an object lends by a protocol; None for others."""
    if hasattr(obj, "__cuda_array_interface__"):
        return place(device_of(obj)).asarray(obj, None, None)
    if not hasattr(obj, "__dlpack__"):
        return None
    # NumPy takes what DLPack lent before its version 1 for read-only.
    told = hasattr(obj, "__array_interface__")
    return np.asarray(obj) if told else from_dlpack(obj)


def _refuse_collections(nested: Any) -> None:
    """Refuse lists that hold collections of Dask's, which NumPy would compute."""
    kinds = {*map(type, nested)}
    if getattr(sys.modules["dask.array"], "Array", None) in kinds:
        raise TypeError(
            f"xdev.asarray: the list holds a collection of Dask's, which is not "
            f"computed unasked: join them with xdev.stack, or pass x.compute() ({PAGE})"
        )
    if list in kinds or tuple in kinds:
        for part in nested:
            if type(part) is list or type(part) is tuple:
                _refuse_collections(part)


def _cut(obj: Any, dtype: DType, device: object, copy: bool | None, chunks: Any) -> Any:
    """Return an array, or a collection cut otherwise, as a collection."""
    if device is not None and hasattr(obj, "dask"):
        device = Device(device, "dask")  # or it would be computed
    whole = asarray(obj, dtype, device=device, copy=copy)
    where: Any = place(device_of(whole), chunks)
    return where.cut(whole)


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
    if (
        (device is None and copy is None)
        and type(x) is ndarray
        and x.dtype not in FREED
    ):
        return _from_dlpack(x)
    if not hasattr(x, "__dlpack__"):
        way = "use xdev.asarray(x)"
        if hasattr(x, "dask"):
            way = f"it has no memory before x.compute() ({PAGE})"
        message = f"xdev.from_dlpack: a {type(x).__name__} has no __dlpack__: {way}"
        raise TypeError(message)
    here = place_of(x, "from_dlpack") if _is_array(x) else place(device_of(x))
    if stays(x, device):
        return here.from_dlpack(x, copy)
    try:
        return _moved(here.from_dlpack(x, None), device, "from_dlpack", copy)
    except ValueError as error:
        raise BufferError(str(error)) from error


def _is_array(obj: Any) -> bool:
    if isinstance(obj, np.ndarray):
        return True
    if type(obj) in direct:
        return True
    found: bool = importlib.import_module("array_api_compat").is_array_api_obj(obj)
    return found


def _moved(x: Any, device: object, name: str, copy: bool | None) -> Any:
    """Copy an array to another device or library; ``copy=False`` forbids that."""
    target = as_device(device)
    if copy is False:
        raise ValueError(
            f"xdev.{name}: copy=False, but the array is on {device_of(x)} and must be "
            f"copied to {target!r}: leave copy= out, or keep it where it is"
        )
    return moved(x, target)
