"""What the namespace can do, and which library serves what."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.device import Device, devices
from xdev.device.choice import coming_default, names_device
from xdev.device.registry import backend
from xdev.facade.dispatch import library_of, place

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["__array_api_version__", "__array_namespace_info__", "namespace"]

__array_api_version__ = "2025.12"


#: Devices whose arrays have NumPy's data types, defaults and number of dimensions.
LIKE_NUMPY = frozenset({"cpu", "cuda", "fake"})
MAX_DIMENSIONS = 64  # of NumPy's and CuPy's arrays


@final
class NamespaceInfo:
    """The standard's inspection functions; none of them starts a device."""

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """Return what the default device's library can do, by the standard's names."""
        where = coming_default()
        found: dict[str, Any] = _info(where).capabilities()
        if where.library is None:
            found.setdefault("max dimensions", MAX_DIMENSIONS)  # NumPy 2.3 lacks it
        return found

    def default_device(self) -> Any:
        """Return the device that creation functions use when none is named.

        Returns
        -------
        device
            As :meth:`devices` has it.
        """
        return coming_default().native

    def default_dtypes(self, *, device: object = None) -> dict[str, Any]:
        """Return the data types used where none is given, by kind.

        Parameters
        ----------
        device : device, optional
            The default device unless given.

        Raises
        ------
        ConfigurationError, DeviceUnavailableError
            There is no such device, or it cannot be used.
        """
        where = _usable(device)
        found: dict[str, Any] = _info(where).default_dtypes(device=_place(where))
        return found

    def dtypes(
        self, *, device: object = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, Any]:
        """Return the data types of a device, by name.

        Parameters
        ----------
        device : device, optional
            The default device unless given.
        kind : str or tuple of str, optional
            As :func:`isdtype` has them; all unless given.

        Raises
        ------
        ConfigurationError, DeviceUnavailableError
            There is no such device, or it cannot be used.
        ValueError
            There is no such kind.
        """
        where = _usable(device)
        found: dict[str, Any] = _info(where).dtypes(device=_place(where), kind=kind)
        return found

    def devices(self) -> tuple[Any, ...]:
        """Return the devices that can be used now.

        Returns
        -------
        tuple of devices
            As the arrays' own ``device`` names them, so that ``x.device`` is among
            them: CuPy's is equal to no other library's. :func:`xdev.devices` gives
            xdev's. A tuple, as the standard says since 2025.12.
        """
        return tuple(device.native for device in devices())


def _usable(device: object) -> Device:
    """Return the device that is meant, not started; it must be there."""
    chosen = coming_default() if device is None else Device(device)
    if chosen.library is not None or chosen.index >= backend(chosen.type).count():
        chosen.require()  # says why it cannot be used
    return chosen


def _info(device: Device) -> Any:
    """Return the inspection object of the library that serves a device."""
    if device.library is not None:
        found: Any = namespace(device)
        return found.__array_namespace_info__()
    if device.type in LIKE_NUMPY:
        return np.__array_namespace_info__()
    library: Any = importlib.import_module(backend(device.type).libraries[0])
    return library.__array_namespace_info__()


def _place(device: Device) -> Any:
    """Return the device in terms of that library; NumPy's knows the host only."""
    own = device.library is None and device.type in LIKE_NUMPY
    return None if own else device.native


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807 - the standard's name
    """Return the standard's inspection functions.

    Returns
    -------
    NamespaceInfo
        ``capabilities``, ``default_device``, ``default_dtypes``, ``dtypes``,
        ``devices``.

    Examples
    --------
    >>> import xdev
    >>> xdev.__array_namespace_info__().capabilities()["boolean indexing"]
    True
    """
    return NamespaceInfo()


def namespace(x_or_device: object, /) -> ModuleType:
    """Return the library that serves an array or a device, for what xdev lacks.

    Parameters
    ----------
    x_or_device : array, device or device name
        Whose library.

    Returns
    -------
    module
        ``numpy``, ``cupy``, ``array_api_strict``, or array_api_compat's for others.

    Raises
    ------
    TypeError
        It is neither an array nor a device.
    ConfigurationError, DeviceUnavailableError
        There is no such device, or it cannot be used.

    Examples
    --------
    >>> import numpy
    >>> import xdev
    >>> xdev.namespace("cpu") is numpy, xdev.namespace(numpy.ones(3)) is numpy
    (True, True)
    """
    if isinstance(x_or_device, str) or names_device(x_or_device):
        sample = place(x_or_device).empty(0, None)
        return library_of(sample, "namespace").namespace
    return library_of(x_or_device, "namespace", "x_or_device").namespace
