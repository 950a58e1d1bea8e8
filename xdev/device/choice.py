"""``Device``: a name equal to every other name of it; and which one is the default."""

from __future__ import annotations

import inspect
import math
import operator
import sys
from contextlib import ContextDecorator, suppress
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Never, Self, TypeVar, cast, final

import numpy as np

from xdev import _config, errors
from xdev._freed import is_freed, use_after_free
from xdev.device import registry
from xdev.errors import ConfigurationError, DeviceUnavailableError, not_array, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.device.natives import Natives

F = TypeVar("F", bound="Callable[..., Any]")


class CallDecorator(ContextDecorator):
    """A context manager that may stand above a function, for each of its calls."""

    def __call__(self, func: F) -> F:
        """Decorate a function."""
        later = inspect.iscoroutinefunction, inspect.isasyncgenfunction
        others = *later, inspect.isgeneratorfunction, inspect.isclass
        if any(is_one(func) for is_one in others):
            name = getattr(func, "__qualname__", repr(func))  # a partial has none
            mine = type(self).__name__
            raise TypeError(
                f"{mine} decorates functions whose body runs when they are called; "
                f"{name} is async, a generator or a class: write `with {mine}(...):` "
                f"inside it"
            )
        return super().__call__(func)


LONGEST_NUMBER = 9  # of digits: no more devices than that


@final
class Device:
    """One device, by name.

    Devices are equal that are the same hardware, whichever library's arrays are made
    there.

    Parameters
    ----------
    name : str, Device or a library's own device object
        ``"cpu"``, ``"cuda"`` (CuPy's current one), ``"cuda:1"``, ``"fake"`` (index 0),
        ``"fake:1"``, or a device object of CuPy, PyTorch, JAX or array_api_strict.
    library : str, optional
        Whose arrays creation functions make there: ``"torch"``, ``"jax"``, ``"dask"``
        or ``"array_api_strict"``; unless given, the library of the device object, and
        for a string xdev's own choice, NumPy on the CPU and CuPy on CUDA.

    Attributes
    ----------
    type : str
        ``"cpu"``, ``"cuda"`` or ``"fake"``.
    index : int
        Which one of its type.
    library : str or None
        None for xdev's own choice.

    Raises
    ------
    ConfigurationError
        The name is not a device's, or the library unknown; the text lists the forms.

    Examples
    --------
    >>> Device("cpu") == "cpu", str(Device("cuda:1")), Device("cuda:1").index
    (True, 'cuda:1', 1)
    """

    __slots__ = ("index", "kind", "library", "type")
    type: str
    index: int
    library: str | None
    #: The type, and whose arrays: what is the same for all indices.
    kind: str

    def __init__(self, name: object, library: str | None = None) -> None:
        type_, index, own = _parse(name, library)
        object.__setattr__(self, "type", type_)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "library", own)
        object.__setattr__(self, "kind", type_ if own is None else f"{type_} of {own}")

    def __setattr__(self, name: str, value: object) -> None:
        message = f"a Device cannot be changed: make another, Device('{value}')"
        raise AttributeError(message)

    @property
    def reason(self) -> str | None:
        """Why the device cannot be used, with the fix; None when it can."""
        if self.library is not None:
            try:
                return _natives(self.library).reason(self.type, self.index)
            except DeviceUnavailableError as error:  # the library cannot be imported
                return str(error)
        return registry.backend(self.type).reason(self.index)

    @property
    def available(self) -> bool:
        """Whether the device can be used."""
        return self.reason is None

    def require(self) -> Self:
        """Return the device, ready for use.

        Returns
        -------
        Device
            Itself.

        Raises
        ------
        DeviceUnavailableError
            It cannot be used; the text says why and what would fix it.

        Examples
        --------
        >>> Device("cpu").require()
        Device('cpu')
        """
        reason = self.reason
        if reason is not None:
            raise DeviceUnavailableError(f"{self} cannot be used: {reason}")
        if self.library is None:
            registry.start(self.type)
        return self

    @property
    def native(self) -> Any:
        """What the library whose arrays are made here calls this device."""
        if self.library is not None:
            return _natives(self.library).native(self.type, self.index)
        return registry.backend(self.type).native(self.index)

    def __enter__(self) -> Never:
        way = f"with xdev.use_device({str(self)!r}):"
        raise TypeError(f"a Device is a name; a block's default device is set by {way}")

    def __exit__(self, *error: object) -> None:
        """Nothing is entered; Python asks for it first."""

    def __str__(self) -> str:
        only = self.type == "cpu" and not self.index
        return self.type if only else f"{self.type}:{self.index}"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __repr__(self) -> str:
        return f"Device({', '.join(map(repr, self._arguments()))})"

    def __hash__(self) -> int:
        return hash(str(self))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Device):
            return self.type == other.type and self.index == other.index
        if other is None:  # also at a process's very end, where nothing is imported
            return NotImplemented
        try:
            return (self.type, self.index) == _parse(other)[:2]
        except ConfigurationError:
            return NotImplemented

    def _arguments(self) -> tuple[str, ...]:
        return (str(self),) if self.library is None else (str(self), self.library)

    def __reduce__(self) -> tuple[Any, tuple[str, ...]]:
        return Device, self._arguments()


