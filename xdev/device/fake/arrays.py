"""``FakeArray``: an array on a fake device, as strict as CuPy's are."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev._freed import Remains, use_after_free
from xdev.device.fake.blocks import settle
from xdev.device.fake.surface import (
    ATTRIBUTES,
    BINARY,
    COMPARISONS,
    CONVERSIONS,
    DTYPES,
    METHODS,
    NOT_IN_PLACE,
    UNARY,
)
from xdev.device.identity import Device
from xdev.errors import DeviceMismatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    Values = np.ndarray[Any, Any]

EXTENSION = 12  # dlpack.h: kDLExtDev
HOST = (1, 0)  # dlpack.h: kDLCPU
#: What is no array, whatever it can turn into.
NUMBERS = (bool, int, float, complex, np.generic)


@final
class FakeArray:
    """An array on a fake device; made with ``device="fake"`` or ``XDEV_DEVICE=fake``.

    It has what ``numpy.ndarray`` and ``cupy.ndarray`` share, and for array_api_compat,
    which knows CuPy's by name, ``__array_namespace__``. It refuses what CuPy's refuse:
    to turn into a NumPy array unasked, to meet arrays of the host or of another device,
    to be an index of the host's. NumPy's functions refuse it.

    Examples
    --------
    >>> import numpy as np
    >>> import xdev
    >>> x = xdev.asarray([1.0, 2.0], device="fake")
    >>> x + 1, x.sum() == 3
    (array([2., 3.], device='fake:0'), array(True, device='fake:0'))
    >>> np.asarray(x)
    Traceback (most recent call last):
    TypeError: an array on fake:0 does not turn into a NumPy array unasked: copy it with
    xdev.to_numpy(x)
    """

    __slots__ = ("__weakref__", "_values", "device")
    # NumPy's operators then leave the operation to this class, its functions refuse.
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    _values: Values
    device: Device

    def __init__(self, values: Values, device: Device) -> None:
        if values.dtype.char not in DTYPES:
            message = f"arrays on {device} have no dtype {values.dtype}, as on CUDA"
            raise TypeError(message)
        self._values = settle(values, device.index)
        self.device = device

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """Return :mod:`xdev`."""
        known = (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
        if api_version not in known:
            message = f"there is no version {api_version!r} here: use 2025.12"
            raise ValueError(message)
        return sys.modules["xdev"]

    # -- what goes to the host -------------------------------------------------------

    def __array__(self, *_: Any, **__: Any) -> Any:
        message = (
            f"an array on {self.device} does not turn into a NumPy array unasked: copy "
            f"it with xdev.to_numpy(x)"
        )
        raise TypeError(message)

    def __array_function__(self, function: Any, *_: Any) -> Any:
        message = (
            f"numpy.{function.__name__} got an array on {self.device}: use xdev's "
            f"function of arrays on any device, or copy it with xdev.to_numpy(x)"
        )
        raise TypeError(message)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Export a copy to the host, where that is asked for by ``dl_device``.

        Raises
        ------
        BufferError
            It is not.
        """
        if dl_device != HOST or copy is False:
            message = (
                f"an array on {self.device} leaves it only as a copy: "
                f"xdev.to_numpy(x), or xdev.to_device(x, 'cpu')"
            )
            raise BufferError(message)
        return self._values.copy().__dlpack__(max_version=max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return EXTENSION, self.device.index

    # -- what Python asks of a container ---------------------------------------------

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        if not self._values.ndim:
            message = "iteration over a 0-d array"
            raise TypeError(message)
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        return run("x[...]", np.ndarray.__getitem__, self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        run("x[...] = y", np.ndarray.__setitem__, self, index, value)

    def __copy__(self) -> FakeArray:
        return FakeArray(self._values.copy(), self.device)

    def __deepcopy__(self, _: Any) -> FakeArray:
        return self.__copy__()

    def __reduce__(self) -> Any:
        return FakeArray, (self._values.copy(), self.device)

    def __format__(self, spec: str) -> str:
        return format(self._values[()], spec)

    def __repr__(self) -> str:
        text = repr(self._values)
        return f"{text[:-1]}, device='{self.device}')"

    def __str__(self) -> str:
        return str(self._values)


@final
class _Call:
    """One call on fake arrays: all arrays it got, and whose memory the values are."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._arrays: list[Any] = []

    def inside(self, x: Any) -> Any:
        """Return an argument with the values behind fake arrays in their place."""
        kind = type(x)
        if isinstance(x, Remains):
            raise use_after_free(x, self.name)
        if kind is FakeArray:
            self._arrays.append(x)
            return x._values  # noqa: SLF001 - a friend
        if isinstance(x, NUMBERS):
            return x
        if kind is tuple or kind is list:
            return kind(map(self.inside, x))
        if hasattr(kind, "__array__") or hasattr(kind, "__dlpack__"):
            self._arrays.append(x)
        return x

    def device(self, on: Device | None) -> Device:
        """Return the one device of all arrays.

        Raises
        ------
        DeviceMismatchError
            There are arrays of the host or of two devices.
        """
        fakes = [x for x in self._arrays if type(x) is FakeArray]
        where = on or (fakes[0].device if fakes else Device("fake"))
        for x in self._arrays:
            if type(x) is not FakeArray or x.device != where:
                raise self._mismatch(fakes, x, where)
        return where

    def outside(self, result: Any, where: Device) -> Any:
        """Return a result with fake arrays for what NumPy computed."""
        if isinstance(result, np.ndarray):
            for x in self._arrays:
                if x._values is result:  # noqa: SLF001 - a friend
                    return x
            return FakeArray(result, where)
        if isinstance(result, np.generic):
            return FakeArray(np.asarray(result), where)
        if isinstance(result, tuple | list):
            parts = [self.outside(part, where) for part in result]
            return getattr(type(result), "_make", type(result))(parts)
        return result

    def _mismatch(
        self, fakes: list[FakeArray], x: Any, where: Device
    ) -> DeviceMismatchError:
        there = x.device if type(x) is FakeArray else "cpu"
        others = [y for y in fakes if y.device == where]
        beside = f"{_text(others[0])}" if others else "what is made"
        return DeviceMismatchError(
            f"{self.name} got arrays of two devices: {_text(x)} is on {there}, "
            f"{beside} is on {where}; move one with xdev.to_device(x, '{where}')"
        )


def _text(x: Any) -> str:
    return f"{type(x).__name__} of shape {getattr(x, 'shape', '?')}"


def run(
    name: str,
    function: Callable[..., Any],
    /,
    *args: Any,
    on: Device | None = None,
    **options: Any,
) -> Any:
    """Call a function of NumPy's on fake arrays of one device.

    Parameters
    ----------
    name : str
        The function's, for errors.
    function : callable
        Takes and returns NumPy arrays.
    *args, **options
        Its arguments, with fake arrays for NumPy's.
    on : Device, optional
        Where results are if no argument says so; ``fake:0`` unless given.

    Returns
    -------
    object
        Fake arrays for arrays and NumPy's scalars; an argument that comes back (as
        ``out=`` does) is itself.

    Raises
    ------
    DeviceMismatchError
        There are arrays of the host or of two devices.
    """
    call = _Call(name)
    values = [call.inside(x) for x in args]
    named = {key: call.inside(x) for key, x in options.items()}
    where = call.device(on)
    return call.outside(function(*values, **named), where)


def values_of(x: FakeArray) -> Values:
    """Return the memory behind a fake array: for xdev's own explicit copies."""
    return x._values  # noqa: SLF001 - a friend


def _method(name: str, parameters: list[str]) -> Any:
    function = getattr(np.ndarray, name)
    most = float("inf") if "*" in parameters else len(parameters)

    def method(self: FakeArray, *args: Any, **options: Any) -> Any:
        if len(args) > most or not options.keys() <= set(parameters):
            message = (
                f"x.{name}() takes {', '.join(parameters) or 'nothing'}: CuPy's arrays "
                f"take no more"
            )
            raise TypeError(message)
        return run(f"x.{name}()", function, self, *args, **options)

    method.__name__, method.__doc__ = name, f"As ``numpy.ndarray.{name}``."
    return method


def _attribute(name: str) -> Any:
    def get(self: FakeArray) -> Any:
        found = getattr(self._values, name)
        return FakeArray(found, self.device) if isinstance(found, np.ndarray) else found

    return property(get, doc=f"As ``numpy.ndarray.{name}``.")


def _operator(name: str) -> Any:
    function = getattr(np.ndarray, name)

    def operator(self: FakeArray, *others: Any) -> Any:
        if others and isinstance(others[0], list | tuple):
            return NotImplemented
        return run(f"x.{name}", function, self, *others)

    operator.__name__ = name
    return operator


def _conversion(name: str) -> Any:
    function = getattr(np.ndarray, name)
    return lambda self: function(self._values)


for _name, _parameters in METHODS.items():
    setattr(FakeArray, _name, _method(_name, _parameters.split()))
for _name in ATTRIBUTES:
    setattr(FakeArray, _name, _attribute(_name))
for _name in (*UNARY, *BINARY, *COMPARISONS):
    setattr(FakeArray, f"__{_name}__", _operator(f"__{_name}__"))
for _name in BINARY:
    setattr(FakeArray, f"__r{_name}__", _operator(f"__r{_name}__"))
    if _name not in NOT_IN_PLACE:
        setattr(FakeArray, f"__i{_name}__", _operator(f"__i{_name}__"))
for _name in CONVERSIONS:
    setattr(FakeArray, f"__{_name}__", _conversion(f"__{_name}__"))
del _name, _parameters
