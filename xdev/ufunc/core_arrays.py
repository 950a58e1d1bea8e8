"""Functions of core arrays: their dimensions and types, and calls, on every device."""

from __future__ import annotations

import dataclasses
import re
import threading
from math import prod
from operator import index, is_not
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from xdev.compile.grid import Argument, Grid
from xdev.errors import quoted
from xdev.ufunc.cpu import report_errors
from xdev.ufunc.cuda import Result
from xdev.ufunc.cuda_operands import Array, Number, handed
from xdev.ufunc.kernels import is_aligned, is_contiguous
from xdev.ufunc.layout import Shape, broadcast, collapse, stretch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.ufunc.generalized import CoreFunction, CoreSpecialisation
    from xdev.ufunc.signatures import Signature

# Core dimensions: ``"(n),(n)->()"``, and the shapes that they stand for.

NAME = r"\s*(?:[A-Za-z_]\w*|[1-9]\d*)\s*"
OPERAND = rf"\s*\(\s*(?:{NAME}(?:,{NAME})*)?\)\s*"
WHOLE = re.compile(rf"({OPERAND}(?:,{OPERAND})*)->({OPERAND}(?:,{OPERAND})*)")


@final
@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """The core dimensions of each operand, by name; a number is a fixed length."""

    text: str
    inputs: tuple[tuple[str, ...], ...]
    outputs: tuple[tuple[str, ...], ...]

    @classmethod
    def parse(cls, text: object) -> Layout:
        """Read a signature.

        Examples
        --------
        >>> Layout.parse("(m,n),(n)->(m)").inputs
        (('m', 'n'), ('n',))
        """
        match = WHOLE.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise TypeError(
                f"{quoted(text)} is not a layout of core dimensions: write one pair of "
                "brackets an operand, '(m,n),(n)->(m)'"
            )
        inputs, outputs = (
            tuple(
                tuple(name.strip() for name in operand.split(",") if name.strip())
                for operand in re.findall(r"\(([^()]*)\)", part)
            )
            for part in match.groups()
        )
        return cls(match[0].strip(), inputs, outputs)

    @property
    def operands(self) -> tuple[tuple[str, ...], ...]:
        """The names of all operands' core dimensions."""
        return self.inputs + self.outputs

    def shapes(
        self, inputs: Sequence[Shape], outputs: Sequence[Shape | None], name: str
    ) -> tuple[Shape, list[Shape]]:
        """Return the loop shape, and the shape of every output."""
        names = (n for own in self.operands for n in own)
        lengths: dict[str, int] = {n: int(n) for n in names if n.isdigit()}
        reads: list[Shape] = []
        writes: list[Shape] = []
        for k, (shape, own) in enumerate(
            zip((*inputs, *outputs), self.operands, strict=True)
        ):
            if shape is None:
                continue
            split = len(shape) - len(own)
            if split < 0:
                raise ValueError(
                    f"{name}: operand {k} of shape {shape} lacks core dimensions: it "
                    f"has ({','.join(own)}) in {self.text}"
                )
            (writes if k >= len(inputs) else reads).append(shape[:split])
            for dimension, length in zip(own, shape[split:], strict=True):
                if lengths.setdefault(dimension, length) != length:
                    raise ValueError(
                        f"{name}: operand {k} of shape {shape} has {length} along its "
                        f"core dimension {dimension} of {self.text}, where others have "
                        f"{lengths[dimension]}"
                    )
        unknown = [n for own in self.outputs for n in own if n not in lengths]
        if unknown:
            raise ValueError(
                f"{name}: no input has the core dimension {unknown[0]} of {self.text}: "
                "pass out= of the length that it shall have"
            )
        # Unlike other ufuncs' outputs, these may lack leading dimensions of length 1.
        most = max(map(len, reads), default=0)
        if any(self.operands):
            writes = [(1,) * (most - len(shape)) + shape for shape in writes]
        loop = broadcast(reads, writes, name)
        return loop, [loop + tuple(lengths[n] for n in own) for own in self.outputs]


# ``axis=`` and ``keepdims=`` of a generalized ufunc, as NumPy has them.


def axes_of_cores(
    layout: Layout, name: str, axis: Any = None, keepdims: bool = False
) -> list[Shape]:
    """Return the axes of each operand's core dimensions, as a call's keywords say.

    Where they are kept, an output has as many as an input, of length 1.
    """
    if not isinstance(keepdims, bool | np.bool_):
        raise TypeError(
            f"{name}: keepdims must be True or False, not {quoted(keepdims)}"
        )
    nin, counts = len(layout.inputs), [len(own) for own in layout.operands]
    several = len(set(counts[:nin])) > 1 or not counts[0]
    if keepdims and (any(counts[nin:]) or several):
        raise TypeError(
            f"{name}: keepdims needs inputs of as many core dimensions each, and "
            f"outputs without any, not {layout.text}"
        )
    if axis is not None and max(counts) != 1:
        raise TypeError(
            f"{name}: axis needs one core dimension: move several with xdev.moveaxis"
        )
    if keepdims:
        counts[nin:] = counts[:1] * (len(counts) - nin)
    if axis is not None:
        return [(index(axis),) * count for count in counts]
    return [tuple(range(-count, 0)) for count in counts]


