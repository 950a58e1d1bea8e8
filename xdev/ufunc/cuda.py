"""A scalar function on CUDA arrays: what ``numpy.ufunc.__call__`` is on the host.

All of a call that its operands' dtypes and layouts decide is a plan.
"""

from __future__ import annotations

import struct
import threading
from contextlib import contextmanager
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from xdev import _optional, device, native
from xdev._plain_calls import SLOT
from xdev.compile import cubins, launch
from xdev.compile.cubins import ACCESS, BLOCK, ITEMS, Elementwise, Operand
from xdev.compile.launch import Launch, Value
from xdev.device.cuda import BACKEND
from xdev.errors import DeviceMismatchError, not_array, type_name
from xdev.memory.arrays import array_maker
from xdev.ufunc import cuda_operands, foreign, layout
from xdev.ufunc.cuda_operands import Array, Number, encoders, handed, read
from xdev.ufunc.dtypes import refuse_casts
from xdev.ufunc.foreign import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from xdev.compile.formulas import Dtypes
    from xdev.ufunc.dtypes import Signature, Specialisation
    from xdev.ufunc.layout import Shape

PLANS = 512  # kept for each function; with more layouts it starts afresh
NARROW = 2**31  # indices and offsets below this fit 32 bits


@final
class CudaLoops:
    """The CUDA kernels of one scalar function, and calls; ``launches`` keeps some."""

    def __init__(self, scalar: Any, launches: native.calls.Launches) -> None:
        self.scalar, self._launches = scalar, launches
        launches.nin = scalar.nin
        self._lock = threading.RLock()  # guards the making of kernels
        self._plans: dict[Any, Plan] = {}
        self._kernels: dict[Any, Any] = {}

    def __call__(
        self,
        args: Sequence[Any],
        out: Any = None,
        *,
        where: Any = True,
        casting: str = "same_kind",
        signature: Signature | None = None,
        order: str = "K",
    ) -> Any:
        """Compute the function of arrays and numbers on their device.

        New results are of the first array's library. Whatever is raised, nothing was
        written.
        """
        name, labels = self.scalar.name, self.scalar.labels
        inputs = [read(x, name, label) for x, label in zip(args, labels, strict=True)]
        outs = out if isinstance(out, tuple) else () if out is None else (out,)
        outputs = [None if x is None else written(x, name) for x in outs]
        mask = mask_of(where, name)
        key = (
            *(x.layout for x in inputs),
            *(x if x is None else (x.layout, x.address % 16) for x in outputs),
            mask if isinstance(mask, bool) else mask.layout,
            (len(outputs), casting, signature, order),
        )
        with placed(name, *inputs, *outputs, mask) as place:
            plan = self._plans.get((key, place))
            if plan is None:
                plan = self._plan(inputs, outputs, mask, casting, signature, order)
                remember(self._plans, (key, place), plan)
            operands = *inputs, mask
            *rest, where = copied = [apart(x, outputs) for x in operands]
            if any(x is not y for x, y in zip(operands, copied, strict=True)):
                same = {"casting": casting, "order": order}
                return self(rest, out, where=where, signature=signature, **same)
            values = handed(inputs, plan.inputs, name, labels)
            results: list[Any] = [
                outputs[i] if made is None else new_array(made)
                for i, made in enumerate(plan.results)
            ]
            values += [x.address for x in (*results, mask) if isinstance(x, Array)]
            if plan.run is not None and mask is not False:
                plan.run(values)
            first = next((x.owner for x in inputs if isinstance(x, Array)), None)
            returned = tuple(
                y.owner if made is None else foreign.from_native(y.owner, first)
                for y, made in zip(results, plan.results, strict=True)
            )
        if len(returned) > 1:
            return returned
        if mask is True and (casting, signature, order) == ("same_kind", None, "K"):
            self._learn((*args, *(x for x in outs if x is not None)), returned[0], plan)
        return returned[0]

    def _learn(self, operands: tuple[Any, ...], result_array: Any, plan: Plan) -> None:
        """Have calls on such operands launch by the plan from now on."""
        native_array, result = _optional.cupy().ndarray, plan.results[0]
        kinds = {type(x) for x in operands if not isinstance(x, NUMBERS)}
        lifted = result is not None and type(result_array) is not native_array
        if plan.run is None or lifted or not kinds <= {native_array, *foreign.NUMBAS}:
            return
        launch_plan = native.calls.LaunchPlan(
            plan.run,
            result and result.dtype,
            result and result.shape,
            None if result is None or result.straight else result.axes,
            encoders(plan.run.values, plan.inputs),
        )
        self._launches.learn(operands, launch_plan)

    def _plan(
        self,
        inputs: list[Array | Number],
        outputs: list[Array | None],
        mask: Array | bool,
        casting: str,
        signature: Signature | None,
        order: str,
    ) -> Plan:
        require()
        asked = self.scalar.resolve(
            [x.value if isinstance(x, Number) else x for x in inputs]
        )
        if signature is None:
            spec = self.scalar.specialise(asked)
        else:
            spec = self.scalar.giving(asked, signature)
        outputs = outputs or [None] * len(spec.outputs)
        casts = [
            (f"input {i}", own if isinstance(x, Number) and x.weak else x.dtype, to)
            for i, (x, own, to) in enumerate(
                zip(inputs, asked, spec.inputs, strict=True)
            )
        ]
        pairs = zip(outputs, spec.outputs, strict=True)
        casts += [("the result", own, y.dtype) for y, own in pairs if y is not None]
        refuse_casts(self.scalar.name, casts, casting)
        masked = mask if isinstance(mask, Array) else None
        compiled = partial(self.kernel, spec)
        return planned(spec, inputs, outputs, masked, compiled, order)

    def kernel(self, spec: Specialisation, kernel: cubins.Template) -> Any:
        """Return a loaded kernel, compiled once."""
        capability = launch.capability(_optional.cupy().cuda.runtime.getDevice())
        key, fastmath = (spec, kernel, capability), self.scalar.fastmath
        with self._lock:
            if key not in self._kernels:
                parts = spec.types, kernel.entry, kernel.macros(), capability, fastmath
                make = partial(spec.cubin, kernel, capability, fastmath=fastmath)
                cubin = cubins.load_or_compile(
                    spec.digest, parts, spec.name, make, spec.unchanged
                )
                self._kernels[key] = launch.Kernel(*cubin)
            return self._kernels[key]


