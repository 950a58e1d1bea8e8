"""Copies to a device as another library has it: the values come by NumPy or CuPy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from xdev.device import Device
from xdev.device.copies import announce
from xdev.device.natives import natives
from xdev.transfer.exporters import dtype_of, refuse_mask

if TYPE_CHECKING:
    from collections.abc import Callable


def to_library(
    x: Any, source: Device, target: Device, plain: Callable[[Device], Any]
) -> Any:
    """Return an array's values as the array of the library that a device names.

    Parameters
    ----------
    x : array
        Of any library.
    source, target : Device
        Where it is, and where to.
    plain : callable
        Returns ``x`` on a device as that device's usual array. It is shared with the
        library where that can be.
    """
    step = plain_device(target)
    values = plain(step)
    if target.library != "dask":  # whose chunks keep their type
        refuse_mask(values)
    if target not in (step, source):  # a device that only the library knows
        announce(source, target, math.prod(x.shape) * dtype_of(x).itemsize)
    return natives(str(target.library)).adopt(values, target.native)


def plain_device(device: Device) -> Device:
    """Return where a library's device takes arrays from, as xdev's own device.

    Examples
    --------
    >>> plain_device(Device("fake", "array_api_strict"))
    Device('cpu')
    """
    # Dask's chunks are xdev's own arrays; so is what other libraries take on CUDA.
    there = device.type == "cuda" or device.library in (None, "dask")
    return Device(str(device) if there else "cpu")