def named(name: object) -> Device:
    """Return the device of a name or library's device object, the same each time."""
    return _interned(*_parse(name))


@lru_cache(256)
def _interned(type_: str, index: int, library: str | None) -> Device:
    return Device(f"{type_}:{index}", library)


def names_device(thing: object) -> bool:
    """Say whether an object is a device, or its name."""
    with suppress(ConfigurationError):
        _parse(thing)
        return True
    return False


def _parse(name: object, library: str | None = None) -> tuple[str, int, str | None]:
    """Return (type, index, library) of a name, Device or library's device object."""
    if library is not None:
        _natives(library)  # refuses unknown ones
    if isinstance(name, Device):
        return name.type, name.index, library or name.library
    if not isinstance(name, str):
        type_, index, own = _parse_native(name)
        return type_, index, library or own
    type_, number = _split(name)
    # JAX may have several CPUs.
    if not type_ or (type_ == "cpu" and number and library is None):
        raise ConfigurationError(registry.unknown(name))
    backend = registry.backend(type_)
    return type_, backend.current() if number is None else number, library


@lru_cache(64)
def _split(name: str) -> tuple[str, int | None]:
    """Return the type and the index in a name; no type where it is not a device's."""
    # Without a regular expression: `import xdev` would compile it for "cpu".
    type_, colon, number = name.partition(":")
    is_type = type_.isidentifier() and "a" <= name[0] <= "z"
    is_index = number.isdecimal() and len(number) <= LONGEST_NUMBER
    if not is_type or (colon and not is_index):
        return "", None
    return type_, int(number) if colon else None


def _natives(library: str) -> Natives:
    from xdev.device.natives import natives  # at the first other library

    return natives(library)


#: The backend whose devices are objects of a type, once one was seen.
_owners: dict[type, str] = {}


def _parse_native(native: Any) -> tuple[str, int, str | None]:
    """Return (type, index, library) of a library's or a backend's device object."""
    kind = type(native)
    name = _owners.get(kind)
    with suppress(AttributeError, LookupError, ValueError):
        if name is None:
            top, all_ = kind.__module__.partition(".")[0], registry.backends()
            name = next((name for name in all_ if top in all_[name].libraries), None)
        if name is not None:
            index = registry.backend(name).index_of(native)
            _owners[kind] = name
            return name, index, None
        from xdev.device.natives import LIBRARIES, library_of_type

        library = library_of_type(kind)
        if library is not None:
            return *LIBRARIES[library].place(native), library
    way = "an xdev.Device, or a device object of the array's library"
    if hasattr(native, "dtype"):
        way += "; to_device(x, device) takes it second, adapt(device, x) first"
    text = f"{shown(native)} is not a device that xdev knows: use a string such as"
    raise ConfigurationError(f"{text} 'cpu' or 'cuda:0', {way}")


ADDRESSES = 1 << 64  # how many bytes can be told apart
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

    Returns
    -------
    list of Device
        At least the CPU.

    Examples
    --------
    >>> str(devices()[0])
    'cpu'
    """
    counts = {name: backend.count() for name, backend in registry.backends().items()}
    fakes = counts.pop("fake")
    if _config.device().startswith("fake"):
        counts["fake"] = fakes
    return [Device(f"{name}:{k}") for name, n in counts.items() for k in range(n)]


def default_device() -> Device:
    """Return the device that creation functions use when none is named.

    It is what :func:`set_default_device` or :func:`use_device` set in this context
    (a thread starts without), else ``XDEV_DEVICE``; ``auto``, its default, is CUDA's
    current device where CUDA can be used, else the CPU.

    Returns
    -------
    Device
        Ready for use.

    Raises
    ------
    DeviceUnavailableError
        ``XDEV_DEVICE`` names a device that cannot be used.
    ConfigurationError
        ``XDEV_DEVICE`` is invalid.

    Examples
    --------
    >>> import xdev
    >>> with xdev.use_device("cpu"):
    ...     xdev.default_device()
    Device('cpu')
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
    """Return what :func:`default_device` will, without starting that device."""
    chosen = _default.get() or (from_environment and from_environment[0])
    if chosen:
        return chosen
    name = _config.device()
    if name == "auto":
        name = "cuda" if registry.backend("cuda").count() else "cpu"
    return Device(name)


