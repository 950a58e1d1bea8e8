"""Reductions of CUDA arrays: one launch, or two where a line has many segments."""

from __future__ import annotations

import struct
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional
from xdev._plain_calls import BYTES
from xdev.compile.elementwise import BLOCK, computed
from xdev.compile.folds import Reduce
from xdev.compile.launch import Launch, Value, padded
from xdev.device.cuda import BACKEND
from xdev.memory.device_arrays import array_maker
from xdev.memory.owners import mark_uses
from xdev.memory.streams import live_streams
from xdev.ufunc import cuda_folds as folds, cuda_layout
from xdev.ufunc.cuda import require, written
from xdev.ufunc.cuda_axes import axes_of, surely_whole
from xdev.ufunc.cuda_call import CudaCall, straightened
from xdev.ufunc.cuda_operands import Array, Number, read
from xdev.ufunc.errors import reduction_error
from xdev.ufunc.inputs import too_large

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.ufunc.cuda import CudaLoops
    from xdev.ufunc.cuda_folds import Lines
    from xdev.ufunc.specialisation import Specialisation

ADDRESSES = Value()
NUMBER = Value(BYTES)
PLANS = 512  # kept for each function
KEYS = (int, tuple, str, type, np.dtype, type(None))  # axes and dtypes that are learnt
# What repeats a reduction: the result's shape and dtype, its plan, the loop's dtype,
# what segments and the whole start from, and the axis.
Known = tuple[
    tuple[int, ...],
    np.dtype[Any],
    folds.Folding,
    np.dtype[Any],
    tuple[bytes, bytes],
    int | tuple[int, ...] | None,
]


