"""Which device: the default, the ones there are, and the one an array is on."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Self, final

import numpy as np

from xdev import _config
from xdev._freed import is_freed, use_after_free
from xdev.device import registry
from xdev.device.decorators import CallDecorator
from xdev.device.identity import Device, may_name, named, of_one_library, shown
from xdev.errors import ConfigurationError, not_array

DLPACK_TYPES = {1: "cpu", 2: "cuda", 3: "cpu", 13: "cuda"}  # dlpack.h: DLDeviceType

# None until it is set in this context: then XDEV_DEVICE decides.
_default: ContextVar[Device | None] = ContextVar("xdev_default_device", default=None)
# What it was outside of each `with use_device(...)` of this context.
_outer: ContextVar[tuple[Device | None, ...]] = ContextVar("xdev_outer", default=())
from_environment: list[Device] = []
#: The types of arrays of backends' libraries, CuPy's say: their ``device`` says it all.
own_kinds: set[type] = set()
in_context = _default.get
CPU = Device("cpu")  # the one object that is ever a default: compared by identity


def devices() -> list[Device]:
    """Return the devices that can be used now: the CPU, then CUDA's.

    Under ``XDEV_DEVICE=fake`` the fake ones follow.

    Examples
    --------
    >>> str(devices()[0])
    'cpu'
    """
    names = [name for name in registry.backends() if name != "fake"]
    if _config.device().startswith("fake"):
        names.append("fake")
    return [
        Device(f"{name}:{index}")
        for name in names
        for index in range(registry.backend(name).count())
    ]


def default_device() -> Device:
    """Return the device that creation functions use when none is named.

    It is what :func:`set_default_device` or :func:`use_device` set in this context
    (a thread starts without), else ``XDEV_DEVICE``; ``auto``, its default, is CUDA's
    current device where CUDA can be used, else the CPU.

    Raises
    ------
    DeviceUnavailableError
        ``XDEV_DEVICE`` names a device that cannot be used.
    ConfigurationError
        ``XDEV_DEVICE`` is invalid.
    """
    chosen = _default.get()
    if chosen is not None:
        return chosen
    if not from_environment:
        from_environment.append(_the_one(coming_default().require()))
    return from_environment[0]


def _the_one(device: Device) -> Device:
    """Return ``CPU`` for whatever names it, any other device itself."""
    return CPU if device == CPU and device.library is None else device


def coming_default() -> Device:
    """Return what :func:`default_device` will, without starting that device.

    Raises
    ------
    ConfigurationError
        ``XDEV_DEVICE`` is invalid.
    """
    chosen = _default.get()
    if chosen is not None or from_environment:
        return chosen or from_environment[0]
    name = _config.device()
    if name == "auto":
        name = "cuda" if registry.backend("cuda").count() else "cpu"
    return Device(name)


def set_default_device(device: object) -> None:
    """Set the default device of this context; None gives it back to ``XDEV_DEVICE``.

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        The device is unknown, or cannot be used.
    """
    _default.set(None if device is None else _the_one(as_device(device)))


def set_process_default(device: object) -> None:
    """Set the default device of all threads, as ``XDEV_DEVICE`` does.

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        The device is unknown, or cannot be used.
    """
    from_environment[:] = [_the_one(as_device(device))]


@final
class use_device(CallDecorator):  # noqa: N801 - called as a function
    """Make a device the default inside a ``with`` block, in this context only.

    Without ``with`` it does nothing: :func:`set_default_device` sets one for good.

    Parameters
    ----------
    device : device
        It is started where the block begins.

    Raises
    ------
    ConfigurationError
        There is no such device.
    DeviceUnavailableError
        Where the block begins: it cannot be used.

    Examples
    --------
    >>> with use_device("cpu") as device:
    ...     default_device() == device
    True
    """

    def __init__(self, device: object) -> None:
        if isinstance(device, str):
            named(device)  # refuses what is none
        elif device is not None and type(device) is not Device:
            device = Device(device)
        self._device = device

    def _recreate_cm(self) -> Self:
        """Return one for each call of a decorated function: calls may nest."""
        return type(self)(self._device)

    def __enter__(self) -> Device:
        chosen = _the_one(as_device(self._device))
        _outer.set((*_outer.get(), _default.get()))
        _default.set(chosen)
        return chosen

    def __exit__(self, *_: object) -> None:
        *outer, before = _outer.get()  # no token: threads may share this object
        _outer.set(tuple(outer))
        _default.set(before)


def as_device(device: object = None) -> Device:
    """Return the device that a name or object means, ready for use; None: the default.

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        The device is unknown, or cannot be used.
    """
    if device is None:
        return default_device()
    if isinstance(device, str):
        return named(device).require()
    return (device if isinstance(device, Device) else Device(device)).require()


def target_of(device: object, other: object, call: str) -> Device:
    """Return the device that an argument means; arguments in the wrong order are told.

    Parameters
    ----------
    device, other : object
        What a function was given as the device, and as its first argument.
    call : str
        How it is called.

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        The device is unknown, or cannot be used.
    """
    try:
        return as_device(device)
    except ConfigurationError:
        if may_name(device) or not _is_device(other):
            raise
    message = (
        f"the arguments are the wrong way round, the device is {shown(device)}: call "
        f"xdev.{call}"
    )
    raise ConfigurationError(message)


def _is_device(x: object) -> bool:
    try:
        Device(x)
    except ConfigurationError:
        return False
    return True


def device_of(x: Any) -> Device:
    """Return the device that an array is on.

    Given as ``device=`` to a creation function, it makes an array of the same library.

    Parameters
    ----------
    x : array
        Of NumPy, CuPy, Numba, PyTorch, JAX, Dask, array_api_strict, or any exporter of
        ``__dlpack_device__`` or ``__cuda_array_interface__``.

    Returns
    -------
    Device
        With :attr:`Device.library` set for PyTorch, JAX, Dask and array_api_strict. Of
        other libraries it says the hardware only. Of an array inside ``jax.jit`` it
        says where JAX computes unless told.

    Raises
    ------
    TypeError
        ``x`` is no array.
    ConfigurationError
        It is on a device that xdev does not know, or spread over several.
    UseAfterFreeError
        It was freed.

    Examples
    --------
    >>> import numpy as np
    >>> str(device_of(np.zeros(3)))
    'cpu'
    """
    kind = type(x)
    if kind in own_kinds:
        return named(x.device)
    if is_freed(x):
        raise use_after_free(x)
    if isinstance(x, np.ndarray | np.generic):
        return CPU
    if hasattr(x, "_meta") and hasattr(x, "dask"):  # a collection: where its chunks are
        return Device(device_of(x._meta), "dask")  # noqa: SLF001 - Dask's own protocol
    # CuPy's sparse matrices have the attribute, but it is not implemented.
    none = isinstance(x, type) or hasattr(kind, "tocsr")
    native = None if none else getattr(x, "device", None)
    if native is not None and not callable(native):
        try:
            device = named(native)
        except ConfigurationError:
            # The word of a library that is not known, as Warp's: DLPack's may be there.
            from xdev.device.natives import library_of_type

            exported = _exported(x) if library_of_type(kind) is None else None
            if exported is None:
                raise
            return exported
        # Of others more is to be asked, as whether they may be written to.
        if of_one_library(kind, native) and hasattr(x, "shape"):
            own_kinds.add(kind)
        return device
    found = None if none else _exported(x)
    if found is None:
        way = "pass an array, or make one with xdev.asarray(x)"
        message = f"x is {not_array(x, way)}"
        raise TypeError(message)
    return found


def _exported(x: Any) -> Device | None:
    """Return the device that an exporter names by its protocol, if it is one."""
    if hasattr(x, "__dlpack_device__"):
        type_, index = x.__dlpack_device__()
        name = DLPACK_TYPES.get(int(type_), str(type_))
        return Device(name if name == "cpu" else f"{name}:{index}")
    interface = getattr(x, "__cuda_array_interface__", None)
    if interface is not None:
        index = _index_of_pointer(interface["data"][0])
        return Device(f"cuda:{index}")
    native = traced(x)
    return None if native is None else Device(native)


def traced(x: Any) -> Any:
    """Return JAX's object for where an array that it traces will be, else None."""
    if not type(x).__module__.startswith("jax"):
        return None
    from xdev.device.natives import of_traced  # at the first of other libraries

    return of_traced(x)


def _index_of_pointer(address: int) -> int:
    backend: Any = registry.backend("cuda")
    # A size-0 array's address is null: it is wherever the caller is.
    found: int = backend.index_of_pointer(address) if address else backend.current()
    return found


def synchronize(device: object = None) -> None:
    """Wait until all work queued on a device (the default one) is done."""
    chosen = as_device(device)
    registry.backend(chosen.type).synchronize(chosen.index)


def can_access_peer(a: object, b: object) -> bool:
    """Say whether kernels on device ``a`` may read the memory of device ``b``."""
    first, second = as_device(a), as_device(b)
    if first.type != second.type:
        return False
    return registry.backend(first.type).can_access_peer(first.index, second.index)
