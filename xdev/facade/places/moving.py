"""From one device to another, and from one library's arrays to another's."""

from __future__ import annotations

import importlib
import math
from typing import TYPE_CHECKING, Any

from xdev.device import Device, device_of
from xdev.device.natives import natives
from xdev.facade.dtype_names import to_numpy_dtype

if TYPE_CHECKING:
    from types import ModuleType


def moved(x: Any, target: Device) -> Any:
    """Return an array's values on a device, as that device's library has arrays.

    Parameters
    ----------
    x : array
        Of any library.
    target : Device
        Where to. Where it names a library, the values reach that library through
        NumPy's array, on CUDA through CuPy's, sharing memory where it can.

    Raises
    ------
    TypeError
        The data type is none of the target's.
    XdevError
        A :func:`xdev.transfer_guard` disallows the copy.
    """
    transfer = importlib.import_module("xdev.transfer")
    if target.library is None:
        return transfer.to_device(x, target)
    source = device_of(x)
    # Dask's chunks are xdev's own arrays; so is what other libraries take on CUDA.
    there = target.type == "cuda" or target.library == "dask"
    step = Device(str(target) if there else "cpu")
    plain = transfer.to_device(x, step)
    if target not in (step, source):  # a device that only the library knows
        _announce(source, target, plain)
    return natives(target.library).adopt(plain, target.native)


def _announce(source: Device, target: Device, x: Any) -> None:
    guard: ModuleType = importlib.import_module("xdev.transfer.guard")
    nbytes = math.prod(x.shape) * to_numpy_dtype(x.dtype).itemsize
    guard.announce(source, target, nbytes)
