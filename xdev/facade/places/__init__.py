"""Where arrays are made: one place a device, found by its name or object."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from xdev.device import Device, as_device, default_device, device_of
from xdev.device.registry import backend
from xdev.facade.libraries import library_named, library_of
from xdev.facade.places.cpu import HOST
from xdev.facade.places.other import OtherPlace

if TYPE_CHECKING:
    from xdev.facade.protocols import Place

# Filled at the first array on a device. Two threads may do the same work: no harm.
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
        made = _places.get(device.type)
        if made is not None and device.index in made:
            return made[device.index]
    chosen = as_device(device)
    fresh = _make(chosen)
    _places.setdefault(chosen.type, {})[chosen.index] = fresh
    _by_name[str(chosen)] = fresh  # not "cuda": that is the current one
    return fresh


def place_of(x: Any, name: str) -> Place:
    """Return the place that an array is on, in its own library.

    Raises
    ------
    TypeError
        ``x`` is no array; the text names the function.
    """
    library = library_of(x, name)
    if library.device_type is None:
        return OtherPlace(library, library.device(x))
    return place(device_of(x))


def stays(x: Any, device: object) -> bool:
    """Say whether what is made for ``device`` is where the array ``x`` is."""
    return device is None or as_device(device) == device_of(x)


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
