"""A plan: all of a CUDA ufunc call that its operands' dtypes and layouts decide."""

from __future__ import annotations

import struct
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from xdev._plain_calls import SLOT
from xdev.compile.cubins import ACCESS, BLOCK, ITEMS, Elementwise, Operand
from xdev.compile.launch import Launch, Value
from xdev.ufunc import layout
from xdev.ufunc.cuda_operands import Array, Number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from xdev.compile.formulas import Dtypes
    from xdev.ufunc.layout import Shape
    from xdev.ufunc.signatures import Specialisation

PLANS = 512  # kept for each function; with more layouts it starts afresh
NARROW = 2**31  # indices and offsets below this fit 32 bits


class Result(NamedTuple):
    """How to make a result that the caller gave no array for.

    The shape has the slowest axis in memory first; ``axes`` make it the caller's.
    """

    shape: Shape
    axes: Shape
    dtype: np.dtype[Any]

    @classmethod
    def like(
        cls, shape: Shape, inputs: list[Shape], dtype: np.dtype[Any], kind: str
    ) -> Result:
        """Lay a result out as the inputs are, or as an order of NumPy's says."""
        every = tuple(range(len(shape)))
        order = {"C": every, "F": every[::-1]}.get(str(kind).upper()) or layout.axes(
            inputs or [(0,) * len(shape)]
        )
        axes = tuple(order.index(axis) for axis in range(len(shape)))
        return cls(tuple(shape[axis] for axis in order), axes, dtype)

    @property
    def straight(self) -> bool:
        """Whether the axes are in the caller's order."""
        return self.axes == tuple(range(len(self.axes)))

    @property
    def laid(self) -> Array:
        """What stands for it in a plan: an array as the caller will see it."""
        steps = layout.contiguous(self.shape, self.dtype.itemsize)
        shape, strides = (
            tuple(each[axis] for axis in self.axes) for each in (self.shape, steps)
        )
        return Array(None, 0, shape, strides, self.dtype)


class Plan(NamedTuple):
    """What a call with such operands does.

    The dtypes that the loop takes; how to make each result, None where the caller gave
    an array; what launches of the values of inputs, outputs and mask, None where
    there is nothing to compute.
    """

    inputs: Dtypes
    results: tuple[Result | None, ...]
    run: Launch | None


def remember(table: dict[Any, Any], key: Any, value: Any) -> Any:
    """Keep a value in a table of bounded size, and return what is there."""
    if len(table) >= PLANS:
        table.clear()
    return table.setdefault(key, value)


