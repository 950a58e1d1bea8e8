# ruff: noqa: D102 - protocols.Place says what each method does
"""NumPy arrays, made in memory from xdev's host pool."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.facade.dtype_names import to_numpy_dtype
from xdev.facade.host_memory import host_array, pooled

if TYPE_CHECKING:
    from xdev.facade.protocols import DType, Shape


def as_shape(shape: Any) -> Shape:
    """Return a shape, given as an integer or a sequence of them, as a tuple.

    Raises
    ------
    TypeError
        It is neither.
    """
    try:
        if isinstance(shape, tuple | list):
            return tuple(operator.index(extent) for extent in shape)
        return (operator.index(shape),)
    except TypeError as error:
        message = f"{shape!r} is no shape: give a whole number or a tuple of them"
        raise TypeError(message) from error


@final
class HostPlace:
    """The host."""

    __slots__ = ()

    def empty(self, shape: Any, dtype: DType, order: str = "C") -> Any:
        kind = np.dtype(np.float64) if dtype is None else to_numpy_dtype(dtype)
        if kind.hasobject:  # pointers must start as None, not as old memory
            return np.empty(shape, kind)
        return host_array()(as_shape(shape), kind, order)

    def zeros(self, shape: Any, dtype: DType) -> Any:
        return self.full(shape, 0, np.float64 if dtype is None else dtype)

    def ones(self, shape: Any, dtype: DType) -> Any:
        return self.full(shape, 1, np.float64 if dtype is None else dtype)

    def full(self, shape: Any, value: Any, dtype: DType) -> Any:
        out = self.empty(shape, np.asarray(value).dtype if dtype is None else dtype)
        out.fill(value)
        return out

    def empty_like(self, x: Any, dtype: DType) -> Any:
        kind = x.dtype if dtype is None else dtype
        return self.empty(x.shape, kind, "F" if x.flags.fnc else "C")

    def zeros_like(self, x: Any, dtype: DType) -> Any:
        return self.full_like(x, 0, dtype)

    def ones_like(self, x: Any, dtype: DType) -> Any:
        return self.full_like(x, 1, dtype)

    def full_like(self, x: Any, value: Any, dtype: DType) -> Any:
        out = self.empty_like(x, dtype)
        out.fill(value)
        return out

    def arange(self, start: Any, stop: Any, step: Any, dtype: DType) -> Any:
        kind = None if dtype is None else to_numpy_dtype(dtype)
        if stop is None:
            start, stop = 0, start
        return pooled(np.arange(start, stop, step, dtype=kind))

    def linspace(
        self, start: Any, stop: Any, num: int, dtype: DType, endpoint: bool
    ) -> Any:
        kind = None if dtype is None else to_numpy_dtype(dtype)
        return pooled(np.linspace(start, stop, num, dtype=kind, endpoint=endpoint))

    def eye(self, rows: int, columns: int, k: int, dtype: DType) -> Any:
        out = self.zeros((rows, columns), dtype)
        if -rows < k < columns:
            first = k if k >= 0 else -k * columns
            out[: columns - k].flat[first :: columns + 1] = 1
        return out

    def asarray(self, obj: Any, dtype: DType, copy: bool | None) -> Any:
        kind = None if dtype is None else to_numpy_dtype(dtype)
        if isinstance(obj, np.ndarray):
            same = kind is None or kind == obj.dtype
            if not copy and (same or copy is False):
                return np.asarray(obj, dtype=kind, copy=copy)
            out = self.empty_like(obj, kind)
            np.copyto(out, obj, casting="unsafe")
            return out
        made = np.array(obj, dtype=kind, copy=copy)
        if made.dtype.hasobject and kind is None:
            message = (
                f"xdev.asarray: a {type(obj).__name__} has no data type of the "
                f"standard: give numbers that fit one, or dtype="
            )
            raise TypeError(message)
        return pooled(made) if made.base is None else made

    def fftfreq(self, n: int, d: float, dtype: DType) -> Any:
        return self._frequencies(np.fft.fftfreq(n, d), dtype)

    def rfftfreq(self, n: int, d: float, dtype: DType) -> Any:
        return self._frequencies(np.fft.rfftfreq(n, d), dtype)

    def _frequencies(self, made: Any, dtype: DType) -> Any:
        kind = None if dtype is None else to_numpy_dtype(dtype)
        return pooled(made if kind is None else made.astype(kind, copy=False))

    def from_dlpack(self, x: Any, copy: bool | None) -> Any:
        made = np.from_dlpack(x, copy=copy)
        return pooled(made) if copy else made

    def info(self) -> Any:
        return np.__array_namespace_info__()


HOST = HostPlace()
