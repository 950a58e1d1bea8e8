# ruff: noqa: D102 - protocols.Place says what each method does
"""Dask's collections, whose chunks are made where and when they are computed.

Each chunk is an array of xdev's own on the device, so its memory is the pool's of the
process that computes it.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from xdev import _optional, facade
from xdev.device import Device
from xdev.errors import ConfigurationError
from xdev.facade import transforms
from xdev.facade.dtype_names import to_numpy_dtype
from xdev.facade.places.cpu import as_shape, dtype_of_number

if TYPE_CHECKING:
    from xdev.facade.protocols import DType

Window = tuple[slice, ...]  # where a chunk lies in its collection
FLOATS = "fc"  # the kinds of data types with fractions


@final
class CollectionPlace:
    """One device, and how collections of arrays there are cut.

    Parameters
    ----------
    device : Device
        Where chunks are made.
    chunks : int, tuple, dict or str
        As ``dask.array`` takes it.
    """

    def __init__(self, device: Device, chunks: Any = "auto") -> None:
        if device.library not in (None, "dask"):
            message = (
                f"chunks= makes a collection of Dask's, whose chunks are NumPy's or "
                f"CuPy's arrays, and device={device!r} is {device.library}'s: give "
                f"device='{device}'"
            )
            raise ConfigurationError(message)
        self._device, self._chunks = str(device), chunks

    def _collection(self, shape: Any, dtype: Any, make: Any, *args: Any) -> Any:
        """Return a collection whose chunks are ``make(window, device, dtype, *args)``.

        What is wrong with the arguments is raised here, by a chunk of size 0.
        """
        da = _optional.dask_array()
        from dask.layers import ArraySliceDep

        make = functools.partial(make, self._device, dtype, *args)
        whole = as_shape(shape)
        if min(whole, default=0) < 0:
            message = f"a shape of {whole} has a negative extent: give 0 or more"
            raise ValueError(message)
        meta = make((slice(0, 0),) * len(whole))
        windows = ArraySliceDep(_cut(self._chunks, whole, meta.dtype))
        axes = tuple(range(len(whole)))
        return da.blockwise(
            make, axes, windows, axes, align_arrays=False, meta=meta, dtype=meta.dtype
        )

    def empty(self, shape: Any, dtype: DType) -> Any:
        return self._collection(shape, dtype, _empty)

    def zeros(self, shape: Any, dtype: DType) -> Any:
        return self.full(shape, 0.0 if dtype is None else 0, dtype)

    def ones(self, shape: Any, dtype: DType) -> Any:
        return self.full(shape, 1.0 if dtype is None else 1, dtype)

    def full(self, shape: Any, value: Any, dtype: DType) -> Any:
        return self._collection(shape, dtype or dtype_of_number(value), _full, value)

    def empty_like(self, x: Any, dtype: DType) -> Any:
        if _unknown(x):
            return self.full_like(x, 0, dtype)
        return self._like(x).empty(x.shape, dtype or x.dtype)

    def zeros_like(self, x: Any, dtype: DType) -> Any:
        return self.full_like(x, 0, dtype)

    def ones_like(self, x: Any, dtype: DType) -> Any:
        return self.full_like(x, 1, dtype)

    def full_like(self, x: Any, value: Any, dtype: DType) -> Any:
        kind = dtype or x.dtype
        if not _unknown(x):
            return self._like(x).full(x.shape, value, kind)
        make = functools.partial(_full_like, self._device, kind, value)
        meta = make(x._meta)  # noqa: SLF001 - Dask's own protocol
        return x.map_blocks(make, dtype=meta.dtype, meta=meta)

    def _like(self, x: Any) -> CollectionPlace:
        if self._chunks != "auto" or not hasattr(x, "dask"):
            return self
        return CollectionPlace(Device(self._device), x.chunks)

    def arange(self, start: Any, stop: Any, step: Any, dtype: DType) -> Any:
        if stop is None:
            start, stop = 0, start
        count = max(0, math.ceil((stop - start) / step))
        kind = to_numpy_dtype(dtype) if dtype else _kind(start, stop, step)
        return self._collection(count, kind, _range, start, step)

    def linspace(
        self, start: Any, stop: Any, num: int, dtype: DType, endpoint: bool
    ) -> Any:
        kind = to_numpy_dtype(dtype or np.linspace(start, stop, 1).dtype)
        return self._collection(num, kind, _spaced, start, stop, num, endpoint)

    def eye(self, rows: int, columns: int, k: int, dtype: DType) -> Any:
        return self._collection((rows, columns), dtype or np.float64, _eye, k)

    def asarray(self, obj: Any, dtype: DType, copy: bool | None) -> Any:
        if not hasattr(obj, "dask"):
            return self.cut(facade.asarray(obj, dtype, device=self._device, copy=copy))
        made = obj if dtype is None else obj.astype(to_numpy_dtype(dtype))
        return made.copy() if copy else made

    def cut(self, x: Any) -> Any:
        """Return an array, or a collection cut otherwise, as a collection."""
        if not hasattr(x, "dask"):
            chunks = _cut(self._chunks, x.shape, x.dtype)
            return _optional.dask_array().from_array(x, chunks=chunks, asarray=False)
        if not _unknown(x):
            _cut(self._chunks, x.shape, x.dtype)
        return x.rechunk(self._chunks)

    def fftfreq(self, n: int, d: float, dtype: DType) -> Any:
        return self.cut(transforms.fftfreq(n, d, dtype=dtype, device=self._device))

    def rfftfreq(self, n: int, d: float, dtype: DType) -> Any:
        return self.cut(transforms.rfftfreq(n, d, dtype=dtype, device=self._device))

    def from_dlpack(self, x: Any, copy: bool | None) -> Any:
        return self.cut(facade.from_dlpack(x, device=self._device, copy=copy))


def _cut(chunks: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return the lengths of the chunks along each axis.

    Raises
    ------
    ValueError
        There is no such cut.
    """
    made, reason = None, ""
    try:
        if isinstance(chunks, dict):
            axes = normalize_axis_tuple(tuple(chunks), len(shape))
            chunks = dict(zip(axes, chunks.values(), strict=True))
        made = _optional.dask_array().core.normalize_chunks(chunks, shape, dtype=dtype)
    except ZeroDivisionError:
        reason = " (0 is no length)"
    except (TypeError, ValueError) as error:
        reason = f" ({error})"
    least = min(map(min, made or ()), default=0)
    if made is None or tuple(map(sum, made)) != shape or least < 0:
        message = (
            f"chunks={chunks!r} does not cut an array of shape {shape}{reason}: give a "
            f"length, chunks=1000, one for each axis, in which -1 is all of it, "
            f"chunks=(1000, -1), or chunks='auto'"
        )
        raise ValueError(message)
    return made


