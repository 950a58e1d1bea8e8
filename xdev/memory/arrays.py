"""Arrays whose memory is a pool's: NumPy's, CuPy's and those of fake devices."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, Literal
from weakref import ref

import numpy as np
from numpy import ndarray

from xdev import _optional, native
from xdev._tracking import TRACKING
from xdev.device import Device, fake
from xdev.memory import registry, tracking
from xdev.memory.owners import HostLease
from xdev.memory.pools import ADDRESSES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.memory.pools import Block, Pool


POOLED = 64 << 10  # smaller arrays are NumPy's business, but while tracking is on [B]


def host_array(
    shape: tuple[int, ...], dtype: np.dtype[Any], order: Literal["C", "F"] = "C"
) -> ndarray[Any, Any]:
    """Return an uninitialised array in host memory.

    Parameters
    ----------
    shape : tuple of int
        Extents.
    dtype : numpy.dtype
        Of the elements.
    order : {"C", "F"}
        Which index runs fastest.

    Returns
    -------
    numpy.ndarray
        From the host pool if it has 64 KiB or more, or while :func:`xdev.memory.track`
        is on; its memory goes back when it and its views are gone.

    Raises
    ------
    ValueError
        An extent is negative, or the array would be larger than an address.
    OutOfMemoryError
        The pool cannot serve it.

    Examples
    --------
    >>> host_array((1000, 100), np.dtype("f8")).shape
    (1000, 100)
    """
    nbytes = size_of(shape, dtype)
    small = nbytes < POOLED and (TRACKING.off or not tracking.active())
    if small or not nbytes or dtype.hasobject:
        return np.empty(shape, dtype, order)
    return _pooled(_host_pool(), shape, dtype, nbytes, order)


def large_array(
    shape: tuple[int, ...], dtype: np.dtype[Any], size: int
) -> ndarray[Any, Any]:
    """Return :func:`host_array`'s result for a shape that is known to be large."""
    return _pooled(_host_pool(), shape, dtype, size * dtype.itemsize)


def transposed(array: ndarray[Any, Any], axes: Sequence[int]) -> ndarray[Any, Any]:
    """Return a new array's transpose in its place: what may be freed by hand."""
    turned = array.transpose(axes)
    lease = getattr(array.base, "base", None)
    if isinstance(lease, HostLease):
        lease.array = ref(turned)
    return turned


@cache
def _host_pool() -> Pool:
    """Return the one host pool without looking it up by name each time."""
    return registry.pool("cpu", "host")


def pinned_array(
    shape: tuple[int, ...], dtype: np.dtype[Any], order: Literal["C", "F"] = "C"
) -> ndarray[Any, Any]:
    """Return an uninitialised array in page-locked host memory.

    Parameters, result and errors are :func:`host_array`'s; any size is the pool's.

    Raises
    ------
    DeviceUnavailableError
        There is no CUDA device to lock memory for.
    TypeError
        The dtype holds Python objects.
    """
    nbytes = size_of(shape, dtype)
    if dtype.hasobject:
        raise TypeError(
            f"pinned memory cannot hold Python objects: {dtype} is not a plain dtype"
        )
    pool = registry.pool("cpu", "pinned")
    return _pooled(pool, shape, dtype, nbytes, order)


def size_of(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Return the bytes of an array of a shape, or raise ValueError [B]."""
    for extent in shape:
        if extent < 0:
            raise ValueError(f"shape {shape} has a negative extent: use 0 or more")
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes >= ADDRESSES:
        message = f"an array of shape {shape} and dtype {dtype} is larger than memory"
        raise ValueError(f"{message} can be: {nbytes:,} B")
    return nbytes


def _pooled(
    pool: Pool,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    nbytes: int,
    order: Literal["C", "F"] = "C",
) -> ndarray[Any, Any]:
    chunk = pool.take(nbytes)
    lease = _lease(chunk.address)
    lease.chunk = chunk
    # The hidden array has the array's shape: a view of like shape is the fastest.
    if order == "C":
        array = ndarray(shape, dtype, lease)[...]
    else:
        array = ndarray(shape[::-1], dtype, lease).T
    lease.array = ref(array)
    return array


_lease: Any = HostLease.from_address  # looked up once


def serve_fake_arrays() -> None:
    """Let fake arrays hold blocks of the pools from now on."""
    fake.set_allocator(_acquire)


def _acquire(nbytes: int, index: int) -> Block:
    return registry.pool(Device(f"fake:{index}")).acquire(nbytes)


@cache
def array_maker() -> Callable[..., Any]:
    """Return ``make(shape, dtype, order="C", memory=None)``, a quick maker for CuPy.

    ``memory`` is a ``MemoryPointer`` to where the array lies; without one it lies in
    memory of its own, uninitialised.

    ``cupy.ndarray`` passes its arguments through two layers of Python before its
    compiled base takes them; for an array of 100,000 elements that is a quarter of the
    whole cost. Here the base takes them at once.
    """
    make: Callable[..., Any] = native.calls.make_arrays_of(_optional.cupy().ndarray)
    return make
