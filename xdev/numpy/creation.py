"""NumPy's functions that make arrays: on the default device, from xdev's pool.

Their arguments are NumPy's, ``order=`` and ``like=`` too. Data types that only NumPy
has (texts, objects, records) are made by NumPy, on the CPU.
"""

from __future__ import annotations

import functools
import operator
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

import xdev.facade as xp
from xdev.facade.dispatch import stays
from xdev.numpy.dispatch import (
    DEVICE_KINDS,
    _AnyArray,
    arrays_in,
    call,
    is_array,
    settled,
    where,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "arange",
    "empty",
    "eye",
    "fromfunction",
    "full",
    "identity",
    "linspace",
    "ndarray",
    "ones",
    "zeros",
]

#: NumPy's others that take ``device=``, as the facade's of these names do.
PLACED = frozenset((
    *("asanyarray", "asarray", "astype", "fft.fftfreq", "fft.rfftfreq", "from_dlpack"),
    *("empty_like", "full_like", "ones_like", "zeros_like"),
))  # fmt: skip
_TAKEN = {"copy", "d", "dtype", "fill_value", "n"}  # by those of the facade, too


def placed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy's that makes an array where ``device=`` says."""
    own = operator.attrgetter("asarray" if name == "asanyarray" else name)(
        sys.modules["xdev"]
    )

    @functools.wraps(function)
    def make(*args: Any, device: object = None, **options: Any) -> Any:
        if device is None:
            return call(name, function, args, options)
        options.pop("like", None)  # which says a device that is not asked for
        found = next(arrays_in((*args, *options.values())), None)
        if found is None:
            return _there(function(*args, **options), device)
        if stays(found[1], device):
            return call(name, function, args, options)
        if unknown := options.keys() - _TAKEN:
            raise TypeError(
                f"xdev.numpy.{name}: {min(unknown)}= goes with no device= but the "
                f"array's own: copy it first, with xdev.to_device(x, '{device}')"
            )
        return own(*args, device=device, **options)

    make.__module__, make.__qualname__ = "xdev.numpy.names", name
    return make


def _there(made: Any, device: object) -> Any:
    """Return an array, or a tuple with one, on the device that is asked for.

    Raises
    ------
    TypeError
        Arrays of that device have no such data type: texts, objects.
    """
    if type(made) is tuple:
        return tuple(_there(part, device) for part in made)
    if device is None or not is_array(made) or stays(made, device):
        return made
    return xp.asarray(made, device=device)


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
        if kind.kind not in DEVICE_KINDS:
            return _there(numpys(shape, dtype=kind, order=order), at)
        if order in ("F", "f") and not isinstance(shape, int):
            extents = tuple(shape)[::-1]
            axes = tuple(range(len(extents)))[::-1]
            return xp.permute_dims(own(extents, dtype=kind, device=at), axes)
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
    value = fill_value if is_array(fill_value) else np.asarray(fill_value)
    if like is device is None and is_array(fill_value):
        like = fill_value
    kind = value.dtype if dtype is None else dtype
    out = empty(shape, kind, order, device=device, like=like)
    out[...] = value[()] if is_array(fill_value) or not value.ndim else settled(value)
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
    out = xp.eye(N, M, k=k, dtype=np.dtype(dtype), device=where(like, device))
    return (
        call("asfortranarray", np.asfortranarray, (out,), {}) if order == "F" else out
    )


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
        return _there(np.arange(*args, dtype=kind, **named), where(like, device))
    if not args or ("stop" in named and len(args) == 1):
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
        options = {"endpoint": endpoint, "retstep": retstep, "dtype": dtype}
        options |= {"axis": axis}
        made = call("linspace", np.linspace, (start, stop, num), options)
        return _there(made, device)
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
    indices = settled(np.indices(tuple(shape), dtype=dtype))
    return function(*indices, **options)


class ndarray(metaclass=_AnyArray):  # noqa: N801 - NumPy's name of it
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
