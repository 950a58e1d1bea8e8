"""Reductions of CUDA arrays, one launch each; what methods of ufuncs share."""

from __future__ import annotations

import secrets
import struct
from contextlib import ExitStack
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from xdev import _optional, native
from xdev._plain_calls import SLOT
from xdev.compile.cubins import BLOCK, WARP, WARPS, Reduce, computed
from xdev.compile.formulas import is_bfloat16
from xdev.compile.launch import Launch, Value, padded
from xdev.memory.arrays import array_maker
from xdev.ufunc import cuda_layout, cuda_plan, cuda_streams, foreign
from xdev.ufunc.argument_errors import reduction_error
from xdev.ufunc.cuda import new_array, on_device, require, written
from xdev.ufunc.cuda_operands import Array, Number, read
from xdev.ufunc.inputs import too_large

if TYPE_CHECKING:
    from xdev.ufunc.cuda import CudaLoops
    from xdev.ufunc.cuda_layout import Lines
    from xdev.ufunc.signatures import Specialisation

ADDRESS = Value()
BYTE = np.dtype(np.uint8)
READY = secrets.randbits(62) << 1  # marks a segment's fold: no memory holds it so
PLANS = 512  # kept for each function
WHOLE = {int, np.intp, type(None)}  # types of axes: ``1.0`` and ``True`` equal 1 too
Start = tuple[bytes | None, float]
REAL = (int, float)  # types of corrections: ``1 + 0j`` equals 1 too
KEYS = (int, tuple, str, type, np.dtype, type(None))  # axes and dtypes that are learnt


class Folding(NamedTuple):
    """What a reduction launches.

    Parameters
    ----------
    run : Launch
        As :func:`launch` returns it.
    scratch : int
        Memory where segments meet [B].
    """

    run: Launch
    scratch: int


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


