"""``to_device`` and ``to_numpy``: explicit copies between devices, and none besides.

What a type of device needs of its own is a :class:`Route`: ``cuda.py``, ``fake.py``; to
add a type is to add a module of its name.
"""

from __future__ import annotations

import math
import os
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, Self, cast, final

import numpy as np

from xdev._freed import is_freed
from xdev.device import Device, Stream, device_of
from xdev.device.choice import CallDecorator, own_kinds, target_of
from xdev.device.copies import Counts, announce, guards
from xdev.device.natives import natives
from xdev.errors import ConfigurationError, DeviceMismatchError
from xdev.transfer.exporters import (
    as_array,
    computed,
    copy_on_host,
    dtype_of,
    host_values,
    refuse_mask,
    shared,
)

if TYPE_CHECKING:
    from collections.abc import Callable

HOST = Device("cpu")
MODES = ("disallow", "log", "allow")  # of transfer_guard

#: What downloads an array of a type into a new one in short, or returns None. A route
#: adds its own once its device is in use.
short_ways: dict[type, Callable[[Any], Any]] = {}
# In a child the long way refuses: it asks whether the device can be used.
os.register_at_fork(after_in_child=short_ways.clear)


class Route(Protocol):
    """Copies of one type of device but the host. What is passed was checked.

    Attributes
    ----------
    check : callable
        ``check(dtype, target)`` raises TypeError for a dtype that a device lacks.
    adopt : callable
        ``adopt(x, target)`` returns the same memory as the usual array of a device that
        it is on; None: it cannot be.
    copy : callable
        ``copy(x, source, target, stream, non_blocking, out)`` copies from or to the
        host, between two devices of the type, or on one. It returns ``out`` or, for
        None, a new array.
    """

    check: Callable[[np.dtype[Any], Device], None]
    adopt: Callable[[Any, Device], Any]
    copy: Callable[[Any, Device, Device, Stream | None, bool, Any], Any]


@cache
def route(type_: str) -> Route:
    """Return the route of a type of device; its module loads at the first use."""
    return cast("Route", import_module(f"xdev.transfer.{type_}"))


def to_library(
    x: Any, source: Device, target: Device, plain: Callable[[Device], Any]
) -> Any:
    """Return an array's values as the array of the library that a device names.

    Parameters
    ----------
    x : array
        Of any library.
    source, target : Device
        Where it is, and where to.
    plain : callable
        Returns ``x`` on a device as that device's usual array. It is shared with the
        library where that can be.
    """
    step = plain_device(target)
    values = plain(step)
    if target.library != "dask":  # whose chunks keep their type
        refuse_mask(values)
    if target not in (step, source):  # a device that only the library knows
        announce(source, target, math.prod(x.shape) * dtype_of(x).itemsize)
    return natives(str(target.library)).adopt(values, target.native)


def plain_device(device: Device) -> Device:
    """Return where a library's device takes arrays from, as xdev's own device.

    Examples
    --------
    >>> plain_device(Device("fake", "array_api_strict"))
    Device('cpu')
    """
    # Dask's chunks are xdev's own arrays; so is what other libraries take on CUDA.
    there = device.type == "cuda" or device.library in (None, "dask")
    return Device(str(device) if there else "cpu")


