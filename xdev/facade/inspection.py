"""What the namespace can do, and which library serves what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from xdev.device import Device, default_device, devices
from xdev.facade.libraries import library_of
from xdev.facade.places import place
from xdev.facade.places.other import OtherPlace

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["__array_api_version__", "__array_namespace_info__", "namespace"]

__array_api_version__ = "2025.12"


@final
class NamespaceInfo:
    """The standard's inspection functions."""

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """Return what the default device's library can do, by the standard's names."""
        found: dict[str, Any] = place().info().capabilities()
        return found

    def default_device(self) -> Device:
        """Return the device that creation functions use when none is named."""
        return default_device()

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
        where = place(device)
        found: dict[str, Any] = where.info().default_dtypes(device=_native(where))
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
        where = place(device)
        found: dict[str, Any] = where.info().dtypes(device=_native(where), kind=kind)
        return found

    def devices(self) -> tuple[Device, ...]:
        """Return the devices that can be used now."""
        return devices()


def _native(where: Any) -> Any:
    return where.device if isinstance(where, OtherPlace) else None


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
    if isinstance(x_or_device, str | Device):
        sample = place(x_or_device).empty(0, None)
        return library_of(sample, "namespace").namespace
    return library_of(x_or_device, "namespace", "x_or_device").namespace