def make(
    spec: Specialisation,
    inputs: Sequence[Array | Number],
    outputs: Sequence[Array | None],
    mask: Array | None,
    compiled: Callable[[Elementwise], Any],
    order: str = "K",
) -> Plan:
    """Decide how to call a typed function with such operands.

    An output of None is to be made, in memory order ``order``; ``compiled`` returns the
    loaded kernel of an :class:`Elementwise`.
    """
    read = [x for x in inputs if isinstance(x, Array)]
    masks = [] if mask is None else [mask]
    shape = layout.broadcast(
        [x.shape for x in (*read, *masks)],
        [x.shape for x in outputs if x is not None],
        spec.name,
    )
    stretched = [layout.stretch(x.shape, x.strides, shape) for x in read]
    if str(order).upper() == "A":
        order = "F" if read and all(map(_is_fortran, read)) else "C"
    results = tuple(
        Result.like(shape, stretched, dtype, order) if x is None else None
        for x, dtype in zip(outputs, spec.outputs, strict=True)
    )
    pairs: Any = zip(outputs, results, strict=True)
    targets: list[Array] = [y.laid if x is None else x for x, y in pairs]
    masked = [layout.stretch(x.shape, x.strides, shape) for x in masks]
    strides = [x.strides for x in targets] + stretched + masked
    extents, steps = layout.collapse(shape, strides)
    out_steps, remaining = steps[: len(targets)], iter(steps[len(targets) :])
    size = prod(shape)

    operands: list[Operand] = []
    by_slot: list[Shape] = []
    for x, loop in zip(inputs, spec.inputs, strict=True):
        step = next(remaining) if isinstance(x, Array) else (0,) * len(extents)
        storage = x.dtype if isinstance(x, Array) else loop
        operands.append(Operand(_kind(x, step, size), storage, loop))
        by_slot.append(step)
    for y, loop in zip(targets, spec.outputs, strict=True):
        operands.append(Operand("Output", y.dtype, loop))
    by_slot += [*out_steps, *remaining]  # the mask's last

    rows = mask is None and all(o.kind != "Strided" for o in operands)
    rows = rows and all(
        step[-1] == o.storage.itemsize or size == 1
        for o, step in zip(operands, by_slot, strict=False)
        if o.kind == "Output"
    )
    spread = max(
        sum((n - 1) * abs(step) for n, step in zip(extents, steps, strict=True))
        for steps in by_slot
    )
    template, lanes = "rows", Elementwise(tuple(operands)).lanes
    if rows and (len(extents) == 1 or extents[-1] >= lanes):
        led = len(extents) == 1 or any(
            step % ACCESS for steps in out_steps for step in steps[:-1]
        )
        led = led or any(x is not None and x.address % ACCESS for x in outputs)
        groups = -(-(extents[-1] + led * (lanes - 1)) // lanes)
        index = (*extents[:-1], groups)
    else:
        operands = [
            o._replace(kind="Strided") if o.kind in ("Linear", "Uniform") else o
            for o in operands
        ]
        index, template = extents, "strided"
    count = prod(index)
    kernel = Elementwise(
        tuple(operands),
        template,
        len(extents),
        masked=mask is not None,
        wide=max(count, extents[-1]) >= NARROW,
        far=spread >= NARROW,
    )
    run = None
    if size:
        first = targets[0] if len(targets) == 1 and not masks else None
        values = tuple(
            _value(x, loop, first) for x, loop in zip(inputs, spec.inputs, strict=True)
        )
        values += tuple(Value(itemsize=y.dtype.itemsize) for y in targets)
        values += (Value(),) * len(masks)
        each = ITEMS if kernel.template == "strided" else 1
        arrays = (*read, first)
        straight = kernel.is_flat and all(_is_straight(x, shape) for x in arrays)
        run = Launch(
            compiled(kernel),
            -(-count // (BLOCK * each)),
            BLOCK,
            _parameter(kernel, extents[-1], index, by_slot),
            values,
            None if first is None else len(inputs),
            lanes=kernel.lanes if straight else 0,
            size=size,
        )
    return Plan(spec.inputs, results, run)


def _is_fortran(x: Array) -> bool:
    """Say whether an array is contiguous in Fortran's order, and not in C's."""
    size, shape = x.dtype.itemsize, x.shape
    fortran = layout.contiguous(shape[::-1], size)[::-1]
    return x.strides == fortran != layout.contiguous(shape, size)


def _is_straight(x: Array | None, shape: Shape) -> bool:
    """Say whether there is an array that is C-contiguous and of a shape."""
    return x is not None and x.layout == (
        x.dtype,
        shape,
        layout.contiguous(shape, x.dtype.itemsize),
    )


def _value(x: Array | Number, loop: np.dtype[Any], output: Array | None) -> Value:
    """Describe an input's value for the launch."""
    if isinstance(x, Number):
        return Value.number(x.value, loop)
    if output is None:
        return Value()
    here, there = x.reach, output.reach
    low, high = there.low - here.high, there.high - here.low
    same, itemsize = x.layout == output.layout, x.dtype.itemsize
    return Value(low=low, high=high, same=same, itemsize=itemsize)


def _kind(x: Array | Number, step: Shape, size: int) -> str:
    if isinstance(x, Number):
        return "Constant"
    if step[-1] == x.dtype.itemsize or size == 1:
        return "Linear"
    return "Strided" if step[-1] else "Uniform"


def _parameter(
    kernel: Elementwise, row: int, index: Shape, steps: list[Shape]
) -> bytes:
    """Lay out the parameter as ``Parameters`` in layout.cuh does."""
    magic, shift = zip(*map(layout.divisor, index), strict=True)
    if kernel.wide:  # it divides instead
        magic = (0,) * len(index)
    number = "Q" if kernel.wide else "I"
    offset = "q" if kernel.wide or kernel.far else "i"
    flat = [step for each in steps for step in each]
    size = row if kernel.template == "rows" else prod(index)
    fields = struct.pack(
        f"@{1 + 3 * len(index)}{number}{len(flat)}{offset}",
        *(size, *index, *magic, *shift, *flat),
    )
    return bytes(len(steps) * SLOT) + fields