def to_device(
    x: Any,
    device: object,
    *,
    stream: Stream | None = None,
    copy: bool | None = None,
    non_blocking: bool = False,
    out: Any = None,
) -> Any:
    """Return an array's values on a device.

    Parameters
    ----------
    x : array
        NumPy, CuPy, Numba, PyTorch or array_api_strict array, or any exporter of
        ``__cuda_array_interface__``, DLPack, ``__array_interface__`` or the buffer
        protocol; any strides and byte order.
    device : device
        Where to; the result is NumPy's array on the CPU, CuPy's on CUDA, or that of
        the library which the device names, as ``device_of(tensor)`` does.
    stream : Stream, optional
        The CUDA stream that the copy is queued on; the device's current one unless
        given.
    copy : bool, optional
        True always copies; False never, but raises; None copies where it must.
    non_blocking : bool
        Return without waiting for the device. From and to pinned memory nothing is
        waited for; from pageable memory the host's part is done when the call returns,
        and ``x`` may be changed; to pageable memory the copy always waits. ``x`` is
        kept alive until the copy is done.
    out : array, optional
        Preallocated destination on ``device``, of ``x``'s shape. Its dtype may be
        another one that ``numpy.can_cast(x, out, "same_kind")``, as in
        :func:`numpy.copyto`.

    Returns
    -------
    array
        ``x`` itself where no copy is needed, ``out`` where given.

    Raises
    ------
    ValueError
        ``copy=False`` where a copy is needed; ``out`` of another shape or kind of
        dtype, or read-only; ``x`` is a tensor that requires grad, or whose conjugation
        or negation is still to be done.
    DeviceMismatchError
        ``out`` or ``stream`` is of another device.
    TypeError
        ``x`` is not an array, is of a dtype that CUDA does not have, or is masked,
        where the copy is not; ``stream`` is not a stream.
    UseAfterFreeError
        ``x`` or ``out`` was freed.
    XdevError
        A :func:`transfer_guard` disallows the copy.
    ConfigurationError, DeviceUnavailableError
        The device is unknown, or cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> to_device(np.arange(3), "cpu")
    array([0, 1, 2])
    """
    target = target_of(device, x, "to_device(x, device)")
    plain = type(x) is np.ndarray or type(x) in own_kinds
    if not plain:
        x = as_array(x)
    source = device_of(x)
    if stream is not None:  # whether there will be a copy or not
        _check_stream(stream, source, target)
    if target.library is not None and out is None:
        here = source == target and source.library == target.library
        if here and copy is not True:
            return x
        if copy is not False and hasattr(x, "dask") and target.library == "dask":
            return _chunks_moved(x, str(target))
        if copy is not False:
            move = partial(
                to_device, x, stream=stream, copy=copy, non_blocking=non_blocking
            )
            return to_library(x, source, target, move)
    if not plain:
        x = computed(x)
    return _placed(x, source, target, stream, copy, non_blocking, out)


def _chunks_moved(x: Any, device: str) -> Any:
    """Return a collection of Dask's whose chunks go to a device when it is computed."""
    meta = to_device(x._meta, device)  # noqa: SLF001 - Dask's own protocol
    return x.map_blocks(to_device, device, dtype=x.dtype, meta=meta)


def _placed(
    x: Any,
    source: Device,
    target: Device,
    stream: Stream | None,
    copy: bool | None,
    non_blocking: bool,
    out: Any,
) -> Any:
    """Return an array's values on a device, in the array type of xdev's own choice."""
    stays, on_host = source == target, target.type == "cpu"
    if out is not None:
        _check_out(x, out, target)
    elif copy is not True and stays and target.library is None:
        adopted = _adopted(x, target)
        if adopted is not None:
            return adopted
    if copy is False:
        where = "into out=" if out is not None else f"from {source} to {target}"
        message = f"copy=False, but only a copy gets the array {where}: leave copy out"
        raise ValueError(message)
    dtype = dtype_of(x)
    if not on_host:
        route(target.type).check(dtype, target)
    refuse_mask(x)
    if not stays:
        if source.type != "cpu":
            source.require()  # in a forked child it cannot be used
        announce(source, target, math.prod(x.shape) * dtype.itemsize)
    if source.type == "cpu" and on_host:
        return copy_on_host(host_values(x), out)
    if not (source.type in ("cpu", target.type) or on_host):  # through the host
        x = route(source.type).copy(x, source, HOST, None, False, None)
        source = HOST
    there = source if on_host else target
    return route(there.type).copy(x, source, target, stream, non_blocking, out)


def _adopted(x: Any, target: Device) -> Any:
    """Return the same memory as its device's usual array, or None."""
    if target.type != "cpu":
        return route(target.type).adopt(x, target)
    try:
        return shared(x)
    except (BufferError, RuntimeError):  # NumPy's and PyTorch's, JAX's: no such dtype
        return None


def to_numpy(x: Any, *, out: Any = None, non_blocking: bool = False) -> Any:
    """Return an array's values as a NumPy array.

    Parameters
    ----------
    x : array
        As in :func:`to_device`; a NumPy array comes back itself.
    out : numpy.ndarray, optional
        Preallocated destination, as in :func:`to_device`.
    non_blocking : bool
        Return without waiting: the values are there after ``synchronize``. Without
        ``out`` the result is then pinned memory; an ``out`` that is not is waited for.

    Returns
    -------
    numpy.ndarray
        ``out`` where given.

    Raises
    ------
    ValueError, DeviceMismatchError, TypeError, XdevError
        As :func:`to_device`.

    Examples
    --------
    >>> import numpy as np
    >>> to_numpy(np.arange(3))
    array([0, 1, 2])
    """
    if type(x) is np.ndarray and out is None and not is_freed(x):
        return x  # in a loop over both devices: the CPU pays nothing
    if out is None and not non_blocking and type(x) in short_ways:
        values = short_ways[type(x)](x)
        if values is not None:
            return values
    if type(x) in own_kinds:
        return _placed(x, device_of(x), HOST, None, None, non_blocking, out)
    return to_device(x, HOST, out=out, non_blocking=non_blocking)


