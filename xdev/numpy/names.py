"""What stands behind each of NumPy's names: a dispatched function, or NumPy's own.

What makes arrays makes them on the default device, from xdev's pool, with NumPy's
arguments, ``order=`` and ``like=`` too. Data types that only NumPy has (texts, objects,
records) are made by NumPy, on the CPU.
"""

from __future__ import annotations

import functools
import importlib
import operator
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

import xdev.facade as xp
from xdev.device import use_device
from xdev.facade.cpu import NUMPY
from xdev.facade.dispatch import stays
from xdev.numpy.dispatch import (
    DEVICE_KINDS,
    AnyArray,
    call,
    dispatching,
    is_array,
    library_of_call,
    on_default_device,
    ufunc,
    where,
)

if TYPE_CHECKING:
    from collections.abc import Callable

#: NumPy's others that take ``device=`` or ``like=``.
PLACED = frozenset((
    *("asanyarray", "asarray", "astype", "fft.fftfreq", "fft.rfftfreq", "from_dlpack"),
    *("empty_like", "full_like", "ones_like", "zeros_like"),
))  # fmt: skip


def placed(name: str, numpys: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy's that makes an array where ``device=`` says."""

    @functools.wraps(numpys)
    def make(
        *args: Any, device: object = None, like: Any = None, **options: Any
    ) -> Any:
        at = where(like, device)
        if at is None:
            return call(name, numpys, args, options)
        with use_device(at):
            return _on_device(call(name, numpys, args, options), at)

    make.__qualname__ = name
    make.__module__ = __name__  # where pickle finds it
    return make


def _on_device(result: Any, device: object) -> Any:
    """Return an array, or a tuple with one, on the device that is asked for."""
    if type(result) is tuple:
        return tuple(_on_device(part, device) for part in result)
    if device is None or not is_array(result) or stays(result, device):
        return result
    return xp.asarray(result, device=device)


def _making(name: str) -> Callable[..., Any]:
    """Return a function that makes an array in the order that is asked for."""
    own, numpys = getattr(xp, name), getattr(np, name)

    def make(
        shape: Any,
        dtype: Any = None,
        order: str = "C",
        *,
        device: object = None,
        like: Any = None,
    ) -> Any:
        at, kind = where(like, device), np.dtype(dtype)
        if not isinstance(shape, int | tuple | list) and np.ndim(shape) == 1:
            shape = tuple(shape)  # an array's or a range's numbers
        if kind.kind not in DEVICE_KINDS:
            return _on_device(numpys(shape, dtype=kind, order=order), at)
        if order != "C":
            numpys(0, order=order)  # which refuses what is none
        if order in ("F", "f") and isinstance(shape, tuple | list):
            out = own(tuple(shape)[::-1], dtype=kind, device=at)
            return xp.permute_dims(out, tuple(range(out.ndim))[::-1])
        return own(shape, dtype=kind, device=at)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"As ``numpy.{name}``, on the default device, or that of ``like``."
    return make


empty, zeros, ones = map(_making, ("empty", "zeros", "ones"))


def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "C",
    *,
    device: object = None,
    like: Any = None,
) -> Any:
    """As ``numpy.full``, on the default device, or that of ``like``.

    An array as ``fill_value`` says the device, and is broadcast.
    """
    given = is_array(fill_value)
    value = fill_value if given else np.asarray(fill_value)
    if given and like is device is None:
        like = fill_value
    kind = value.dtype if dtype is None else dtype
    out = empty(shape, kind, order, device=device, like=like)
    out[...] = value[()] if given or not value.ndim else on_default_device(value)
    return out


def eye(
    N: int,  # noqa: N803 - NumPy's name
    M: int | None = None,  # noqa: N803 - likewise
    k: int = 0,
    dtype: Any = float,
    order: str = "C",
    *,
    device: object = None,
    like: Any = None,
) -> Any:
    """As ``numpy.eye``, on the default device, or that of ``like``."""
    shape, kind = (N, N if M is None else M), np.dtype(dtype)
    out = empty(shape, kind, order, device=device, like=like)
    out[...] = xp.eye(*shape, k=k, dtype=kind, device=where(like, device))
    return out


def identity(n: int, dtype: Any = None, *, like: Any = None) -> Any:
    """As ``numpy.identity``, on the default device, or that of ``like``."""
    return eye(n, dtype=dtype, like=like)


def arange(
    *args: Any, dtype: Any = None, device: object = None, like: Any = None, **named: Any
) -> Any:
    """As ``numpy.arange``, on the default device, or that of ``like``."""
    if len(args) == 4:  # noqa: PLR2004 - start, stop, step, dtype
        *args, dtype = args  # type: ignore[assignment]
    kind = None if dtype is None else np.dtype(dtype)
    if kind is not None and kind.kind not in DEVICE_KINDS:
        return _on_device(np.arange(*args, dtype=kind, **named), where(like, device))
    if not args or ("stop" in named and len(args) == 1):
        if "stop" not in named:
            raise TypeError("arange() requires stop to be specified.")
        start = args[0] if args else named.pop("start", 0)  # all have names in NumPy
        args = start, named.pop("stop")
    make: Any = xp.arange  # type checkers do not see that three at most are left
    return make(*args, dtype=kind, device=where(like, device), **named)


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: object = None,
) -> Any:
    """As ``numpy.linspace``, on the default device; arrays as ends say theirs."""
    if is_array(start) or is_array(stop) or retstep or axis:
        options = {"retstep": retstep, "dtype": dtype, "axis": axis}
        args = start, stop, num, endpoint
        return _on_device(call("linspace", np.linspace, args, options), device)
    kind = None if dtype is None else np.dtype(dtype)
    return xp.linspace(
        start, stop, num=num, endpoint=endpoint, dtype=kind, device=device
    )


