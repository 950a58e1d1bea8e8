"""``ufunc.at`` on CUDA arrays: positions are sorted, one thread works each run."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional
from xdev.compile.elementwise import BLOCK
from xdev.compile.folds import Scatter
from xdev.compile.launch import Launch, Value
from xdev.ufunc import cuda_streams
from xdev.ufunc.cuda import on_device, written
from xdev.ufunc.cuda_operands import Array, Number, read
from xdev.ufunc.foreign import is_cuda
from xdev.ufunc.inputs import strong

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.ufunc.cuda import CudaLoops
    from xdev.ufunc.signatures import Specialisation


def at(loops: CudaLoops, a: Any, indices: Any, b: Any) -> None:
    """Work in place at indices, as :meth:`numpy.ufunc.at` does."""
    name = loops.scalar.name
    y = written(a, name)
    index = indices if isinstance(indices, tuple) else (indices,)
    parts = [read(part, name) if is_cuda(part) else part for part in index]
    values = () if b is None else (read(b, name),)
    operands = [x for x in (y, *parts, *values) if isinstance(x, Array)]
    with on_device(operands, name), cuda_streams.ordered(operands):
        _at(loops, y, parts, values)


def _at(
    loops: CudaLoops,
    y: Array,
    parts: Sequence[Any],
    values: tuple[Array | Number, ...],
) -> None:
    cupy, name, array = _optional.cupy(), loops.scalar.name, _viewed(y)
    places = _places(array, [_viewed(part) for part in parts], name)
    dtypes = loops.scalar.resolve(
        [array, *(x.value if isinstance(x, Number) else x for x in values)]
    )
    spec = loops.scalar.specialise(dtypes)
    if len(spec.outputs) != 1 or not np.can_cast(spec.outputs[0], y.dtype, "same_kind"):
        results = ", ".join(map(str, spec.outputs))
        raise TypeError(f"{name}.at: its result of {results} cannot go to {y.dtype}")
    other = None
    for x in values:
        other = _viewed(x)
        if isinstance(x, Number):
            dtype, label = spec.inputs[1], loops.scalar.labels[1]
            (number,) = strong((x.value,), (dtype,), f"{name}.at", (label,))
            other = cupy.asarray(number, dtype)
        other = cupy.ascontiguousarray(cupy.broadcast_to(other, places.shape))
    if not places.size:
        return
    positions = places.ravel()
    order = cupy.argsort(positions)  # stable
    positions = positions[order]
    whole = cupy.ascontiguousarray(array)
    kernel = Scatter(
        y.dtype, None if other is None else other.dtype, spec.inputs, spec.outputs[0]
    )
    launch = prepared(loops, spec, kernel, positions.size)
    held = 0 if other is None else other.data.ptr
    launch([whole.data.ptr, positions.data.ptr, order.data.ptr, held])
    if whole is not array:
        array[...] = whole


def _viewed(x: Any) -> Any:
    """Return a CuPy array of an operand's memory; other things come back themselves."""
    if not isinstance(x, Array):
        return x
    return x.owner if type(x.owner) is _optional.cupy().ndarray else x.cupy()


def prepared(loops: CudaLoops, spec: Specialisation, kernel: Scatter, n: int) -> Launch:
    """Return what launches, of the addresses of array, positions, order and values."""
    parameter = bytes(16 * 4) + struct.pack("=qq", n, 0)
    machine = loops.kernel(spec, kernel)
    return Launch(machine, -(-n // BLOCK), BLOCK, parameter, (Value(),) * 4)


def starts(places: Any, length: int) -> Any:
    """Return where segments begin as a CuPy array, None where they cannot; it waits."""
    found = _optional.cupy().asarray(_viewed(places), dtype=np.int64)
    fits = found.ndim == 1 and (not found.size or within(found, 0, length))
    return found if fits else None


def within(places: Any, low: int, high: int) -> bool:
    """Say whether all are from ``low`` on and below ``high``; it waits for the GPU."""
    return int(places.min()) >= low and int(places.max()) < high


def _places(array: Any, parts: Sequence[Any], name: str) -> Any:
    """Return the numbers of the elements that an index selects, in C order."""
    cupy = _optional.cupy()
    axis = 0
    moved: list[Any] = []
    for part in parts:
        if part is Ellipsis:
            axis = array.ndim - sum(p is not None for p in parts[len(moved) + 1 :])
        elif part is None or isinstance(part, slice):
            axis += part is not None
        else:
            part = cupy.asarray(part)  # noqa: PLW2901 - as CuPy takes it
            if part.dtype == np.bool_:
                axis += part.ndim
            elif part.size:
                n = array.shape[axis] if axis < array.ndim else 0
                if not within(part, -n, n):
                    message = f"{name}.at: an index is out of bounds for axis {axis}"
                    raise IndexError(message)
                axis += 1
        moved.append(part)
    numbers = cupy.arange(array.size, dtype=np.int64).reshape(array.shape)
    return numbers[tuple(moved)]
