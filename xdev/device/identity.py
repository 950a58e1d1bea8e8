"""``Device``: the name of one device, equal to every other name of it."""

from __future__ import annotations

import re
from typing import Any, Self, final

from xdev.device import registry
from xdev.errors import ConfigurationError, DeviceUnavailableError


@final
class Device:
    """One device, by name.

    Parameters
    ----------
    name : str, Device or a library's own device object
        ``"cpu"``, ``"cuda"`` (CuPy's current one), ``"cuda:1"``, ``"fake"`` (index 0),
        ``"fake:1"``, or a device object of CuPy, PyTorch, JAX or array_api_strict.

    Attributes
    ----------
    type : str
        ``"cpu"``, ``"cuda"`` or ``"fake"``.
    index : int
        Which one of its type.

    Raises
    ------
    ConfigurationError
        The name is no device's; the text lists the forms.

    Examples
    --------
    >>> Device("cpu") == "cpu", str(Device("cuda:1")), Device("cuda:1").index
    (True, 'cuda:1', 1)
    """

    __slots__ = ("index", "type")
    type: str
    index: int

    def __init__(self, name: object) -> None:
        type_, index = _parse(name)
        object.__setattr__(self, "type", type_)
        object.__setattr__(self, "index", index)

    def __setattr__(self, name: str, value: object) -> None:
        message = f"a Device cannot be changed: make another, Device('{value}')"
        raise AttributeError(message)

    @property
    def reason(self) -> str | None:
        """Why the device cannot be used, with the fix; None when it can."""
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
        registry.start(self.type)
        return self

    def __str__(self) -> str:
        return self.type if self.type == "cpu" else f"{self.type}:{self.index}"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __repr__(self) -> str:
        return f"Device({str(self)!r})"

    def __hash__(self) -> int:
        return hash(str(self))

    def __eq__(self, other: object) -> bool:
        try:
            return (self.type, self.index) == _parse(other)
        except ConfigurationError:
            return NotImplemented

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return Device, (str(self),)


def _parse(name: object) -> tuple[str, int]:
    """Return (type, index) of a name, a Device or a library's device object."""
    if isinstance(name, Device):
        return name.type, name.index
    if not isinstance(name, str):
        return _parse_native(name)
    match = re.fullmatch(r"([a-z]\w*)(?::(\d{1,9}))?", name)
    if match is None or (match[1] == "cpu" and match[2] not in (None, "0")):
        raise ConfigurationError(registry.unknown(name))
    backend = registry.backend(match[1])
    return match[1], backend.current() if match[2] is None else int(match[2])


def _parse_native(native: Any) -> tuple[str, int]:
    """Return (type, index) of CuPy's, PyTorch's, JAX's or a backend's device object."""
    library = type(native).__module__.partition(".")[0]
    if library == "torch" and hasattr(native, "type"):
        index = "" if native.index is None else f":{native.index}"
        return _parse("cpu" if native.type == "cpu" else f"{native.type}{index}")
    if library in ("jax", "jaxlib") and hasattr(native, "platform"):
        return ("cpu", 0) if native.platform == "cpu" else ("cuda", native.id)
    if library == "array_api_strict" and str(native).endswith("('CPU_DEVICE')"):
        return "cpu", 0
    for name, backend in registry.backends().items():
        if library in backend.libraries:
            try:
                return name, backend.index_of(native)
            except (AttributeError, ValueError):
                break
    message = (
        f"{native!r} is no device: use a string such as 'cpu' or 'cuda:0', an "
        f"xdev.Device, or a device object of the array's library"
    )
    raise ConfigurationError(message)