@final
class Repeats:
    """Calls of a method on CuPy arrays that can be launched again by their first plan.

    What a plan depends on beside the arrays is its key: the axis or axes, the data type
    and more.
    """

    def __init__(self) -> None:
        self._launches: dict[Any, native.calls.Launches] = {}

    def again(self, array: Any, axis: Any, *others: Any) -> Any:
        """Repeat a call that differs from an earlier one in values alone.

        NotImplemented: there was no such, or the launch was refused.
        """
        try:
            launches = self._launches.get((axis, *others))
        except TypeError:  # a list of axes, or what else is no key
            return NotImplemented
        parts = axis if type(axis) is tuple else (axis,)
        if launches is None or not WHOLE.issuperset(map(type, parts)):
            return NotImplemented
        if others[1:] and not isinstance(others[1], REAL):
            return NotImplemented
        return launches(array)

    def learn(
        self, key: tuple[Any, ...], array: Any, y: Array, run: Launch, scratch: int = 0
    ) -> None:
        """Have :meth:`again` launch by a plan."""
        plain = all(isinstance(part, KEYS) for part in key[:2])
        if not plain or {type(array), type(y.owner)} != {_optional.cupy().ndarray}:
            return
        plan = native.calls.LaunchPlan(run, y.dtype, y.shape, scratch=scratch)
        if len(self._launches) >= PLANS:
            self._launches.clear()
        self._launches.setdefault(key, native.calls.Launches(1)).learn((array,), plan)


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
    statistic : str
        What becomes of a sum, one of :data:`xdev.compile.cubins.STATISTICS`.
    """

    def __init__(
        self, loops: CudaLoops, identity: int | str | None, statistic: str = "fold"
    ) -> None:
        self._loops, self._name = loops, loops.scalar.name
        self._statistic, self._places = statistic, statistic.startswith("arg")
        self._identity = identity
        self._neutral = None if identity == "reorderable" else identity
        self._plans: dict[Any, Folding] = {}
        self._repeats = Repeats()

    def again(
        self, array: Any, axis: Any, dtype: Any = None, correction: float = 0
    ) -> Any:
        """Repeat a reduction, as :meth:`Repeats.again`."""
        return self._repeats.again(array, axis, dtype, correction)

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
        correction: float = 0,
    ) -> Any:
        """Fold along axes, as :meth:`numpy.ufunc.reduce` does.

        Parameters
        ----------
        array : array
            What is folded.
        axis, dtype, out, keepdims, initial, where
            As :meth:`numpy.ufunc.reduce` takes them.
        correction : float
            What is taken off the number of elements that a variance is divided by.

        Raises
        ------
        ValueError
            Nothing to fold and no identity, several axes where their order matters, or
            an ``out`` of another shape.
        TypeError
            An axis is no integer.
        """
        x, given, spec = operands_of(self._loops, array, out, self._loop(array, dtype))
        axes = axes_of(axis, len(x.shape))
        if self._places and axis is not None:
            axis_of(axis, max(len(x.shape), 1))  # one alone
        freedom = max(float(prod(x.shape[i] for i in axes) - correction), 0.0)
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
            y = ready.result(one if keepdims else left, self._kind(spec))
            kept = y.strides if keepdims else _with_axes(y.strides, axes)
            whole = y.laid_out(one, kept)
            if prod(one):
                loop = computed(spec.outputs[0])
                begin = None if first is None else padded(loop.type(first))
                start = begin, freedom
                plan, x, mask = self._found(spec, x, whole, mask, axes, start, ready)
                values, size = [x.address, y.address], (plan.scratch,)
                if plan.scratch:
                    values.append(ready.scratch(size, BYTE).data.ptr)
                if mask is not None:
                    values += [*([] if plan.scratch else [0]), mask.address]
                plan.run(values)
                plain = out is None and not keepdims and mask is None
                plain = plain and initial is np._NoValue and x.owner is array  # noqa: SLF001
                if plain and isinstance(correction, REAL):
                    key = axis, dtype, correction
                    self._repeats.learn(key, array, y, plan.run, plan.scratch)
            return ready.owner(y)

    def _loop(self, array: Any, dtype: Any) -> Any:
        """Return what to fold in instead of what the array and ``out`` say, if so."""
        if self._statistic == "count":
            return np.intp
        if self._places:
            return array.dtype
        if self._statistic == "fold":
            return dtype
        real = array.dtype.kind == "f" or is_bfloat16(array.dtype)
        return dtype if real else np.float64

    def _kind(self, spec: Specialisation) -> np.dtype[Any]:
        """Return the data type of new results."""
        return np.dtype(np.intp) if self._places else spec.outputs[0]

    def _found(
        self,
        spec: Specialisation,
        x: Array,
        y: Array,
        mask: Array | None,
        axes: tuple[int, ...],
        start: Start,
        ready: CudaCall,
    ) -> tuple[Folding, Array, Array | None]:
        """Return how to reduce, and the operands, copied where their axes need it."""
        layouts = x.layout, y.layout, mask and mask.layout
        here = _optional.cupy().cuda.runtime.getDevice()
        key = spec, layouts, axes, start, here
        plan = self._plans.get(key)
        if plan is None:
            target = tuple(0 if i in axes else s for i, s in enumerate(y.strides))
            masks = (0,) * len(x.shape) if mask is None else mask.strides
            found = cuda_layout.lines(x.shape, axes, x.strides, target, masks)
            if found is None:  # axes that do not merge: a copy in which they do
                order = [*(i for i in range(len(x.shape)) if i not in axes), *axes]
                x = ready.kept(straightened(x, order))
                mask = None if mask is None else ready.kept(straightened(mask, order))
                shape, strides = zip(
                    *((y.shape[i], y.strides[i]) for i in order), strict=True
                )
                y = y.laid_out(shape, strides)
                axes = tuple(range(len(order) - len(axes), len(order)))
                return self._found(spec, x, y, mask, axes, start, ready)
            plan = self._plan(spec, x.dtype, y.dtype, found, start, mask is not None)
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
        start: Start,
        masked: bool,
    ) -> Folding:
        loop, rank = computed(spec.outputs[0]), len(found.extents)
        contiguous = found.steps[0] == source.itemsize and not masked
        group = cuda_layout.reducing(found, contiguous)
        kernel = Reduce(source, loop, target, group, rank, masked)
        wide = found.wide(source.itemsize) if group <= WARPS and not masked else 1
        kernel = kernel._replace(statistic=self._statistic, wide=wide)
        splits, each = found.split(group, kernel.span, source.itemsize, wide)
        nbytes = 0
        if splits > 1:
            kernel = kernel._replace(joining=WARP if splits <= BLOCK else BLOCK)
            nbytes = found.number * splits * kernel.partial
        run = launch(self._loops, spec, kernel, found, splits, each, start)
        return Folding(run, nbytes)

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
            raise TypeError(f"{self._name}: where must be bool, not {found.dtype}")
        cuda_layout.broadcast([shape, found.shape], [shape], self._name)
        strides = cuda_layout.stretch(found.shape, found.strides, shape)
        return found.laid_out(shape, strides)


def operands_of(
    loops: CudaLoops, array: Any, out: Any, dtype: Any
) -> tuple[Array, Array | None, Specialisation]:
    """Return what is folded, where the results go if said, and the fold's typing."""
    require()
    name = loops.scalar.name
    x = read(array, name)
    if isinstance(x, Number):
        raise TypeError(f"{name} needs an array, not {type(array).__name__}")
    y = None if out is None else written(out, name)
    return x, y, loops.scalar.folding(x.dtype, y and y.dtype, dtype)


