"""Where arrays are made: one place a device, found by its name or object."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.device import Device, as_device, default_device, device_of
from xdev.device.registry import backend
from xdev.facade.libraries import library_named
from xdev.facade.places.cpu import HOST
from xdev.facade.places.other import OtherPlace

if TYPE_CHECKING:
    from xdev.facade.protocols import Place

# Filled at the first array on a device. Two threads may do the same work; the last wins.
_places: dict[str, dict[int, Place]] = {"cpu": {0: HOST}}
_by_name: dict[str, Place] = {"cpu": HOST}


def place(device: object = None) -> Place:
    """Return the place for a device, its name or its library's object; None: default.

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        There is no such device, or it cannot be used.
    """
    if device is None:
        device = default_device()
    elif type(device) is str:
        found = _by_name.get(device)
        if found is not None:
            return found
    if type(device) is Device:
        found = _places.get(device.type, {}).get(device.index)
        if found is not None:
            return found
    chosen = as_device(device)
    made = _places.setdefault(chosen.type, {}).setdefault(chosen.index, _make(chosen))
    _by_name[str(chosen)] = made  # not "cuda": that is the current one
    return made


def place_of(x: Any) -> Place:
    """Return the place that an array is on, in its own library."""
    if isinstance(x, np.ndarray | np.generic):
        return HOST
    compat = importlib.import_module("array_api_compat")
    namespace = compat.array_namespace(x)
    if compat.is_cupy_namespace(namespace):
        return place(device_of(x))
    return OtherPlace(library_named(namespace), compat.device(x))


def _make(device: Device) -> Place:
    if device.type == "cuda":
        cuda = importlib.import_module("xdev.facade.places.cuda")
        made: Place = cuda.CudaPlace(device.index)
        return made
    owner = backend(device.type)
    namespace = importlib.import_module(owner.libraries[0])
    return OtherPlace(library_named(namespace), owner.native(device.index))


def _after_fork_in_child() -> None:
    # So that CUDA in a child meets the device's own refusal, not a crash.
    _places.pop("cuda", None)
    for name in [name for name in _by_name if name.startswith("cuda")]:
        del _by_name[name]


os.register_at_fork(after_in_child=_after_fork_in_child)
