"""Scans and the other methods of a ufunc on CUDA arrays.

A function of two is taken to be associative, as every parallel reduction must: its
operands keep their order, but not which pairs are folded first.
"""

from __future__ import annotations

import struct
from math import prod
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional
from xdev._plain_calls import SLOT
from xdev.compile.cubins import BLOCK, WARP, Reduce, Scan, Scatter, computed
from xdev.compile.launch import Launch, Value
from xdev.ufunc import cuda_layout, cuda_streams
from xdev.ufunc.cuda import on_device, require, written
from xdev.ufunc.cuda_operands import Array, Number, read
from xdev.ufunc.cuda_reductions import (
    ADDRESS,
    CudaCall,
    CudaReduction,
    Repeats,
    axis_of,
    launch,
    operands_of,
)
from xdev.ufunc.foreign import is_cuda
from xdev.ufunc.inputs import strong

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.ufunc.cuda import CudaLoops
    from xdev.ufunc.signatures import Specialisation

#: Bytes of a contiguous line that one block scans alone: more are two launches.
ALONE = 2**17


@final
class CudaMethods:
    """The methods of a ufunc on CUDA arrays.

    Parameters
    ----------
    loops : CudaLoops
        The function's kernels.
    identity : int, str or None
        What a reduction of nothing is; ``"reorderable"``: nothing is, but axes may be
        reduced in any order. None: one axis at a time.

    Attributes
    ----------
    reduce : CudaReduction
        The first of them.
    scans : Repeats
        Of ``accumulate``, those of one launch.
    """

    def __init__(self, loops: CudaLoops, identity: int | str | None) -> None:
        self._loops, self._name = loops, loops.scalar.name
        self.reduce, self.scans = CudaReduction(loops, identity), Repeats()

    def accumulate(self, array: Any, *, axis: Any, dtype: Any, out: Any) -> Any:
        """Fold along an axis and keep each step, as :meth:`numpy.ufunc.accumulate`."""
        x, given, spec = operands_of(self._loops, array, out, dtype)
        if not x.shape:
            message = f"{self._name}.accumulate needs an array of one dimension or more"
            raise TypeError(message)
        key, axis = axis, axis_of(axis, len(x.shape))
        loop = computed(spec.outputs[0])
        with CudaCall(self._name, [x], given) as ready:
            x = ready.apart(x)
            y = ready.result(x.shape, spec.outputs[0])
            if not prod(x.shape):
                return ready.owner(y)
            zeros = (0,) * len(x.shape)
            found = cuda_layout.lines(x.shape, (axis,), x.strides, y.strides, zeros)
            assert found is not None  # noqa: S101 - one axis
            group = cuda_layout.scanning(found)
            kernel = Scan(x.dtype, loop, y.dtype, group, len(found.extents))
            first = Reduce(x.dtype, loop, loop, group, len(found.extents))
            span = max(kernel.span, first.span)
            splits, each, before = 1, found.length, 0
            if group == 1 or found.length * x.dtype.itemsize > ALONE:
                splits, each = found.split(group, span, x.dtype.itemsize)
            if splits > 1:
                made = ready.scratch((found.number, splits), loop)
                between = cuda_layout.partial(found, splits, loop.itemsize)
                fold = launch(self._loops, spec, first, between, splits, each)
                before = made.data.ptr
                fold([x.address, before])
            parameter = bytes(3 * SLOT) + found.parameter(splits, each)
            blocks = cuda_layout.grid(found.number, splits, group)
            machine = self._loops.kernel(spec, kernel)
            slots = (ADDRESS,) * (2 + bool(before))
            scan = Launch(machine, blocks, BLOCK, parameter, slots)
            scan([x.address, y.address, *([before] if before else [])])
            if out is None and not before and x.owner is array:
                self.scans.learn((key, dtype), array, y, scan)
            return ready.owner(y)

    def reduceat(
        self, array: Any, *, indices: Any, axis: Any, dtype: Any, out: Any
    ) -> Any:
        """Fold slices, as :meth:`numpy.ufunc.reduceat` does."""
        x, given, spec = operands_of(self._loops, array, out, dtype)
        axis = axis_of(axis, len(x.shape))
        loop, length = computed(spec.outputs[0]), x.shape[axis]
        places = read(indices, self._name) if is_cuda(indices) else indices
        operands = [i for i in (x, places) if isinstance(i, Array)]
        with CudaCall(self._name, operands, given) as ready:
            x = ready.apart(x)
            starts = segment_starts(places, length)
            if starts is None:
                raise IndexError(
                    f"{self._name}.reduceat: indices must be one list of places in 0 "
                    f"to {length - 1}, the extent of axis {axis} less one"
                )
            count = starts.size
            shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
            y = ready.result(shape, spec.outputs[0])
            if prod(shape):
                # The segments are the last of the dimensions that count lines.
                zeros = (0,) * len(x.shape)
                target = tuple(0 if i == axis else s for i, s in enumerate(y.strides))
                found = cuda_layout.lines(x.shape, (axis,), x.strides, target, zeros)
                assert found is not None  # noqa: S101 - one axis
                found = found._replace(
                    extents=(*found.extents, count),
                    source=(*found.source, 0),
                    target=(*found.target, y.strides[axis]),
                    mask=(*found.mask, 0),
                )
                group = 1 if length <= count * cuda_layout.SHORT else WARP
                kernel = Reduce(x.dtype, loop, y.dtype, group, len(found.extents))
                kernel = kernel._replace(segmented=True)
                fold = launch(self._loops, spec, kernel, found, 1, length)
                fold([x.address, y.address, 0, starts.data.ptr])
            return ready.owner(y)

    def outer(self, a: Any, b: Any, out: Any, keywords: dict[str, Any]) -> Any:
        """Apply to every pair of elements, as :meth:`numpy.ufunc.outer` does."""
        one, two = read(a, self._name), read(b, self._name)
        if isinstance(one, Array) and isinstance(two, Array):
            more = len(two.shape)
            strides = one.strides + (0,) * more
            one = one.laid_out(one.shape + (1,) * more, strides)
        return self._loops((one, two), out, **keywords)

    def at(self, a: Any, indices: Any, b: Any) -> None:
        """Work in place at indices, as :meth:`numpy.ufunc.at` does."""
        require()
        _at(self._loops, a, indices, b)


# In place at indices: positions are sorted, one thread works each run.


def _at(loops: CudaLoops, a: Any, indices: Any, b: Any) -> None:
    """Work in place at indices, as :meth:`numpy.ufunc.at` does."""
    name = loops.scalar.name
    y = written(a, name)
    index = indices if isinstance(indices, tuple) else (indices,)
    parts = [read(part, name) if is_cuda(part) else part for part in index]
    values = () if b is None else (read(b, name),)
    operands = [x for x in (y, *parts, *values) if isinstance(x, Array)]
    with on_device(operands, name), cuda_streams.ordered(operands):
        _at_places(loops, y, parts, values)


def _at_places(
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


def segment_starts(places: Any, length: int) -> Any:
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
