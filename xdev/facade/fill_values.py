"""What ``full`` and ``full_like`` are filled with: a number that is there already."""

from __future__ import annotations

from typing import Any

import numpy as np

from xdev.device import as_device, default_device
from xdev.facade.places.cpu import number
from xdev.ufunc.complaints import elsewhere, mismatch, where_is

#: Numbers of the host, which go anywhere.
HOSTS = (np.generic, int, float, complex, np.ndarray)


def checked(name: str, value: Any, like: Any, device: object) -> Any:
    """Return a fill value that is no plain number of Python's, checked.

    Parameters
    ----------
    name : str
        The function's, for errors.
    value : object
        What it got.
    like : array, optional
        What the result is made after.
    device : device, optional
        Where the result is to be.

    Returns
    -------
    number or array
        NumPy's 0-d arrays as scalars.

    Raises
    ------
    TypeError
        It is no number.
    DeviceMismatchError
        It is an array of another device than the result's.
    UseAfterFreeError
        It was freed.
    """
    value = number(name, value)
    if isinstance(value, HOSTS):
        return value
    here = where_is(value)
    if here is None:
        return value
    if device is None and like is not None:
        if where_is(like) not in (None, here):
            raise mismatch(name, ("x", like), ("fill_value", value))
    else:
        target = default_device() if device is None else as_device(device)
        if target != here:
            raise elsewhere(name, value, here, target)
    return value
