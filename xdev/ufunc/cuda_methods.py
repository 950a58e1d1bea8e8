"""Reductions, scans and the other methods of a ufunc on CUDA arrays.

A function of two is taken to be associative, as every parallel reduction must: its
operands keep their order, but not which pairs are folded first.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from xdev import _optional
from xdev.compile.elementwise import BLOCK, computed
from xdev.compile.folds import WARP, Reduce, Scan
from xdev.compile.launch import Launch, Value
from xdev.compile.machine_launch import BYTES
from xdev.ufunc import cuda_folds as folds, cuda_layout, cuda_scatter
from xdev.ufunc.cuda import require
from xdev.ufunc.cuda_call import CudaCall, straightened
from xdev.ufunc.cuda_operands import Array, Number, is_cuda, read
from xdev.ufunc.specialisation import folding

if TYPE_CHECKING:
    from xdev.ufunc.cuda import CudaLoops
    from xdev.ufunc.cuda_folds import Lines
    from xdev.ufunc.specialisation import Specialisation

ADDRESSES = Value()
NUMBER = Value(BYTES)
PLANS = 512  # kept for each function


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
    """

    def __init__(self, loops: CudaLoops, identity: int | str | None) -> None:
        self._loops, self._name = loops, loops.scalar.name
        self._identity = identity
        self._neutral = None if identity == "reorderable" else identity
        self._plans: dict[Any, folds.Folding] = {}

    def reduce(
        self,
        array: Any,
        *,
        axis: Any,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = np._NoValue,  # noqa: SLF001 - NumPy's own default
        where: Any = True,
    ) -> Any:
        """Fold along axes, as :meth:`numpy.ufunc.reduce` does.

        Parameters
        ----------
        array : array
            What is folded.
        axis, dtype, out, keepdims, initial, where
            As :meth:`numpy.ufunc.reduce` takes them.

        Raises
        ------
        ValueError
            Nothing to fold and no identity, several axes where their order matters, or
            an ``out`` of another shape.
        """
        x, spec = self._source(array, dtype)
        axes: tuple[int, ...] = tuple(range(len(x.shape)))
        if axis is not None and (x.shape or axis not in {0, -1}):
            axes = normalize_axis_tuple(axis, len(x.shape))
        if len(axes) > 1 and self._identity is None:
            message = (
                f"{self._name}.reduce is not reorderable, so it takes one axis at a "
                "time; with @vectorize(identity=...) it takes several"
            )
            raise ValueError(message)
        first = self._initial(initial, spec)
        mask = None if where is True else self._mask(where, x.shape)
        if mask is not None and first is None:
            message = (
                f"{self._name}.reduce: where= needs a value to start from: pass "
                "initial=, or give the function an identity"
            )
            raise ValueError(message)
        if first is None and not prod(x.shape[i] for i in axes):
            message = f"{self._name}.reduce of nothing has no identity: pass initial="
            raise ValueError(message)
        one = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
        left = tuple(n for i, n in enumerate(x.shape) if i not in axes)
        operands = [x] if mask is None else [x, mask]
        with CudaCall(self._name, operands, out) as ready:
            x, mask = ready.apart(x), mask and ready.apart(mask)
            y = ready.result(one if keepdims else left, spec.outputs[0])
            kept = y.strides if keepdims else _with_axes(y.strides, axes)
            whole = replace(y, shape=one, strides=kept)
            if prod(one):
                ready.run(self._reduction(spec, x, whole, mask, axes, first, ready))
            return ready.owner(y)

    def _reduction(
        self,
        spec: Specialisation,
        x: Array,
        y: Array,
        mask: Array | None,
        axes: tuple[int, ...],
        initial: Any,
        ready: CudaCall,
    ) -> list[tuple[Launch, list[Any]]]:
        """Return the launches of a reduction."""
        masked, started = mask is not None, initial is not None
        layouts = x.layout, y.layout, mask and mask.layout
        here = _optional.cupy().cuda.runtime.getDevice()
        key = spec, layouts, axes, started, here
        plan = self._plans.get(key)
        if plan is None:
            target = tuple(0 if i in axes else s for i, s in enumerate(y.strides))
            masks = (0,) * len(x.shape) if mask is None else mask.strides
            found = folds.lines(x.shape, axes, x.strides, target, masks)
            if found is None:  # axes that do not merge: a copy in which they do
                order = [*(i for i in range(len(x.shape)) if i not in axes), *axes]
                x = ready.kept(straightened(x, order))
                mask = None if mask is None else ready.kept(straightened(mask, order))
                shape, strides = zip(
                    *((y.shape[i], y.strides[i]) for i in order), strict=True
                )
                y = replace(y, shape=shape, strides=strides)
                axes = tuple(range(len(order) - len(axes), len(order)))
                return self._reduction(spec, x, y, mask, axes, initial, ready)
            plan = self._plan(spec, x.dtype, y.dtype, found, masked, started)
            if len(self._plans) >= PLANS:
                self._plans.clear()
            self._plans[key] = plan
        loop = computed(spec.outputs[0])
        values: dict[str, Any] = {
            "source": x.address,
            "target": y.address,
            "mask": 0 if mask is None else mask.address,
            "none": 0,
            "first": folds.padded(loop.type(initial if started else 0)),
            "neutral": folds.padded(loop.type(self._neutral or 0)),
        }
        if plan.scratch is not None:
            values["made"] = ready.scratch(plan.scratch, loop).data.ptr
        return [(launch, [values[n] for n in names]) for launch, names in plan.steps]

    def _plan(
        self,
        spec: Specialisation,
        source: np.dtype[Any],
        target: np.dtype[Any],
        found: Lines,
        masked: bool,
        started: bool,
    ) -> folds.Folding:
        loop, rank = computed(spec.outputs[0]), len(found.extents)
        contiguous = found.steps[0] == source.itemsize and not masked
        group = folds.reducing(found, contiguous)
        kernel = Reduce(source, loop, target, group, rank, masked)
        splits, each = found.split(group, kernel.span, source.itemsize)
        if masked and self._neutral is None:
            splits, each = 1, found.length  # a segment of nothing would have no value
        if splits == 1:
            launch = self._reduce(spec, kernel, found, 1, each, started)
            return folds.Folding(
                ((launch, ("source", "target", "mask", "first")),), None
            )
        kernel = replace(kernel, target=loop)
        between = folds.partial(found, splits, loop.itemsize)
        one = self._reduce(spec, kernel, between, splits, each, masked)
        rest = folds.rest(found, splits, loop.itemsize)
        group = folds.reducing(rest, contiguous=True)
        kernel = Reduce(loop, loop, target, group, rank)
        two = self._reduce(spec, kernel, rest, 1, splits, started)
        steps = (
            (one, ("source", "made", "mask", "neutral")),
            (two, ("made", "target", "none", "first")),
        )
        return folds.Folding(steps, (found.count, splits))

    def _reduce(
        self,
        spec: Specialisation,
        kernel: Reduce,
        found: Lines,
        splits: int,
        each: int,
        started: bool,
    ) -> Launch:
        parameter = folds.parameter(
            4, struct.pack("=ii", started, 0), found.parameter(splits, each)
        )
        blocks = folds.grid(found.count * splits, kernel.group)
        values = (ADDRESSES,) * 3 + (NUMBER,)
        return Launch(
            self._loops.kernel(spec, kernel), blocks, BLOCK, parameter, values
        )

    def accumulate(self, array: Any, *, axis: Any, dtype: Any, out: Any) -> Any:
        """Fold along an axis and keep each step, as :meth:`numpy.ufunc.accumulate`."""
        x, spec = self._source(array, dtype)
        if not x.shape:
            message = f"{self._name}.accumulate needs an array of one dimension or more"
            raise TypeError(message)
        axis = normalize_axis_index(axis, len(x.shape))
        loop = computed(spec.outputs[0])
        with CudaCall(self._name, [x], out) as ready:
            x = ready.apart(x)
            y = ready.result(x.shape, spec.outputs[0])
            if not prod(x.shape):
                return ready.owner(y)
            zeros = (0,) * len(x.shape)
            found = folds.lines(x.shape, (axis,), x.strides, y.strides, zeros)
            assert found is not None  # noqa: S101 - one axis
            group = folds.scanning(found)
            kernel = Scan(x.dtype, loop, y.dtype, group, len(found.extents))
            first = Reduce(x.dtype, loop, loop, BLOCK, len(found.extents))
            splits, each = 1, found.length
            if group != 1:
                span = max(kernel.span, first.span)
                splits, each = found.split(group, span, x.dtype.itemsize)
            before, steps = 0, []
            if splits > 1:
                made = ready.scratch((found.count, splits), loop)
                between = folds.partial(found, splits, loop.itemsize)
                launch = self._reduce(spec, first, between, splits, each, started=False)
                before = made.data.ptr
                values = [x.address, before, 0, folds.padded(loop.type(0))]
                steps.append((launch, values))
            parameter = folds.parameter(3, b"", found.parameter(splits, each))
            blocks = folds.grid(found.count * splits, group)
            machine = self._loops.kernel(spec, kernel)
            scan = Launch(machine, blocks, BLOCK, parameter, (ADDRESSES,) * 3)
            ready.run([*steps, (scan, [x.address, y.address, before])])
            return ready.owner(y)

    def reduceat(
        self, array: Any, *, indices: Any, axis: Any, dtype: Any, out: Any
    ) -> Any:
        """Fold slices, as :meth:`numpy.ufunc.reduceat` does."""
        x, spec = self._source(array, dtype)
        axis = normalize_axis_index(axis, len(x.shape))
        loop, length = computed(spec.outputs[0]), x.shape[axis]
        places = read(indices, self._name) if is_cuda(indices) else indices
        operands = [i for i in (x, places) if isinstance(i, Array)]
        with CudaCall(self._name, operands, out) as ready:
            x = ready.apart(x)
            starts = cuda_scatter.starts(places, length)
            if starts is None:
                message = (
                    f"{self._name}.reduceat: indices must be one list of places in 0 "
                    f"to {length - 1}, the extent of axis {axis} less one"
                )
                raise IndexError(message)
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
                launch = self._reduce(spec, kernel, found, 1, length, started=False)
                neutral = folds.padded(loop.type(0))
                values = [x.address, y.address, starts.data.ptr, neutral]
                ready.run([(launch, values)])
            return ready.owner(y)

    def outer(self, a: Any, b: Any, out: Any, keywords: dict[str, Any]) -> Any:
        """Apply to every pair of elements, as :meth:`numpy.ufunc.outer` does."""
        one, two = read(a, self._name), read(b, self._name)
        if isinstance(one, Array) and isinstance(two, Array):
            more = len(two.shape)
            strides = one.strides + (0,) * more
            one = replace(one, shape=one.shape + (1,) * more, strides=strides)
        return self._loops((one, two), out, **keywords)

    def at(self, a: Any, indices: Any, b: Any) -> None:
        """Work in place at indices, as :meth:`numpy.ufunc.at` does."""
        require()
        cuda_scatter.at(self._loops, a, indices, b)

    def _source(self, array: Any, dtype: Any) -> tuple[Array, Specialisation]:
        """Return what is folded, and the typing for it or for a dtype."""
        require()
        x = read(array, self._name)
        if isinstance(x, Number):
            message = f"{self._name} needs an array, not {type(array).__name__}"
            raise TypeError(message)
        given = x.dtype if dtype is None else np.dtype(dtype)
        spec = folding(self._loops.scalar, given)
        return x, spec

    def _initial(self, initial: Any, spec: Specialisation) -> Any:
        """Return what a reduction starts from, None for its first element."""
        if initial is None:
            return None
        if initial is np._NoValue:  # noqa: SLF001
            own = self._neutral
            return None if own is None else spec.outputs[0].type(own)
        value = initial.item() if hasattr(initial, "item") else initial
        return spec.outputs[0].type(value)

    def _mask(self, where: Any, shape: tuple[int, ...]) -> Array:
        found = read(where, self._name)
        if isinstance(found, Number):
            made = _optional.cupy().asarray(found.value)
            found = Array(made, made.data.ptr, (), (), made.dtype)
        if found.dtype != np.bool_:
            message = f"{self._name}: where must be bool, not {found.dtype}"
            raise TypeError(message)
        cuda_layout.broadcast([shape, found.shape], [shape], self._name)
        strides = cuda_layout.stretch(found.shape, found.strides, shape)
        return replace(found, shape=shape, strides=strides)


def _with_axes(strides: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a result with the reduced axes put back."""
    rest = iter(strides)
    return tuple(
        0 if i in axes else next(rest) for i in range(len(strides) + len(axes))
    )