def launch(
    loops: CudaLoops,
    spec: Specialisation,
    kernel: Reduce,
    found: Lines,
    splits: int,
    each: int,
    start: Start = (None, 0.0),
) -> Launch:
    """Return the launch of a reduction's kernel over lines, or segments of them.

    Its values are the addresses of the source, of the target, of the scratch memory and
    of the mask or the places of segments; the last two where the kernel has them.
    ``start`` is the slot of the number that a fold starts from, None its first element,
    and what a mean is divided by.
    """
    first, freedom = start
    blocks = folding = cuda_layout.grid(
        found.number // kernel.wide, splits, kernel.group
    )
    if kernel.joining:
        blocks += cuda_layout.grid(found.number, 1, kernel.joining)
    begin = struct.pack("=iiqd", first is not None, folding, READY, freedom)
    parameter = bytes(4 * SLOT) + (first or bytes(SLOT)) + begin
    parameter += found.parameter(splits, each)
    count = 4 if kernel.masked or kernel.segmented else 3 if kernel.joining else 2
    machine = loops.kernel(spec, kernel)
    return Launch(machine, blocks, BLOCK, parameter, (ADDRESS,) * count)


def _with_axes(strides: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a result with the reduced axes put back."""
    rest = iter(strides)
    return tuple(
        0 if i in axes else next(rest) for i in range(len(strides) + len(axes))
    )


def axes_of(axis: Any, rank: int) -> tuple[int, ...]:
    """Return the axes that are meant, counted from the first; None means all.

    Raises
    ------
    TypeError
        They are in something else than a tuple, or one of them is no integer.
    AxisError, ValueError
        There are not so many, or one of them is given twice.

    Examples
    --------
    >>> axes_of((0, -1), 3), axes_of(None, 2), axes_of(0, 0)
    ((0, 2), (0, 1), ())
    """
    if axis is None:
        return tuple(range(rank))
    given = axis if isinstance(axis, tuple) else (axis,)
    if given is not axis and not rank:
        axis_of(axis, 1)  # the one element of no dimensions has one
        return ()
    return normalize_axis_tuple([axis_of(each, rank) for each in given], rank)


def axis_of(axis: Any, rank: int) -> int:
    """Return an axis counted from the first; a truth value is none.

    Raises
    ------
    TypeError
        It is no integer.
    AxisError
        There are not so many.
    """
    if isinstance(axis, bool | np.bool_):
        raise TypeError(f"the axis is {axis}, which is not an integer")
    return normalize_axis_index(axis, rank)
