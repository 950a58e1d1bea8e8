# ruff: noqa: D102 - protocols.Place says what each method does
"""CuPy arrays on one GPU. Their memory is xdev's pool: CuPy allocates through it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional
from xdev.device import Device, registry
from xdev.device.choice import CPU
from xdev.device.copies import announce
from xdev.facade.clipping import NUMBERS
from xdev.facade.cuda import guarded
from xdev.facade.cuda_differences import fill
from xdev.facade.dtype_names import to_numpy_dtype
from xdev.facade.places.cpu import HOST, as_shape, dtype_of_number
from xdev.memory.device_arrays import array_maker

if TYPE_CHECKING:
    from xdev.facade.protocols import DType

#: More elements than any device holds: beyond, CuPy's own count of bytes overflows.
TOO_MANY = 2**59
_CALLS = [
    "empty",
    "zeros",
    "ones",
    "full",
    "empty_like",
    "zeros_like",
    "ones_like",
    "full_like",
    "arange",
    "linspace",
    "eye",
    "asarray",
    "fftfreq",
    "rfftfreq",
    "from_dlpack",
]
#: Data types that CuPy takes as they are, and more quickly than their ``numpy.dtype``.
CUPYS = frozenset(np.dtype(char).type for char in "?bhilBHILefdFD")


@final
class CudaPlace:
    """One GPU.

    Parameters
    ----------
    index : int
        CuPy's number of it.
    """

    def __init__(self, index: int) -> None:
        self.cupy = cupy = _optional.cupy()
        self.ndarray, self._device = cupy.ndarray, Device(f"cuda:{index}")
        self._make = array_maker()
        if registry.backend("cuda").count() > 1:
            device = cupy.cuda.Device(index)
            for name in _CALLS:
                setattr(self, name, guarded(getattr(self, name), device))

    def empty(self, shape: Any, dtype: DType, order: str = "C") -> Any:
        if dtype is None:
            dtype = np.float64
        elif type(dtype) is not type or dtype not in CUPYS:
            dtype = to_numpy_dtype(dtype)
        try:
            count = shape if type(shape) is int else math.prod(shape)
        except TypeError:
            shape = as_shape(shape)
            count = math.prod(shape)
        if count >= TOO_MANY:
            message = f"shape {shape} overflows: no device holds {count:,} elements"
            raise ValueError(message)
        return self._make(shape, dtype, order)  # refuses negatives

    def zeros(self, shape: Any, dtype: DType) -> Any:
        out = self.empty(shape, dtype)
        out.data.memset_async(0, out.nbytes)
        return out

    def ones(self, shape: Any, dtype: DType) -> Any:
        out = self.empty(shape, dtype)
        out.fill(1)
        return out

    def full(self, shape: Any, value: Any, dtype: DType) -> Any:
        kind = dtype_of_number(value) if dtype is None else dtype
        return self._filled(self.empty(shape, kind), value)

    def _filled(self, out: Any, value: Any) -> Any:
        if isinstance(value, self.ndarray):
            out[...] = value
            return out
        host = (
            np.asarray(value).astype(out.dtype)
            if hasattr(value, "dtype")
            else np.asarray(value, dtype=out.dtype)  # refuses what does not fit
        )
        fill(out, host[()])
        return out

    def _uploaded(self, host: Any) -> Any:
        """Copy a host array to the device; one number goes with the launch."""
        if host.ndim:
            announce(CPU, self._device, host.nbytes)
            return self.cupy.asarray(host)
        return self._filled(self.empty((), host.dtype), host)

    def empty_like(self, x: Any, dtype: DType) -> Any:
        kind = x.dtype if dtype is None else dtype
        return self.empty(x.shape, kind, "F" if x.flags.fnc else "C")

    def zeros_like(self, x: Any, dtype: DType) -> Any:
        out = self.empty_like(x, dtype)
        out.data.memset_async(0, out.nbytes)
        return out

    def ones_like(self, x: Any, dtype: DType) -> Any:
        out = self.empty_like(x, dtype)
        out.fill(1)
        return out

    def full_like(self, x: Any, value: Any, dtype: DType) -> Any:
        return self._filled(self.empty_like(x, dtype), value)

    def arange(self, start: Any, stop: Any, step: Any, dtype: DType) -> Any:
        if stop is None:
            start, stop = 0, start
        kinds = {type(start), type(stop), type(step)}
        kind: Any = None
        if dtype is not None:
            kind = to_numpy_dtype(dtype)
        elif kinds <= NUMBERS:  # CuPy would ask numpy.dtype of each
            kind = np.float64 if float in kinds else np.int64
        return self.cupy.arange(start, stop, step, kind)

    def linspace(
        self, start: Any, stop: Any, num: int, dtype: DType, endpoint: bool
    ) -> Any:
        kind = None if dtype is None else to_numpy_dtype(dtype)
        return self.cupy.linspace(start, stop, num, endpoint, False, kind)

    def eye(self, rows: int, columns: int, k: int, dtype: DType) -> Any:
        out = self.zeros((rows, columns), dtype)
        if -rows < k < columns:
            out.diagonal(k).fill(1)
        return out

    def asarray(self, obj: Any, dtype: DType, copy: bool | None) -> Any:
        kind = None if dtype is None else to_numpy_dtype(dtype)
        if isinstance(obj, self.ndarray):
            if not copy and (kind is None or kind == obj.dtype):
                return obj
        elif hasattr(obj, "__cuda_array_interface__"):
            obj = self.cupy.asarray(obj)
        elif copy is False:
            message = (
                "xdev.asarray: copy=False, but a host object must be copied to "
                "CUDA: leave copy= out"
            )
            raise ValueError(message)
        elif isinstance(obj, list | tuple) and obj and _has(obj, self.ndarray):
            return self.cupy.asarray(obj, dtype=kind)
        else:
            return self._uploaded(HOST.asarray(obj, kind, copy=None))
        if copy is False and kind is not None and kind != obj.dtype:
            message = (
                f"xdev.asarray: copy=False, but {obj.dtype} must be copied to become "
                f"{kind}: leave copy= out"
            )
            raise ValueError(message)
        return obj.astype(obj.dtype if kind is None else kind, copy=bool(copy))

    def fftfreq(self, n: int, d: float, dtype: DType) -> Any:
        # CuPy's own makes two ranges, and joins them.
        made = self.cupy.arange(0, n, 1, np.float64)
        negative = made[(n + 1) // 2 :]
        negative -= n
        made = made / (n * d)
        return made if dtype is None else made.astype(to_numpy_dtype(dtype), copy=False)

    def rfftfreq(self, n: int, d: float, dtype: DType) -> Any:
        made = self.cupy.arange(0, n // 2 + 1, 1, np.float64) / (n * d)
        return made if dtype is None else made.astype(to_numpy_dtype(dtype), copy=False)

    def from_dlpack(self, x: Any, copy: bool | None) -> Any:
        # CuPy asks the exporter for the copy, and refuses as an exporter to make one.
        if copy is False:
            return self.cupy.from_dlpack(x, copy=False)
        made = self.cupy.from_dlpack(x)
        return made.copy() if copy else made


def _has(nested: Any, kind: type) -> bool:
    """Say whether a nested sequence holds a value of a type."""
    if isinstance(nested, list | tuple):
        return any(_has(part, kind) for part in nested)
    return isinstance(nested, kind)
