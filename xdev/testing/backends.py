"""The backends of the fixture ``xp``, and which of them SciPy's markers leave out."""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from xdev.device import as_device, use_device

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from types import ModuleType

    from xdev.device import Device


class Backend(NamedTuple):
    """Where arrays are, whose functions make them, and whether they are lazy."""

    device: str
    namespace: str
    lazy: bool = False


#: By SciPy's names, and ``fake``.
BACKENDS = {
    "numpy": Backend("cpu", "xdev"),
    "fake": Backend("fake", "xdev"),
    "cupy": Backend("cuda", "xdev"),
    "torch": Backend("cpu", "array_api_compat.torch"),
    "jax.numpy": Backend("cpu", "jax.numpy", lazy=True),
    "dask.array": Backend("cpu", "array_api_compat.dask.array", lazy=True),
    "array_api_strict": Backend("cpu", "array_api_strict"),
}
#: Which backends a keyword of a marker leaves out, and the reason it gives.
KEYWORDS = {
    "np_only": (set(BACKENDS) - {"numpy"}, "only NumPy is supported"),
    "cpu_only": (
        {name for name, backend in BACKENDS.items() if backend.device != "cpu"},
        "only the CPU is supported",
    ),
    "eager_only": (
        {name for name, backend in BACKENDS.items() if backend.lazy},
        "only eager arrays are supported",
    ),
}


class Marker(Protocol):
    """What pytest's markers have."""

    @property
    def args(self) -> tuple[Any, ...]:
        """What was given by position."""

    @property
    def kwargs(self) -> Mapping[str, Any]:
        """What was given by name."""


def reasons(markers: Iterable[Marker]) -> dict[str, str]:
    """Return the backends that markers leave out, each with the reason.

    Parameters
    ----------
    markers : iterable of pytest.Mark
        Of ``skip_xp_backends(backend, *, reason)`` or ``skip_xp_backends(*, np_only,
        cpu_only, eager_only, exceptions, reason)``; of several reasons for one backend
        the one that names it counts, else the first.

    Raises
    ------
    TypeError, ValueError
        A marker has an argument that it cannot have, or names no backend.
    """
    by_name: dict[str, str] = {}
    by_kind: dict[str, str] = {}
    for marker in markers:
        given = dict(marker.kwargs)
        reason = given.pop("reason", None)
        if marker.args:
            name = _named(marker.args, given)
            by_name.setdefault(name, reason or f"{name} is not supported")
            continue
        listed = given.pop("exceptions", ())
        exceptions = {listed} if isinstance(listed, str) else set(listed)
        for name in exceptions:
            _check(name)
        for keyword, wanted in given.items():
            if keyword not in KEYWORDS:
                valid = ", ".join(("reason", "exceptions", *KEYWORDS))
                message = f"the marker has no argument {keyword!r}: use {valid}"
                raise TypeError(message)
            left_out, why = KEYWORDS[keyword]
            for name in left_out - exceptions if wanted else ():
                by_kind.setdefault(name, reason or why)
    return by_kind | by_name


def _named(args: tuple[Any, ...], others: dict[str, Any]) -> str:
    name = args[0]
    if len(args) > 1 or others:
        message = (
            f"the marker takes one backend and a reason, or keywords: {args}, {others}"
        )
        raise ValueError(message)
    _check(name)
    return str(name)


def _check(name: object) -> None:
    if not isinstance(name, str) or name not in BACKENDS:
        message = f"{name!r} is not a backend: use one of {', '.join(BACKENDS)}"
        raise ValueError(message)


def require(name: str) -> AbstractContextManager[ModuleType]:
    """Return the context in which a backend is the default; it gives its namespace.

    Raises
    ------
    ImportError, DeviceUnavailableError
        The library is not installed, or its device cannot be used.
    """
    backend = BACKENDS[name]
    device = as_device(backend.device)
    return _opened(device, importlib.import_module(backend.namespace))


@contextmanager
def _opened(device: Device, namespace: ModuleType) -> Iterator[ModuleType]:
    with use_device(device):
        yield namespace
