"""Where arrays are made: one place a device, found by its name or object."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev._freed import FREED
from xdev.device import Device, as_device, default_device, device_of
from xdev.device.choice import CPU, from_environment, in_context
from xdev.device.registry import backend
from xdev.errors import ConfigurationError
from xdev.facade.dispatch import library_named, library_of
from xdev.facade.places.cpu import HOST

if TYPE_CHECKING:
    from types import ModuleType

    from xdev.facade.protocols import Place

# Filled at the first array on a device. Two threads may do the same work: no harm.
_places: dict[str, dict[int, Place]] = {"cpu": {0: HOST}}


def place(device: object = None) -> Place:
    """Return the place for a device, its name or its library's object; None: default.

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        There is no such device, or it cannot be used.
    """
    if device is None:
        device = in_context() or (from_environment and from_environment[0])
        device = device or default_device()
    chosen = device if type(device) is Device else as_device(device)
    if chosen is CPU:
        return HOST
    made = _places.get(chosen.kind, {}).get(chosen.index)
    if made is None:
        made = _make(chosen.require())
        _places.setdefault(chosen.kind, {})[chosen.index] = made
    return made


def collections(chunks: Any, device: object = None) -> Any:
    """Return the place of Dask's collections with such chunks on a device.

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        There is no such device, it cannot be used, is a fake one or another library's;
        Dask is not installed.
    """
    where = as_device(device)
    if where.type == "fake":
        message = (
            f"chunks= makes a collection of Dask's, which computes with NumPy's and "
            f"CuPy's arrays, and the device is {where}: give device='cpu', or set "
            f"XDEV_DEVICE=cpu"
        )
        raise ConfigurationError(message)
    module = importlib.import_module("xdev.facade.places.dask")
    return module.CollectionPlace(where, chunks)


def place_of(x: Any, name: str) -> Place:
    """Return the place that an array is on, in its own library.

    Raises
    ------
    TypeError
        ``x`` is no array; the text names the function.
    """
    library = library_of(x, name)
    if library.device_type is None and not hasattr(x, "dask"):
        return _other().OtherPlace(library, library.device(x))
    return place(device_of(x))


def stays(x: Any, device: object) -> bool:
    """Say whether what is made for ``device`` is where and what the array ``x`` is."""
    if device is None:
        return True
    if type(x) is np.ndarray and x.dtype not in FREED:
        return place(device) is HOST
    chosen, here = as_device(device), device_of(x)
    return chosen == here and chosen.library in (None, here.library)


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


def _make(device: Device) -> Place:
    if device.library is not None:
        return _other().foreign(device)
    if device.type == "cuda":
        cuda = importlib.import_module("xdev.facade.places.cuda")
        made: Place = cuda.CudaPlace(device.index)
        return made
    if device.type == "fake":
        fake = importlib.import_module("xdev.facade.places.fake")
        stand_in: Place = fake.FakePlace(device.index)
        return stand_in
    owner = backend(device.type)
    namespace = importlib.import_module(owner.libraries[0])
    return _other().OtherPlace(library_named(namespace), owner.native(device.index))


def _other() -> ModuleType:
    """Return the module of other libraries' places, loaded at the first of them."""
    from xdev.facade.places import other

    return other


def _after_fork_in_child() -> None:
    # So that CUDA in a child meets the device's own refusal, not a crash.
    for kind in [kind for kind in _places if kind.startswith("cuda")]:
        del _places[kind]


os.register_at_fork(after_in_child=_after_fork_in_child)