def require() -> None:
    """Start CUDA, or say why it cannot be used."""
    device.Device("cuda").require()


def written(x: Any, name: str) -> Array:
    """Return what an output is; its library is told that it is going to be written."""
    memory = read(x, name, "out=")
    foreign.begin_write(x, name)
    if not isinstance(memory, Array):
        message = f"{name}: out= is {not_array(x, 'pass an array on the device')}"
        raise TypeError(message)
    if not memory.writable:
        raise ValueError(f"{name}: out is read-only: pass an array that may be written")
    return memory


def mask_of(where: Any, name: str) -> Array | bool:
    """Return which elements are computed: all, none, or those that an array says."""
    if isinstance(where, bool):
        return where
    mask = read(where, name)
    dtype = mask.layout if isinstance(mask, Number) else mask.dtype
    if dtype != np.bool_:
        message = f"{name}: where must be bool, not {dtype}: pass where=mask != 0"
        raise TypeError(message)
    return bool(mask.value) if isinstance(mask, Number) else mask


def new_array(result: Result) -> Array:
    """Return a new CuPy array; what the caller gets is made of it after the launch."""
    array = array_maker()(result.shape, result.dtype)
    if not result.straight:
        array = array.transpose(result.axes)
    return Array.of(array)


def apart(x: Any, outputs: Sequence[Array | None]) -> Any:
    """Return an operand, or a copy of it where an output would spoil it."""
    spoilt = isinstance(x, Array) and any(y and x.is_spoilt(y) for y in outputs)
    return Array.of(x.cupy().copy()) if spoilt else x


