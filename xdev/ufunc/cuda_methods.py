"""Scans and the other methods of a ufunc on CUDA arrays.

A function of two is taken to be associative, as every parallel reduction must: its
operands keep their order, but not which pairs are folded first.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, final

from xdev._plain_calls import SLOT
from xdev.compile.elementwise import BLOCK, computed
from xdev.compile.folds import WARP, Reduce, Scan
from xdev.compile.launch import Launch
from xdev.ufunc import cuda_folds as folds, cuda_scatter
from xdev.ufunc.cuda import require
from xdev.ufunc.cuda_call import CudaCall
from xdev.ufunc.cuda_operands import Array, read
from xdev.ufunc.cuda_reductions import (
    ADDRESS,
    CudaReduction,
    axis_of,
    launch,
    operands_of,
)
from xdev.ufunc.foreign import is_cuda

if TYPE_CHECKING:
    from xdev.ufunc.cuda import CudaLoops


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
    """

    def __init__(self, loops: CudaLoops, identity: int | str | None) -> None:
        self._loops, self._name = loops, loops.scalar.name
        self.reduce = CudaReduction(loops, identity)

    def accumulate(self, array: Any, *, axis: Any, dtype: Any, out: Any) -> Any:
        """Fold along an axis and keep each step, as :meth:`numpy.ufunc.accumulate`."""
        x, given, spec = operands_of(self._loops, array, out, dtype)
        if not x.shape:
            message = f"{self._name}.accumulate needs an array of one dimension or more"
            raise TypeError(message)
        axis = axis_of(axis, len(x.shape))
        loop = computed(spec.outputs[0])
        with CudaCall(self._name, [x], given) as ready:
            x = ready.apart(x)
            y = ready.result(x.shape, spec.outputs[0])
            if not prod(x.shape):
                return ready.owner(y)
            zeros = (0,) * len(x.shape)
            found = folds.lines(x.shape, (axis,), x.strides, y.strides, zeros)
            assert found is not None  # noqa: S101 - one axis
            group = folds.scanning(found)
            kernel = Scan(x.dtype, loop, y.dtype, group, len(found.extents))
            first = Reduce(x.dtype, loop, loop, group, len(found.extents))
            span = max(kernel.span, first.span)
            splits, each = found.split(group, span, x.dtype.itemsize)
            before = 0
            if splits > 1:
                made = ready.scratch((found.count, splits), loop)
                between = folds.partial(found, splits, loop.itemsize)
                fold = launch(self._loops, spec, first, between, splits, each)
                before = made.data.ptr
                fold([x.address, before])
            parameter = bytes(3 * SLOT) + found.parameter(splits, each)
            blocks = folds.grid(found.count, splits, group)
            machine = self._loops.kernel(spec, kernel)
            scan = Launch(machine, blocks, BLOCK, parameter, (ADDRESS,) * 3)
            scan([x.address, y.address, before])
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
            starts = cuda_scatter.starts(places, length)
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
                found = folds.lines(x.shape, (axis,), x.strides, target, zeros)
                assert found is not None  # noqa: S101 - one axis
                found = replace(
                    found,
                    extents=(*found.extents, count),
                    source=(*found.source, 0),
                    target=(*found.target, y.strides[axis]),
                    mask=(*found.mask, 0),
                )
                group = 1 if length <= count * folds.SHORT else WARP
                kernel = Reduce(x.dtype, loop, y.dtype, group, len(found.extents))
                kernel = replace(kernel, segmented=True)
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
        cuda_scatter.at(self._loops, a, indices, b)
