"""One call of a method on CUDA arrays: its device, its stream, its result."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, final

from xdev.memory.arrays import array_maker
from xdev.ufunc import cuda_plan, cuda_streams, foreign
from xdev.ufunc.cuda import new_array, on_device
from xdev.ufunc.cuda_operands import Array

if TYPE_CHECKING:
    import numpy as np


@final
class CudaCall:
    """One call: its device and stream, its result, and memory that lasts for it."""

    def __init__(self, name: str, operands: list[Array], out: Array | None) -> None:
        self._name, self._operands, self._target = name, operands, out
        self._kept: list[Any] = []
        given = [] if out is None else [out]
        self._device = on_device([*operands, *given], name)
        self._order = cuda_streams.ordered([*operands, *given])
        self._entered = ExitStack()

    def __enter__(self) -> CudaCall:
        self._entered.enter_context(self._device)
        self._entered.enter_context(self._order)
        return self

    def __exit__(self, *_: object) -> None:
        self._entered.close()

    def result(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return where the result goes: the caller's array, or a new one.

        As NumPy's methods do, the kernels cast to whatever ``out`` holds.
        """
        y = self._target
        if y is None:
            plain = cuda_plan.Result(shape, tuple(range(len(shape))), dtype)
            return new_array(plain)
        if y.shape != shape:
            message = f"{self._name}: out has shape {y.shape}, but the result {shape}"
            raise ValueError(message)
        return y

    def apart(self, x: Array) -> Array:
        """Return an input, or a copy of it where the output would spoil it."""
        y = self._target
        if y is None or not x.is_spoilt(y):
            return x
        return straightened(x, list(range(len(x.shape))))

    def scratch(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """Return memory for the time of the call, in the stream's order."""
        return self.kept(array_maker()(shape, dtype))

    def kept(self, array: Any) -> Any:
        """Keep an array until all is launched, and return it."""
        self._kept.append(array)
        return array

    def owner(self, y: Array) -> Any:
        """Return what the caller gets, once all is launched."""
        if self._target is not None:
            return self._target.owner
        return foreign.from_native(y.owner, self._operands[0].owner)


def straightened(x: Array, order: list[int]) -> Array:
    """Return a contiguous copy with its axes in an order."""
    made = x.cupy().transpose(order).copy(order="C")
    return Array(made, made.data.ptr, made.shape, made.strides, made.dtype)