@contextmanager
def on_device(arrays: list[Array], name: str) -> Iterator[int]:
    """Make the arrays' device current; refuse arrays of two."""
    if BACKEND.count() == 1:  # and it is current
        yield 0
        return
    placed = [(x, index) for x in arrays if (index := x.device) is not None]
    first, place = placed[0] if placed else (None, BACKEND.current())
    for x, index in placed:
        if first is not None and index != place:
            raise DeviceMismatchError(
                f"{name} got arrays of two devices: {type_name(first.owner)} is on "
                f"cuda:{place}, {type_name(x.owner)} of shape {x.shape} on "
                f"cuda:{index}; move one with xdev.to_device(x, 'cuda:{place}')"
            )
    with _optional.cupy().cuda.Device(place):
        yield place


@contextmanager
def placed(name: str, *operands: Any) -> Iterator[int]:
    """Make the arrays' device current, and order launches with their streams."""
    arrays = [x for x in operands if isinstance(x, Array)]
    with on_device(arrays, name) as place, cuda_operands.ordered(arrays):
        yield place


# Plans: all of a call that its operands' dtypes and layouts decide.


class Result(NamedTuple):
    """How to make a result that the caller gave no array for.

    The shape has the slowest axis in memory first; ``axes`` make it the caller's.
    """

    shape: Shape
    axes: Shape
    dtype: np.dtype[Any]

    @classmethod
    def like(
        cls, shape: Shape, inputs: Sequence[Array], dtype: np.dtype[Any], order: Any
    ) -> Result:
        """Lay a result out as the inputs are, or as an order of NumPy's says."""
        places = layout.places(shape, inputs, order)
        axes = tuple(places.index(axis) for axis in range(len(shape)))
        return cls(layout.picked(shape, places), axes, dtype)

    @property
    def straight(self) -> bool:
        """Whether the axes are in the caller's order."""
        return self.axes == tuple(range(len(self.axes)))

    @property
    def laid(self) -> Array:
        """What stands for it in a plan: an array as the caller will see it."""
        steps = layout.contiguous(self.shape, self.dtype.itemsize)
        shape, strides = (layout.picked(x, self.axes) for x in (self.shape, steps))
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
    """Keep a value in a table of bounded size, and return what is there.

    The oldest goes; threads may let more go.
    """
    if len(table) >= PLANS:
        table.pop(next(iter(table.copy())), None)
    return table.setdefault(key, value)


def planned(
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
    sources = read if mask is None else [*read, mask]
    given = [x.shape for x in outputs if x is not None]
    shape = layout.broadcast([x.shape for x in sources], given, spec.name)
    results = tuple(
        Result.like(shape, read, dtype, order) if x is None else None
        for x, dtype in zip(outputs, spec.outputs, strict=True)
    )
    pairs: Any = zip(outputs, results, strict=True)
    targets: list[Array] = [y.laid if x is None else x for x, y in pairs]
    strides = [x.strides for x in targets]
    strides += [layout.stretch(x.shape, x.strides, shape) for x in sources]
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
    lanes = Elementwise(tuple(operands), deep=spec.deep).lanes
    template = "rows"
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
        deep=spec.deep,
    )
    run = None
    if size:
        first = targets[0] if len(targets) == 1 and mask is None else None
        values = tuple(
            _value(x, loop, first) for x, loop in zip(inputs, spec.inputs, strict=True)
        )
        values += tuple(Value(itemsize=y.dtype.itemsize) for y in targets)
        values += (Value(),) * (len(sources) - len(read))
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


def _is_straight(x: Array | None, shape: Shape) -> bool:
    """Say whether there is an array that is C-contiguous and of a shape."""
    if x is None or x.shape != shape:
        return False
    return x.strides == layout.contiguous(shape, x.dtype.itemsize)


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
