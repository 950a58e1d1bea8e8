"""``to_device`` and ``to_numpy``: explicit copies between devices, and none besides.

What a type of device needs of its own is a module of its name (:func:`route`):
``cuda.py``, ``fake.py``.
"""

from __future__ import annotations

import importlib
import math
import os
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, final

import numpy as np

from xdev import _optional
from xdev._freed import is_freed
from xdev.device import Device, Stream, as_device, device_of, registry
from xdev.device.choice import CallDecorator, cuda_interface, own_kinds
from xdev.device.copies import Counts, announce, guards
from xdev.device.natives import library_of_type, natives
from xdev.errors import ConfigurationError, DeviceMismatchError, not_array, quoted
from xdev.memory.arrays import host_array

if TYPE_CHECKING:
    from collections.abc import Callable

PROTOCOLS = ("__cuda_array_interface__", "__dlpack__", "__array_interface__")
READABLE = ("__array__", "__array_interface__", "__buffer__")  # by numpy.asarray
HOST = Device("cpu")
MODES = ("disallow", "log", "allow")  # of transfer_guard

#: What downloads an array of a type into a new one in short, or returns None. A route
#: adds its own once its device is in use.
short_ways: dict[type, Callable[[Any], Any]] = {}
# In a child the long way refuses: it asks whether the device can be used.
os.register_at_fork(after_in_child=short_ways.clear)


@final
class Way(NamedTuple):
    """How a copy is made: :func:`to_device`'s arguments of these names."""

    stream: Stream | None = None
    copy: bool | None = None
    non_blocking: bool = False
    out: Any = None


@cache
def route(type_: str) -> Any:
    """Return the module that copies for a type of device but the host.

    It loads at the first use. What its functions are given was checked.

    - ``check(dtype, target)`` raises TypeError for a dtype that a device lacks.
    - ``adopt(x, target)`` returns the same memory as the usual array of a device that
      it is on; None: it cannot be.
    - ``copy(x, source, target, way)`` copies from or to the host, between two devices
      of the type, or on one. It returns ``way.out`` or, for None, a new array.
    """
    return importlib.import_module(f"xdev.transfer.{type_}")


def _in_library(x: Any, values: Any, source: Device, target: Device) -> Any:
    """Return an array's values as the array of the library that a device names."""
    if target.library != "dask":  # whose chunks keep their type
        refuse_mask(values)
    # It may be a device that only the library knows.
    if target not in (plain_device(target), source):
        announce(source, target, math.prod(x.shape) * dtype_of(x).itemsize)
    return natives(str(target.library)).adopt(values, target.native)


def plain_device(device: Device) -> Device:
    """Return where a library's device takes arrays from, as xdev's own device."""
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
    target = as_device(device)
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
            options: Any = {"copy": copy, "non_blocking": non_blocking}
            values = to_device(x, plain_device(target), stream=stream, **options)
            return _in_library(x, values, source, target)
    if not plain:
        x = computed(x)
    return _placed(x, source, target, Way(stream, copy, non_blocking, out))


def _chunks_moved(x: Any, device: str) -> Any:
    """Return a collection of Dask's whose chunks go to a device when it is computed."""
    meta = to_device(x._meta, device)  # noqa: SLF001 - Dask's own protocol
    return x.map_blocks(to_device, device, dtype=x.dtype, meta=meta)


def _placed(x: Any, source: Device, target: Device, way: Way) -> Any:
    """Return an array's values on a device, in the array type of xdev's own choice."""
    stays, on_host = source == target, target.type == "cpu"
    if way.out is not None:
        _check_out(x, way.out, target)
    elif way.copy is not True and stays and target.library is None:
        adopted = _adopted(x, target)
        if adopted is not None:
            return adopted
    if way.copy is False:
        where = "into out=" if way.out is not None else f"from {source} to {target}"
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
        return copy_on_host(host_values(x), way.out)
    if not (source.type in ("cpu", target.type) or on_host):  # through the host
        x, source = route(source.type).copy(x, source, HOST, Way()), HOST
    there = source if on_host else target
    return route(there.type).copy(x, source, target, way)


def _adopted(x: Any, target: Device) -> Any:
    """Return the same memory as its device's usual array, or None."""
    if target.type != "cpu":
        return route(target.type).adopt(x, target)
    with suppress(BufferError, RuntimeError):  # NumPy's, PyTorch's: no such dtype
        return shared(x)
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
        way = Way(None, None, non_blocking, out)
        return _placed(x, device_of(x), HOST, way)
    return to_device(x, HOST, out=out, non_blocking=non_blocking)


def _check_stream(stream: Stream, source: Device, target: Device) -> None:
    owner = source if target.type == "cpu" else target
    # A backend's own stream, such as CuPy's, is not asked for its device.
    if not (hasattr(stream, "ptr") and hasattr(stream, "__enter__")):
        kind, way = type(stream).__name__, f"pass a stream, xdev.Stream('{owner}')"
        raise TypeError(f"stream= is of type {kind}: {way}")
    if isinstance(stream, Stream) and stream.device != owner:
        text = f"stream= is of {stream.device}, but the copy is {owner}'s: pass one of"
        raise DeviceMismatchError(f"{text} its streams, xdev.Stream('{owner}')")


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


# -- arrays of any library ------------------------------------------------------------