def fromfunction(
    function: Callable[..., Any],
    shape: Any,
    *,
    dtype: Any = float,
    like: Any = None,  # noqa: ARG001 - the indices are on the default device
    **options: Any,
) -> Any:
    """As ``numpy.fromfunction``: the function gets indices on the default device."""
    indices = on_default_device(np.indices(tuple(shape), dtype=dtype))
    return function(*indices, **options)


class ndarray(metaclass=AnyArray):  # noqa: N801 - NumPy's name of it
    """What arrays of every library are instances of; called, it makes an empty one.

    Examples
    --------
    >>> import xdev.numpy as np
    >>> isinstance(np.zeros(3), np.ndarray), np.ndarray((2, 3)).shape
    (True, (2, 3))
    """

    def __new__(  # noqa: D102 - the class says it
        cls,
        shape: Any,
        dtype: Any = float,
        buffer: Any = None,
        offset: int = 0,
        strides: Any = None,
        order: Any = "C",
    ) -> Any:
        if buffer is None and strides is None:
            return empty(shape, dtype, order)
        return np.ndarray(shape, dtype, buffer, offset, strides, order)

    def __init_subclass__(cls) -> None:
        raise TypeError(
            "xdev.numpy.ndarray stands for the arrays of every library and has no "
            "classes derived from it: derive from numpy.ndarray, for arrays on the CPU"
        )

    __class_getitem__ = np.ndarray.__class_getitem__


#: Names of NumPy's main namespace that no program needs: its tests, old inner modules.
LEFT_OUT = frozenset(("__array_namespace_info__", "core", "ctypeslib", "f2py", "test"))


class _IndexTricks:
    """``np.mgrid``, ``np.r_`` and their like: arrays of what stands in brackets."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getitem__(self, key: Any) -> Any:
        function = getattr(np, self._name).__getitem__
        return call(f"{self._name}.__getitem__", function, (key,), {})


class vectorize(np.vectorize):  # noqa: N801 - NumPy's name of it
    """As ``numpy.vectorize`` on the CPU; other arrays go to :func:`xdev.vectorize`.

    That compiles the function, for the CPU too, and is the fast one.
    """

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the function for each element."""
        library, like = library_of_call("vectorize", self.pyfunc, args, named)
        if library is NUMPY:
            result = super().__call__(*args, **named)
            return on_default_device(result) if like is None else result
        if self.excluded or self.cache or self.signature or named:
            raise TypeError(
                "xdev.numpy.vectorize: excluded, cache, signature and arguments by "
                "name are for arrays on the CPU: use xdev.vectorize, or "
                "xdev.guvectorize for a signature"
            )
        result = self._compiled(*args)
        return result.astype(self.otypes[0]) if self.otypes else result

    @functools.cached_property
    def _compiled(self) -> Any:
        from xdev.ufunc import vectorize as compiled

        return compiled(self.pyfunc)


_OWN: dict[str, Any] = {
    value.__name__: value
    for value in (
        *(arange, empty, eye, fromfunction, full, identity, linspace, ndarray),
        *(ones, ufunc, vectorize, zeros),
    )
}
#: Of arrays on the CPU; NumPy's words for others mislead.
_OWN["nditer"] = dispatching("nditer", np.nditer)
_OWN |= {name: _IndexTricks(name) for name in ("mgrid", "ogrid", "r_", "c_")}

_ufunc = functools.cache(ufunc)  # of `abs` and `absolute` one object


def dispatched(room: str, name: str) -> Any:
    """Return what a name of NumPy's means here."""
    if not room and name in _OWN:
        return _OWN[name]
    try:
        value = operator.attrgetter(f"{room}{name}")(np)
    except AttributeError as error:
        own = f"xdev.numpy.{room}".rstrip(".")
        theirs = str(error).replace(f"module 'numpy{room and '.'}{room[:-1]}'", own)
        raise AttributeError(theirs) from None
    if isinstance(value, np.ufunc):
        return _ufunc(value)
    if isinstance(value, type | ModuleType) or not callable(value):
        return value
    make = placed if f"{room}{name}" in PLACED else dispatching
    return make(f"{room}{name}", value)


def room(name: str) -> Any:
    """Return the names of a room of NumPy's, what finds them here, and lists them."""
    public = [each for each in getattr(np, name).__all__ if each != "test"]

    def find(each: str) -> Any:
        value = dispatched(f"{name}.", each)
        setattr(importlib.import_module(f"xdev.numpy.{name}"), each, value)
        return value

    return public, find, public.copy


def __getattr__(name: str) -> Any:
    """Return a name of :mod:`xdev.numpy`, whose functions pickle as names of here."""
    return getattr(importlib.import_module("xdev.numpy"), name)
