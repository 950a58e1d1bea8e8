"""A plan: all of a CUDA ufunc call that its operands' dtypes and layouts decide."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.compile import launch
from xdev.compile.elementwise import BLOCK, Elementwise, Operand
from xdev.ufunc import cuda_layout, layout
from xdev.ufunc.cuda_operands import Array, Number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.ufunc.scalar import Specialisation

Dtypes = tuple[np.dtype[Any], ...]
Shape = tuple[int, ...]
NARROW = 2**31  # indices and offsets below this fit 32 bits


@final
@dataclass(frozen=True, slots=True)
class Result:
    """How to make a result that the caller gave no array for.

    Parameters
    ----------
    shape : tuple of int
        The extents, slowest axis in memory first.
    axes : tuple of int
        The axes that put them in the caller's order.
    dtype : numpy.dtype
        The elements' dtype.
    """

    shape: Shape
    axes: tuple[int, ...]
    dtype: np.dtype[Any]

    @classmethod
    def like(cls, shape: Shape, inputs: list[Shape], dtype: np.dtype[Any]) -> Result:
        """Lay a result out in memory as the inputs are (NumPy's order "K")."""
        order = layout.axes(inputs or [(0,) * len(shape)])
        axes = tuple(order.index(axis) for axis in range(len(shape)))
        return cls(tuple(shape[axis] for axis in order), axes, dtype)

    @property
    def strides(self) -> Shape:
        """The steps, in the caller's order [B]."""
        steps = cuda_layout.contiguous(self.shape, self.dtype.itemsize)
        return tuple(steps[axis] for axis in self.axes)


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """What a call with such operands does.

    Parameters
    ----------
    inputs : tuple of numpy.dtype
        What the loop takes.
    results : tuple of (Result or None)
        How to make each result; None where the caller gave an array.
    read, written : tuple of Reach
        The bytes of the inputs (and the mask, at the end) and of the given outputs;
        empty for numbers, and for results that are to be made.
    elementwise : Elementwise
        The kernel.
    size : int
        The number of elements.
    run : Plain, Packed or None
        ``run(stream, values)`` launches; the values are addresses or NumPy scalars:
        the inputs', the outputs', the mask's. None where there is nothing to compute.
    """

    inputs: Dtypes
    results: tuple[Result | None, ...]
    read: tuple[cuda_layout.Reach, ...]
    written: tuple[cuda_layout.Reach, ...]
    elementwise: Elementwise
    size: int
    run: launch.Plain | launch.Packed | None


def make(
    spec: Specialisation,
    inputs: Sequence[Array | Number],
    outputs: Sequence[Array | None],
    mask: Array | None,
    compiled: Callable[[Elementwise], Any],
) -> Plan:
    """Decide how to call a typed function with such operands.

    Parameters
    ----------
    spec : Specialisation
        The typed function.
    inputs, outputs, mask
        The operands; an output of None is to be made.
    compiled : callable
        Returns the loaded kernel of an :class:`Elementwise`.

    Raises
    ------
    ValueError
        The shapes do not broadcast.
    """
    given = [x for x in inputs if isinstance(x, Array)]
    masks = [] if mask is None else [mask]
    shape = cuda_layout.broadcast(
        [x.shape for x in (*given, *masks)],
        [x.shape for x in outputs if x is not None],
        spec.name,
    )
    stretched = [cuda_layout.stretch(x.shape, x.strides, shape) for x in given]
    results = tuple(
        Result.like(shape, stretched, dtype) if x is None else None
        for x, dtype in zip(outputs, spec.outputs, strict=True)
    )
    written = [
        (x or y).strides  # type: ignore[union-attr] # one of them is there
        for x, y in zip(outputs, results, strict=True)
    ]
    storage = [x.dtype if x else d for x, d in zip(outputs, spec.outputs, strict=True)]
    masked = [cuda_layout.stretch(x.shape, x.strides, shape) for x in masks]
    extents, steps = cuda_layout.collapse(shape, written + stretched + masked)
    out_steps, in_steps = steps[: len(written)], steps[len(written) :]
    size = int(np.prod(shape, dtype=object))

    operands: list[Operand] = []
    by_slot: list[Shape] = []
    remaining = iter(in_steps)
    for x, loop in zip(inputs, spec.inputs, strict=True):
        step = next(remaining) if isinstance(x, Array) else (0,) * len(extents)
        kind = _kind(x, step, size)
        operands.append(Operand(kind, x.dtype if isinstance(x, Array) else loop, loop))
        by_slot.append(step)
    flat = len(extents) == 1 and mask is None
    for dtype, loop, step in zip(storage, spec.outputs, out_steps, strict=True):
        flat = flat and (step[0] == dtype.itemsize or size == 1)
        operands.append(Operand("Output", dtype, loop))
        by_slot.append(step)
    by_slot.extend(remaining)  # the mask's

    if flat and all(o.kind != "Strided" for o in operands):
        kernel = Elementwise(tuple(operands), wide=size >= NARROW)
        run: launch.Plain | launch.Packed | None = (
            _plain(kernel, size, compiled) if size else None
        )
    else:
        spread = max(
            sum((n - 1) * abs(step) for n, step in zip(extents, steps, strict=True))
            for steps in by_slot
        )
        kernel = Elementwise(
            tuple(
                Operand("Strided", o.storage, o.loop)
                if o.kind in ("Linear", "Uniform")
                else o
                for o in operands
            ),
            dimensions=len(extents),
            masked=mask is not None,
            wide=max(size, spread) >= NARROW,
        )
        run = _packed(kernel, size, extents, by_slot, compiled) if size else None
    reads = tuple(map(_reach, (*inputs, mask)))
    writes = tuple(map(_reach, outputs))
    return Plan(spec.inputs, results, reads, writes, kernel, size, run)


def _reach(x: Array | Number | None) -> cuda_layout.Reach:
    return x.reach if isinstance(x, Array) else cuda_layout.Reach(0, 0)


def _kind(x: Array | Number, step: Shape, size: int) -> str:
    if isinstance(x, Number):
        return "Constant"
    if len(step) == 1 and (step[0] == x.dtype.itemsize or size == 1):
        return "Linear"
    return "Strided" if any(step) else "Uniform"


def _plain(
    kernel: Elementwise, size: int, compiled: Callable[[Elementwise], Any]
) -> launch.Plain:
    return launch.Plain(compiled(kernel), -(-size // kernel.span), BLOCK, size)


def _packed(
    kernel: Elementwise,
    size: int,
    extents: Shape,
    steps: list[Shape],
    compiled: Callable[[Elementwise], Any],
) -> launch.Packed:
    """Lay out the parameter as ``Parameters`` in strided.cu does."""
    magic, shift = zip(*map(cuda_layout.divisor, extents), strict=True)
    if kernel.wide:  # it divides instead
        magic = (0,) * len(extents)
    index, offset = ("Q", "q") if kernel.wide else ("I", "i")
    flat = [step for each in steps for step in each]
    fields = struct.pack(
        f"={1 + 3 * len(extents)}{index}{len(flat)}{offset}",
        *(size, *extents, *magic, *shift, *flat),
    )
    parameter = bytes(len(steps) * launch.SLOT) + fields
    parameter += bytes(-len(parameter) % launch.SLOT)
    blocks = -(-size // kernel.span)
    return launch.Packed(compiled(kernel), blocks, BLOCK, parameter)