def set_default_device(device: object) -> None:
    """Set the default device of this context.

    Parameters
    ----------
    device : Device, str or None
        Where creation functions make arrays unless told; None leaves that to
        ``XDEV_DEVICE`` again.

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        The device is unknown, or cannot be used.

    Examples
    --------
    >>> import xdev
    >>> with xdev.use_device("cpu"):  # which sets back what it finds
    ...     xdev.set_default_device("fake")
    ...     xdev.default_device()
    Device('fake:0')
    """
    _default.set(None if device is None else _the_one(as_device(device)))


def set_process_default(device: object) -> None:
    """Set the default device of all threads, as ``XDEV_DEVICE`` does."""
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
        if device is not None:
            named(device)  # refuses what is not a device
        self._device = device

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
    """Return the device that a name means, ready for use; None: the default one."""
    if device is None:
        return default_device()
    return (device if isinstance(device, Device) else named(device)).require()


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
        ``x`` is not an array.
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
    if hasattr(kind, "__dask_graph__") and hasattr(x, "_meta"):  # where its chunks are
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
        owner = _owners.get(type(native))
        libraries = () if owner is None else registry.backend(owner).libraries
        if kind.__module__.partition(".")[0] in libraries and hasattr(x, "shape"):
            own_kinds.add(kind)
        return device
    exported = None if none else _exported(x)
    if exported is None:
        way = "pass an array, or make one with xdev.asarray(x)"
        raise TypeError(f"x is {not_array(x, way)}")
    return exported


def _exported(x: Any) -> Device | None:
    """Return the device that an exporter names by its protocol, if it is one."""
    if hasattr(x, "__dlpack_device__"):
        answer = x.__dlpack_device__()
        try:
            type_, index = map(int, answer)
        except (TypeError, ValueError) as error:
            said = f"{errors.type_name(x)}.__dlpack_device__() returned"
            text = f"{said} {errors.quoted(answer)}, not a device's type and number"
            raise TypeError(f"{text}: pass an array") from error
        name = DLPACK_TYPES.get(type_, str(type_))
        return Device(name if name == "cpu" else f"{name}:{index}")
    interface = cuda_interface(x)
    if interface is not None:
        address, cuda = interface["data"][0], cast("Any", registry.backend("cuda"))
        if address:
            Device("cuda:0").require()
        index = cuda.index_of_memory(address, interface["shape"])
        # An empty array without memory is wherever the caller is.
        return Device(f"cuda:{cuda.current() if index is None else index}")
    native = traced(x)
    return None if native is None else Device(native)


def cuda_interface(x: Any) -> Any:
    """Return an object's interface, None without one; refuse what is no array's."""
    interface = getattr(x, "__cuda_array_interface__", None)
    if interface is None:
        return None
    try:
        shape = [*map(operator.index, interface["shape"])]
        strides, dtype = interface.get("strides"), np.dtype(str(interface["typestr"]))
        address, _ = interface["data"]  # an empty array may have none
        good = (
            min(shape, default=0) >= 0
            and math.prod(shape, start=dtype.itemsize) <= sys.maxsize
            and (strides is None or len(strides) == len(shape))
            and 0 <= operator.index(address or 0) < ADDRESSES
            and not dtype.hasobject
        )
    except Exception:  # noqa: BLE001 - whatever is in it
        good = False
    if not good:
        text = f"the __cuda_array_interface__ of a {errors.type_name(x)}"
        way = "it must have the shape, typestr and data of an array"
        raise TypeError(f"{text} is {shown(interface)}: {way}")
    return interface


def traced(x: Any) -> Any:
    """Return JAX's object for where an array that it traces will be, else None."""
    if not type(x).__module__.startswith("jax"):
        return None
    from xdev.device.natives import JAX  # at the first of other libraries

    return JAX.of_traced(x)