def as_array(x: Any) -> Any:
    """Give an exporter the attributes of an array; arrays come back themselves."""
    # A class has an array's attributes, not their values; a sparse matrix is several.
    if isinstance(x, type) or hasattr(x, "tocsr"):
        raise _no_array(x)
    located = hasattr(x, "device") or not hasattr(x, "__array_interface__")
    if located and hasattr(x, "shape") and hasattr(x, "dtype"):
        is_array = isinstance(x.dtype, np.dtype) or library_of_type(type(x)) is not None
        # Else a protocol tells what the dtype is, as with Warp's.
        if is_array or not any(hasattr(x, name) for name in PROTOCOLS):
            return x
    if hasattr(x, "__cuda_array_interface__"):
        return CudaExport(x)
    if hasattr(x, "__array_interface__"):  # says, as DLPack 1 only, what can be written
        return np.asarray(x)
    if hasattr(x, "__dlpack__"):
        where = device_of(x)
        if where.type != "cuda":
            return np.from_dlpack(x)
        where.require()
        with registry.backend("cuda").use(where.index):  # the exporter orders streams
            return _optional.cupy().from_dlpack(x)
    with suppress(TypeError):
        return np.asarray(memoryview(x))
    raise _no_array(x)


def _no_array(x: Any) -> TypeError:
    way = "make one with xdev.asarray(x, device=...), or move the arrays in it with"
    return TypeError(f"x is {not_array(x, f'{way} xdev.adapt(device, x)')}")


@final
class CudaExport:
    """What ``__cuda_array_interface__`` exports, with the attributes of an array."""

    # Slots: who asks the class sees the attribute, too.
    __slots__ = ("__cuda_array_interface__", "dtype", "owner", "shape")

    def __init__(self, owner: Any, *, ordered: bool = False) -> None:
        checked = cuda_interface(owner)
        if checked is None:
            raise _no_array(owner)
        interface = dict(checked)
        if ordered:
            interface["stream"] = None
        self.owner, self.__cuda_array_interface__ = owner, interface
        self.shape = tuple(interface["shape"])
        self.dtype = np.dtype(interface["typestr"])


def dtype_of(x: Any) -> np.dtype[Any]:
    """Return NumPy's name for an array's dtype, such as ``array_api_strict.int8``."""
    if isinstance(x.dtype, np.dtype):
        return x.dtype
    return numpys(x.dtype, f"convert the {type(x).__name__} first, for one to float32")


def numpys(dtype: Any, way: str) -> np.dtype[Any]:
    """Return NumPy's dtype of the same name as any library's."""
    with suppress(SyntaxError, TypeError):  # NumPy reads "(2,)" as Python does
        same: np.dtype[Any] = np.dtype(dtype)
        return same
    name = str(dtype).rpartition(".")[2]
    if name == "bfloat16":
        with suppress(ImportError):
            importlib.import_module("ml_dtypes")  # gives NumPy the name
    try:
        return np.dtype(name)
    except (SyntaxError, TypeError) as error:
        text = f"NumPy and CuPy have no dtype {quoted(name)}: {way}"
        raise TypeError(text) from error


def computed(x: Any) -> Any:
    """Return an array whose memory holds its values: Dask's are computed first."""
    if isinstance(x, np.ndarray):
        return x
    if hasattr(x, "dask") and hasattr(x, "compute"):
        return x.compute()
    if not hasattr(x, "resolve_conj"):
        return x
    for said, what, way in (
        (x.requires_grad, "requires grad", "x.detach()"),
        (x.is_conj(), "is still to be conjugated", "x.resolve_conj()"),
        (x.is_neg(), "is still to be negated", "x.resolve_neg()"),
    ):
        if said:
            message = f"a {type(x).__name__} that {what} cannot be moved: pass {way}"
            raise ValueError(message)
    return x


def refuse_mask(x: Any) -> None:
    """Refuse an array whose mask a copy does not have."""
    kind = type(x)
    if kind is not np.ndarray and issubclass(kind, np.ndarray) and hasattr(x, "mask"):
        way = "pass x.filled(value), or x.data and x.mask each"
        raise TypeError(f"the mask of a {kind.__name__} would be lost: {way}")


def host_values(x: Any) -> np.ndarray[Any, Any]:
    """Return what a host array of any library holds, to be read.

    NumPy makes an array of objects of what exports nothing but DLPack.
    """
    if isinstance(x, np.ndarray):
        return x
    if hasattr(x, "resolve_conj") and dtype_of(x).kind == "V":  # PyTorch's bfloat16
        return np.asarray(x.view(_optional.torch().int16)).view(dtype_of(x))
    readable = any(hasattr(x, name) for name in READABLE)
    return np.asarray(x) if readable else np.from_dlpack(x)


def shared(x: Any) -> Any:
    """Return a host array's memory as a NumPy array, or raise what DLPack does."""
    if isinstance(x, np.ndarray):
        return x
    # DLPack before its version 1 makes all read-only, NumPy's protocol says what is.
    by_numpy = hasattr(x, "__array_interface__") or not hasattr(x, "__dlpack__")
    return np.asarray(x) if by_numpy else np.from_dlpack(x)


def order_of(x: Any) -> Literal["C", "F"]:
    """Return how a copy of an array is laid out: as the array, or in C order."""
    return "F" if x.flags.fnc else "C"


def copy_on_host(values: np.ndarray[Any, Any], out: Any) -> Any:
    """Copy a NumPy array to one of any library; Fortran's order stays so."""
    if out is None:
        out = host_array(values.shape, values.dtype, order_of(values))
    if hasattr(out, "dask"):  # it has no memory, but may be told other values
        out[...] = values.copy()
    else:
        np.copyto(shared(out), values)
    return out


# -- the guard ------------------------------------------------------------------------


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
            message = f"transfer_guard({quoted(mode)}): use one of {', '.join(MODES)}"
            raise ConfigurationError(message)
        self._mode = mode

    def __enter__(self) -> Counts:
        counts = Counts(self._mode)
        guards.set((*guards.get(), counts))
        return counts

    def __exit__(self, *_: object) -> None:
        guards.set(guards.get()[:-1])  # no token: threads may share this object