# Calls: a kernel whose points are the loop indices, on every device.

MOST = 256  # plans that one function keeps at a time
Operand = Array | Number


#: What a call with operands of some layouts does: the function's typing; how to make
#: results that are not given; and what computes them of addresses and numbers, None
#: where there are no loop indices, or operands are of other dtypes.
CorePlan = tuple["CoreSpecialisation", list[Result], Any]


@final
class CoreLoops:
    """A function of core arrays, on the arrays of one kind of device.

    Where ``shared``, threads of the CPU share the loop indices.
    """

    def __init__(
        self, function: CoreFunction, grids: Any, *, shared: bool = True
    ) -> None:
        self._function, self._grids, self._shared = function, grids, shared
        self._lock = threading.Lock()  # guards what is compiled: each is made once
        self._machines: dict[Any, Any] = {}
        self._plans: dict[Any, CorePlan] = {}

    def __call__(
        self,
        args: Sequence[Any],
        outs: tuple[Any, ...] | None = None,
        *,
        subok: bool = True,
        **options: Any,
    ) -> Any:
        """Compute the function of arrays and numbers on their device."""
        function, grids, name = self._function, self._grids, self._function.name
        named = zip(args, function.labels, strict=True)
        inputs = [grids.operand(x, name, label) for x, label in named]
        owners = outs or (None,) * function.nout
        outputs = [None if x is None else grids.written(x, name) for x in owners]
        arrays = [x for x in (*inputs, *outputs) if isinstance(x, Array)]
        given = tuple(x.owner for x in inputs if isinstance(x, Array))
        with grids.on_device(arrays, name) as place, grids.ordered(arrays):
            results = self._compute(place, inputs, outputs, options)
        whole = tuple(
            grids.returned(result.owner, given, function, k, subok)
            if owner is None
            else owner
            for k, (owner, result) in enumerate(zip(owners, results, strict=True))
        )
        return whole if len(whole) > 1 else whole[0]

    def _compute(
        self,
        place: Any,
        inputs: Sequence[Operand],
        outputs: Sequence[Array | None],
        options: dict[str, Any],
    ) -> list[Array]:
        """Compute, after the results that nobody gave are made; return them all."""
        function, grids = self._function, self._grids
        layouts = (x and x.layout for x in (*inputs, *outputs))
        key = place, repr(options), *layouts
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plan(place, inputs, outputs, **options)
            if len(self._plans) >= MOST:
                self._plans.clear()
            self._plans[key] = plan
        (typing, new, run), there = plan, [y for y in outputs if y is not None]
        # An output may be an input: a point may read what others write.
        ready = [
            grids.copied(x, dtype)
            if isinstance(x, Array) and not (_fits(x, dtype) and _is_apart(x, there))
            else x
            for x, dtype in zip(inputs, typing.inputs, strict=True)
        ]
        targets = [
            y
            if y is None or _fits(y, dtype)
            else grids.made(Result.like(y.shape, [], dtype, "C"))
            for y, dtype in zip(outputs, typing.outputs, strict=True)
        ]
        if any(map(is_not, (*ready, *targets), (*inputs, *outputs))):
            results = self._compute(place, ready, targets, options)
            for y, result in zip(outputs, results, strict=True):
                if y is not None and result.owner is not y.owner:
                    grids.assign(y, result)
            return results
        results = [
            grids.made(result) if y is None else y
            for y, result in zip(outputs, new, strict=True)
        ]
        if run is not None:
            dtypes = (*typing.inputs, *typing.outputs)
            operands, name = [*inputs, *results], function.name
            report = run(handed(operands, dtypes, name, function.names))
            if report and report[0]:
                report_errors(f"xdev:{name}", report[0])
        return results

    def _plan(
        self,
        place: Any,
        inputs: Sequence[Operand],
        outputs: Sequence[Array | None],
        *,
        signature: Signature | None = None,
        casting: str = "same_kind",
        order: Any = "K",
        **axes: Any,
    ) -> CorePlan:
        """Find the typing and the shapes, and compile."""
        function, nin = self._function, len(inputs)
        layout, name = function.layout, function.name
        core_axes = axes_of_cores(layout, name, **axes)
        if axes.get("keepdims"):  # they are core dimensions of length 1
            kept = (("1",) * len(layout.inputs[0]),) * function.nout
            layout = dataclasses.replace(layout, outputs=kept)
        np.asarray((), order=order)  # which refuses others than NumPy's
        can_cast: Any = np.can_cast
        can_cast("?", "?", casting)  # likewise
        typing = function.specialise(
            function.resolve([x.owner if isinstance(x, Number) else x for x in inputs]),
            [None if y is None else y.dtype for y in outputs],
            None if signature is None else signature[1][0],
            casting,
        )
        reads = [
            self._turned(x, own) if isinstance(x, Array) else x
            for x, own in zip(inputs, core_axes, strict=False)
        ]
        written = [
            None if y is None else self._turned(y, own).shape
            for y, own in zip(outputs, core_axes[nin:], strict=True)
        ]
        shapes = [x.shape if isinstance(x, Array) else () for x in reads]
        loop, shapes = layout.shapes(shapes, written, name)
        results, writes = [], []
        for y, own, shape, dtype in zip(
            outputs, core_axes[nin:], shapes, typing.outputs, strict=True
        ):
            axis_order = self._order(own, len(shape))
            placed = tuple(shape[axis_order.index(axis)] for axis in range(len(shape)))
            result = Result.like(placed, [], dtype, order)
            results.append(result)
            writes.append(self._turned(y or result.laid, own))
        run, operands = None, [*reads, *writes]
        dtypes = (*typing.inputs, *typing.outputs)
        if prod(loop) and all(
            isinstance(x, Number) or x.dtype == dtype
            for x, dtype in zip(operands, dtypes, strict=True)
        ):
            run = self._run(place, typing, layout, loop, operands)
        return typing, results, run

    def _order(self, own: Shape, ndim: int) -> Shape:
        """Return the axes of an operand, those of its core dimensions last."""
        last = normalize_axis_tuple(own, ndim, self._function.name)
        return (*(axis for axis in range(ndim) if axis not in last), *last)

    def _turned(self, x: Array, own: Shape) -> Array:
        """Return an array with its core dimensions last."""
        order = self._order(own, len(x.shape))
        return x.laid_out(
            tuple(x.shape[axis] for axis in order),
            tuple(x.strides[axis] for axis in order),
        )

    def _run(
        self,
        place: Any,
        typing: CoreSpecialisation,
        layout: Layout,
        loop: Shape,
        operands: list[Any],
    ) -> Any:
        """Return what computes for every loop index, of operands with cores last."""
        function, grids = self._function, self._grids
        splits = [
            len(x.shape) - len(own) if isinstance(x, Array) else 0
            for x, own in zip(operands, layout.operands, strict=True)
        ]
        outer = [
            stretch(x.shape[:at], x.strides[:at], loop)
            for x, at in zip(operands, splits, strict=True)
            if isinstance(x, Array)
        ]
        # Outputs first: theirs is the order of the loop dimensions.
        count = function.nout
        extents, steps = collapse(loop, outer[-count:] + outer[:-count])
        following = iter(steps[count:] + steps[:count])
        cores = list(typing.arguments)
        for k, (x, at, core) in enumerate(zip(operands, splits, cores, strict=True)):
            if isinstance(x, Number):
                continue
            shape, strides = x.shape[at:], x.strides[at:]
            if core.ndim and not function.layout.operands[k]:  # one element
                shape, strides = (1,), (core.dtype.itemsize,)
            contiguous = is_contiguous(x.laid_out(shape, strides))
            cores[k] = core._replace(contiguous=contiguous and core.ndim is not None)
            operands[k] = x.laid_out(extents + shape, next(following) + strides)
        points = grids.points(extents, function.name)
        kinds = tuple(
            Argument(core.dtype, len(x.shape) if isinstance(x, Array) else None)
            for x, core in zip(operands, cores, strict=True)
        )
        narrow = points.narrow([x for x in operands if isinstance(x, Array)])
        key = place, typing, kinds, *cores, narrow
        with self._lock:
            if key not in self._machines:
                own, fastmath = typing.function, function.fastmath
                grid = Grid(own, points.dimensions, kinds, fastmath, cores=tuple(cores))
                self._machines[key] = grids.compiled(grid, narrow=narrow)
        return grids.run(
            self._machines[key], kinds, points, operands, shared=self._shared
        )


def _fits(x: Array, dtype: np.dtype[Any]) -> bool:
    return x.dtype == dtype and is_aligned(x)


def _is_apart(x: Array, writes: Sequence[Array]) -> bool:
    return not any(x.reach.meets(y.reach, y.address - x.address) for y in writes)
