"""``Device``: the name of one device, equal to every other name of it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Never, Self, final

from xdev.device import registry
from xdev.errors import ConfigurationError, DeviceUnavailableError, type_name

if TYPE_CHECKING:
    from xdev.device.protocols import Natives


LONGEST_NUMBER = 9  # of digits: no more devices than that
LONGEST_TEXT = 60  # of an object in a message


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
        The name is no device's, or the library unknown; the text lists the forms.

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

        Raises
        ------
        DeviceUnavailableError
            It cannot be used; the text says why and what would fix it.
        """
        reason = self.reason
        if reason is not None:
            message = f"{self} cannot be used: {reason}"
            raise DeviceUnavailableError(message)
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
        message = (
            f"a Device is a name alone: the default device of a block is set by "
            f"with xdev.use_device({str(self)!r}):"
        )
        raise TypeError(message)

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
        try:
            return (self.type, self.index) == _parse(other)[:2]
        except ConfigurationError:
            return NotImplemented

    def _arguments(self) -> tuple[str, ...]:
        return (str(self),) if self.library is None else (str(self), self.library)

    def __reduce__(self) -> tuple[Any, tuple[str, ...]]:
        return Device, self._arguments()


def named(name: object) -> Device:
    """Return the device of a name or library's device object, the same each time.

    Raises
    ------
    ConfigurationError
        It is no device's.
    """
    return _interned(*_parse(name))


@lru_cache(256)
def _interned(type_: str, index: int, library: str | None) -> Device:
    return Device(f"{type_}:{index}", library)


def names_device(thing: object) -> bool:
    """Say whether an object, no string, is a device that xdev knows."""
    if isinstance(thing, Device):
        return True
    try:
        _parse_native(thing)
    except ConfigurationError:
        return False
    return True


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
    """Return the type and the index in a name; no type: it is no device's name."""
    # Without a regular expression: `import xdev` would compile it for "cpu".
    type_, colon, number = name.partition(":")
    if not type_.isidentifier() or not "a" <= name[0] <= "z":
        return "", None
    if not colon:
        return type_, None
    if not number.isdecimal() or len(number) > LONGEST_NUMBER:
        return "", None
    return type_, int(number)


def _natives(library: str) -> Natives:
    from xdev.device.natives import natives  # at the first other library

    return natives(library)


#: The backend whose devices are objects of a type, once one was seen.
_owners: dict[type, str] = {}


def of_one_library(kind: type, native: object) -> bool:
    """Say whether a type, and a device that was read, are of one backend's library."""
    name = _owners.get(type(native))
    top = kind.__module__.partition(".")[0]
    return name is not None and top in registry.backend(name).libraries


def _parse_native(native: Any) -> tuple[str, int, str | None]:
    """Return (type, index, library) of a library's or a backend's device object."""
    kind = type(native)
    if kind in _owners:
        name = _owners[kind]
        try:
            return name, registry.backend(name).index_of(native), None
        except (AttributeError, ValueError):
            pass
    from xdev.device.natives import LIBRARIES, library_of_type

    known = library_of_type(kind)
    if known is not None:
        try:
            return *LIBRARIES[known].place(native), known
        except (AttributeError, ValueError):
            pass
    top = kind.__module__.partition(".")[0]
    for name, backend in registry.backends().items():
        if top in backend.libraries:
            try:
                index = backend.index_of(native)
            except (AttributeError, ValueError):
                break
            _owners[kind] = name
            return name, index, None
    message = (
        f"{shown(native)} is not a device that xdev knows: use a string such as "
        f"'cpu' or 'cuda:0', an xdev.Device, or a device object of the array's library"
    )
    raise ConfigurationError(message)


def may_name(text: object) -> bool:
    """Say whether it has the form of a device's name, be there such a device or not."""
    return isinstance(text, str) and _split(text)[0] != ""


def shown(thing: object) -> str:
    """Return a short text; of arrays and containers only what they are."""
    held = hasattr(thing, "shape") or hasattr(thing, "__len__")
    text = "" if held and not isinstance(thing, str | type) else repr(thing)
    return text if 0 < len(text) <= LONGEST_TEXT else f"an object of {type_name(thing)}"
