"""From one device to another, and from one library's arrays to another's."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xdev.device import Device


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
    return transfer.to_device(x, target)