def _unknown(x: Any) -> bool:
    """Say whether only the chunks know an array's shape, as those of ``x[x > 0]``."""
    return any(map(math.isnan, x.shape))


# What makes a chunk: in module scope, so that it goes to workers by name.


def _shape(window: Window) -> tuple[int, ...]:
    return tuple(extent.stop - extent.start for extent in window)


def _empty(device: str, dtype: Any, window: Window) -> Any:
    return facade.empty(_shape(window), dtype, device=device)


def _full(device: str, dtype: Any, value: Any, window: Window) -> Any:
    return facade.full(_shape(window), value, dtype, device=device)


def _full_like(device: str, dtype: Any, value: Any, block: Any) -> Any:
    return facade.full(block.shape, value, dtype, device=device)


def _eye(device: str, dtype: Any, k: int, window: Window) -> Any:
    rows, columns = window
    shifted = k + rows.start - columns.start
    n_rows, n_cols = _shape(window)
    return facade.eye(n_rows, n_cols, shifted, dtype, device=device)


def _kind(start: Any, stop: Any, step: Any) -> np.dtype[Any]:
    """Return the data type of a range, of which no element is made."""
    return np.result_type(np.arange(start, start, step), np.arange(stop, stop, step))


def _range(device: str, dtype: Any, start: Any, step: Any, window: Window) -> Any:
    """Return a part of a range, to the same bits as a whole one of NumPy's."""
    (part,) = window
    first, second = (np.asarray(x).astype(dtype)[()] for x in (start, start + step))
    made = _counts(device, dtype, part)
    made *= second - first
    made += first
    if part.start <= 1 < part.stop:
        made[1 - part.start] = second
    return made


def _spaced(
    device: str,
    dtype: Any,
    start: Any,
    stop: Any,
    num: int,
    endpoint: bool,
    window: Window,
) -> Any:
    """Return a part of evenly spaced numbers, to the same bits as NumPy's."""
    (part,) = window
    between = num - endpoint
    distance = np.subtract(stop, start, dtype=np.result_type(start, stop, 1.0))
    made = _counts(device, distance.dtype, part)
    if between > 0 and distance / between:
        made *= distance / between
    else:
        made *= distance
        made /= max(between, 1)
    made += start
    if endpoint and num > 1 and part.start < num == part.stop:
        made[-1] = stop
    if np.dtype(dtype).kind not in FLOATS:
        made = facade.floor(made)
    return facade.astype(made, dtype, copy=False)


def _counts(device: str, dtype: Any, part: slice) -> Any:
    return facade.astype(facade.arange(part.start, part.stop, device=device), dtype)