@final
class CudaReduction:
    """``reduce`` of a ufunc on CUDA arrays.

    Parameters
    ----------
    loops : CudaLoops
        The function's kernels.
    identity : int, str or None
        What a reduction of nothing is; ``"reorderable"``: nothing is, but axes may be
        reduced in any order. None: one axis at a time.

    Attributes
    ----------
    again : callable
        ``again(array, axis, dtype)`` repeats a reduction that differs from an earlier
        one in values alone, and is the quickest way; None: there was no such, or the
        launch was refused.
    """

    def __init__(self, loops: CudaLoops, identity: int | str | None) -> None:
        self._loops, self._name = loops, loops.scalar.name
        self._identity = identity
        self._neutral = None if identity == "reorderable" else identity
        self._plans: dict[Any, folds.Folding] = {}
        self._known: dict[Any, Known] = {}
        self.again: Callable[[Any, Any, Any], Any] = _nothing

    def __call__(
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
        TypeError
            An axis is no integer.
        """
        x, given, spec = operands_of(self._loops, array, out, dtype)
        axes = axes_of(axis, len(x.shape))
        if len(axes) > 1 and self._identity is None:
            raise reduction_error("not reorderable", self._name)
        first = self._initial(initial, spec)
        mask = None if where is True else self._mask(where, x.shape)
        if mask is not None and first is None:
            raise reduction_error("where mask", self._name)
        if first is None and not prod(x.shape[i] for i in axes):
            raise reduction_error("no identity", self._name)
        one = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
        left = tuple(n for i, n in enumerate(x.shape) if i not in axes)
        operands = [x] if mask is None else [x, mask]
        with CudaCall(self._name, operands, given) as ready:
            x, mask = ready.apart(x), mask and ready.apart(mask)
            y = ready.result(one if keepdims else left, spec.outputs[0])
            kept = y.strides if keepdims else _with_axes(y.strides, axes)
            whole = y.laid_out(one, kept)
            if prod(one):
                started = first is not None
                plan, x, mask = self._found(spec, x, whole, mask, axes, started, ready)
                loop = computed(spec.outputs[0])
                neutral: Any = np.asarray(self._neutral or 0).astype(loop)[()]
                values: dict[str, Any] = {
                    "source": x.address,
                    "target": y.address,
                    "mask": 0 if mask is None else mask.address,
                    "none": 0,
                    "first": padded(loop.type(first if started else 0)),
                    "neutral": padded(neutral),
                }
                if plan.scratch is not None:
                    values["made"] = ready.scratch(plan.scratch, loop).data.ptr
                steps = [(run, [values[n] for n in names]) for run, names in plan.steps]
                ready.run(steps)
                plain = out is None and not keepdims and mask is None
                plain = plain and initial is np._NoValue and x.owner is array  # noqa: SLF001
                if plain and isinstance(axis, KEYS) and isinstance(dtype, KEYS):
                    self._learn(x, axis, dtype, y, plan, loop, values)
            return ready.owner(y)

    def _learn(
        self,
        x: Array,
        axis: Any,
        dtype: Any,
        y: Array,
        plan: folds.Folding,
        loop: np.dtype[Any],
        values: dict[str, Any],
    ) -> None:
        """Remember what a reduction launched, for :attr:`again`."""
        array = _optional.cupy().ndarray
        if type(y.owner) is not array:
            return
        if len(self._known) >= PLANS:
            self._known.clear()
        numbers = values["neutral"], values["first"]
        key = (*x.layout, axis, dtype, y.owner.data.device_id)
        self._known[key] = y.shape, y.dtype, plan, loop, numbers, axis
        if self.again is _nothing:
            self.again = _repeater(self._known)

    def _found(
        self,
        spec: Specialisation,
        x: Array,
        y: Array,
        mask: Array | None,
        axes: tuple[int, ...],
        started: bool,
        ready: CudaCall,
    ) -> tuple[folds.Folding, Array, Array | None]:
        """Return how to reduce, and the operands, copied where their axes need it."""
        masked = mask is not None
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
                y = y.laid_out(shape, strides)
                axes = tuple(range(len(order) - len(axes), len(order)))
                return self._found(spec, x, y, mask, axes, started, ready)
            plan = self._plan(spec, x.dtype, y.dtype, found, masked, started)
            if len(self._plans) >= PLANS:
                self._plans.clear()
            self._plans[key] = plan
        return plan, x, mask

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
            only = launch(self._loops, spec, kernel, found, 1, each, started)
            return folds.Folding(((only, ("source", "target", "mask", "first")),), None)
        kernel = replace(kernel, target=loop)
        between = folds.partial(found, splits, loop.itemsize)
        one = launch(self._loops, spec, kernel, between, splits, each, masked)
        rest = folds.rest(found, splits, loop.itemsize)
        group = folds.reducing(rest, contiguous=True)
        kernel = Reduce(loop, loop, target, group, rank)
        two = launch(self._loops, spec, kernel, rest, 1, splits, started)
        steps = (
            (one, ("source", "made", "mask", "neutral")),
            (two, ("made", "target", "none", "first")),
        )
        return folds.Folding(steps, (found.count, splits))

    def _initial(self, initial: Any, spec: Specialisation) -> Any:
        """Return what a reduction starts from, None for its first element."""
        if initial is None:
            return None
        if initial is np._NoValue:  # noqa: SLF001
            own = self._neutral
            return None if own is None else np.asarray(own).astype(spec.outputs[0])[()]
        value = initial.item() if hasattr(initial, "item") else initial
        try:
            return spec.outputs[0].type(value)
        except OverflowError as error:
            name = f"{self._name}.reduce"
            raise too_large((value,), spec.outputs, name, ("initial",)) from error

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
        return found.laid_out(shape, strides)


def _nothing(*_: Any) -> None:
    """Stand for a look where nothing is known."""


def _repeater(known: dict[Any, Known]) -> Callable[[Any, Any, Any], Any]:
    """Return :attr:`CudaReduction.again` for what is known."""
    array, make = _optional.cupy().ndarray, array_maker()
    several = BACKEND.count() > 1

    def again(x: Any, axis: Any, dtype: Any) -> Any:
        if type(x) is not array:
            return None
        device = x.data.device_id
        try:
            entry = known.get((x.dtype, x.shape, x.strides, axis, dtype, device))
        except TypeError:  # a list of axes, or what else is no key
            return None
        if entry is None or (several and BACKEND.current() != device):
            return None
        shape, kind, plan, loop, (neutral, first), learnt = entry
        if axis is not learnt and not surely_whole(axis):
            return None
        if live_streams.several:
            mark_uses((x,))
        made = make(shape, kind)
        if plan.scratch is None:
            ((one, _),) = plan.steps
            refused = one.start((x.data.ptr, made.data.ptr, 0, first))
        else:
            (one, _), (two, _) = plan.steps
            between = make(plan.scratch, loop).data
            refused = one.start((x.data.ptr, between.ptr, 0, neutral))
            refused = refused or two.start((between.ptr, made.data.ptr, 0, first))
        return None if refused else made

    return again


def operands_of(
    loops: CudaLoops, array: Any, out: Any, dtype: Any
) -> tuple[Array, Array | None, Specialisation]:
    """Return what is folded, where the results go if said, and the fold's typing."""
    require()
    name = loops.scalar.name
    x = read(array, name)
    if isinstance(x, Number):
        message = f"{name} needs an array, not {type(array).__name__}"
        raise TypeError(message)
    y = None if out is None else written(out, name)
    return x, y, loops.scalar.folding(x.dtype, y and y.dtype, dtype)


def launch(
    loops: CudaLoops,
    spec: Specialisation,
    kernel: Reduce,
    found: Lines,
    splits: int,
    each: int,
    started: bool,
) -> Launch:
    """Return the launch of a reduction's kernel over lines."""
    parameter = folds.parameter(
        4, struct.pack("=ii", started, 0), found.parameter(splits, each)
    )
    blocks = folds.grid(found.count * splits, kernel.group)
    values = (ADDRESSES,) * 3 + (NUMBER,)
    return Launch(loops.kernel(spec, kernel), blocks, BLOCK, parameter, values)


def _with_axes(strides: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a result with the reduced axes put back."""
    rest = iter(strides)
    return tuple(
        0 if i in axes else next(rest) for i in range(len(strides) + len(axes))
    )