def _check_stream(stream: Stream, source: Device, target: Device) -> None:
    owner = source if target.type == "cpu" else target
    # A backend's own stream, such as CuPy's, is not asked for its device.
    if not (hasattr(stream, "ptr") and hasattr(stream, "__enter__")):
        raise TypeError(
            f"stream= is of type {type(stream).__name__}: pass a stream, "
            f"xdev.Stream('{owner}')"
        )
    if isinstance(stream, Stream) and stream.device != owner:
        raise DeviceMismatchError(
            f"stream= is of {stream.device}, but the copy is {owner}'s: pass one of "
            f"its streams, xdev.Stream('{owner}')"
        )


def _check_out(x: Any, out: Any, target: Device) -> None:
    where = device_of(out)
    if where != target:
        raise DeviceMismatchError(
            f"out= is on {where}, but {target} was asked for: pass an array of "
            f"{target}, xdev.empty(shape, dtype=..., device='{target}')"
        )
    plain = type(out) is np.ndarray or type(out) in own_kinds
    described = out if plain else as_array(out)
    mine, theirs = dtype_of(x), dtype_of(described)
    fits = mine == theirs or np.can_cast(mine, theirs, "same_kind")
    shape = tuple(described.shape)
    if not fits or shape != tuple(x.shape):
        raise ValueError(
            f"out= has shape {shape} and dtype {described.dtype}, but the array "
            f"has shape {tuple(x.shape)} and dtype {x.dtype}: make it with "
            f"xdev.empty_like(x, device='{target}')"
        )
    read_only = type(out) is np.ndarray and not out.flags.writeable
    for name in () if plain else ("__cuda_array_interface__", "__array_interface__"):
        read_only = read_only or getattr(out, name, {"data": (0, False)})["data"][1]
    if read_only:
        raise ValueError("out= is read-only: pass a writable array, such as out.copy()")


@final
class transfer_guard(CallDecorator):  # noqa: N801 - called as a function
    """Watch the copies between devices that xdev makes inside a ``with`` block.

    These are the copies of :func:`to_device` and of all that moves arrays as it does,
    and those of sequences and buffers that become arrays of a device, in ``asarray`` or
    as arguments of a random generator. A number goes along with a launch, and is
    not a copy. Arrays of the fake devices tell, besides, what goes around xdev to the
    host: ``float(x)`` and its like, a format, ``item``, ``tolist``, ``tobytes``,
    DLPack.

    Guards nest; each sees the copies made inside it, in its own context (thread or
    task). Without ``with`` it does nothing.

    Parameters
    ----------
    mode : {"disallow", "log", "allow"}
        Whether a copy raises :class:`~xdev.XdevError` before it is made, is written to
        the logger ``xdev.transfer`` with the line that asked for it, or is only
        counted. Copies on one device do not count.

    Yields
    ------
    Counts
        ``copies`` and ``nbytes`` [B] so far, and those of each direction in
        ``routes``.

    Raises
    ------
    ConfigurationError
        There is no such mode.

    Examples
    --------
    >>> with transfer_guard("disallow") as counts:
    ...     pass
    >>> counts
    Counts(copies=0, nbytes=0)
    """

    def __init__(self, mode: str) -> None:
        if mode not in MODES:
            message = f"transfer_guard({mode!r}): use one of {', '.join(MODES)}"
            raise ConfigurationError(message)
        self._mode = mode

    def _recreate_cm(self) -> Self:
        """Return one for each call of a decorated function: calls may nest."""
        return type(self)(self._mode)

    def __enter__(self) -> Counts:
        counts = Counts(self._mode)
        guards.set((*guards.get(), counts))
        return counts

    def __exit__(self, *_: object) -> None:
        guards.set(guards.get()[:-1])  # no token: threads may share this object
