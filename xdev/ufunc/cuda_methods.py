"""Methods of a ufunc on CUDA arrays: reductions, scans, slices, pairs, at indices.

A function of two is taken to be associative, as every parallel reduction must: its
operands keep their order, but not which pairs are folded first.
"""

from __future__ import annotations

import secrets
import struct
from contextlib import ExitStack
from math import prod
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from xdev import _optional, native
from xdev._plain_calls import SLOT
from xdev.compile.cubins import BLOCK, WARP, WARPS, Reduce, Scan, Scatter, computed
from xdev.compile.formulas import is_bfloat16
from xdev.compile.launch import Launch, Value, padded
from xdev.memory.arrays import array_maker
from xdev.ufunc import cuda_layout, cuda_operands, cuda_plan, foreign
from xdev.ufunc.argument_errors import reduction_error
from xdev.ufunc.cuda import new_array, on_device, require, written
from xdev.ufunc.cuda_operands import Array, Number, read
from xdev.ufunc.foreign import is_cuda
from xdev.ufunc.inputs import strong, too_large

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.ufunc.cuda import CudaLoops
    from xdev.ufunc.cuda_layout import Lines
    from xdev.ufunc.signatures import Specialisation

ADDRESS = Value()
BYTE = np.dtype(np.uint8)
READY = secrets.randbits(62) << 1  # marks a segment's fold: no memory holds it so
PLANS = 512  # kept for each function
WHOLE = {int, np.intp, type(None)}  # types of axes: ``1.0`` and ``True`` equal 1 too
Start = tuple[bytes | None, float]
Fold = tuple[Launch, int]  # and the bytes where the segments of lines meet
REAL = (int, float)  # types of corrections: ``1 + 0j`` equals 1 too
KEYS = (int, tuple, str, type, np.dtype, type(None))  # axes and dtypes that are learnt
#: Bytes of a contiguous line that one block scans alone: more are two launches.
ALONE = 2**17


@final
class CudaCall(ExitStack):
    """One call: its device and stream, its result, and memory that lasts for it."""

    def __init__(self, name: str, operands: list[Array], out: Array | None) -> None:
        super().__init__()
        self._name, self._operands, self._target = name, operands, out
        self._kept: list[Any] = []

    def __enter__(self) -> CudaCall:
        target = self._target
        arrays = self._operands + ([] if target is None else [target])
        self.enter_context(on_device(arrays, self._name))
        self.enter_context(cuda_operands.ordered(arrays))
        return self

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

    def scratch(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
        """Return where memory is that lasts for the call, in the stream's order."""
        address: int = self.kept(array_maker()(shape, dtype)).data.ptr
        return address

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
    """``reduce`` of a ufunc on CUDA arrays, by the function's kernels.

    Parameters
    ----------
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
        self._plans: dict[Any, Fold] = {}
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

        ``correction`` is taken off the number that a variance is divided by.
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
            kind = np.dtype(np.intp) if self._places else spec.outputs[0]
            y = ready.result(one if keepdims else left, kind)
            strides = iter(y.strides)
            all_strides = (0 if i in axes else next(strides) for i in range(len(one)))
            whole = y.laid_out(one, y.strides if keepdims else tuple(all_strides))
            if prod(one):
                loop = computed(spec.outputs[0])
                begin = None if first is None else padded(loop.type(first))
                begun = begin, freedom
                plan, x, mask = self._found(spec, x, whole, mask, axes, begun, ready)
                run, nbytes = plan
                values = [x.address, y.address]
                if nbytes:
                    values.append(ready.scratch((nbytes,), BYTE))
                if mask is not None:
                    values += [*([] if nbytes else [0]), mask.address]
                run(values)
                plain = out is None and not keepdims and mask is None
                plain = plain and initial is np._NoValue and x.owner is array  # noqa: SLF001
                if plain and isinstance(correction, REAL):
                    key = axis, dtype, correction
                    self._repeats.learn(key, array, y, run, nbytes)
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

    def _found(
        self,
        spec: Specialisation,
        x: Array,
        y: Array,
        mask: Array | None,
        axes: tuple[int, ...],
        start: Start,
        ready: CudaCall,
    ) -> tuple[Fold, Array, Array | None]:
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
    ) -> Fold:
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
        return run, nbytes

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


@final
class CudaMethods:
    """The methods of a ufunc on CUDA arrays; parameters as of :class:`CudaReduction`.

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
                before = ready.scratch((found.number, splits), loop)
                between = cuda_layout.partial(found, splits, loop.itemsize)
                fold = launch(self._loops, spec, first, between, splits, each)
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
            starts = _optional.cupy().asarray(_viewed(places), dtype=np.int64)
            if starts.ndim != 1 or (starts.size and not within(starts, 0, length)):
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
        name = self._name
        y = written(a, name)
        index = indices if isinstance(indices, tuple) else (indices,)
        parts = [read(part, name) if is_cuda(part) else part for part in index]
        values = () if b is None else (read(b, name),)
        operands = [x for x in (y, *parts, *values) if isinstance(x, Array)]
        with CudaCall(name, operands, None):
            _at_places(self._loops, y, parts, values)


# In place at indices: positions are sorted, one thread works each run.


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
    held = 0 if other is None else other.data.ptr
    scattered = scattering(loops, spec, kernel, positions.size)
    scattered([whole.data.ptr, positions.data.ptr, order.data.ptr, held])
    if whole is not array:
        array[...] = whole


def scattering(
    loops: CudaLoops, spec: Specialisation, kernel: Scatter, n: int
) -> Launch:
    """Return what launches, of the addresses of array, positions, order and values."""
    parameter = bytes(4 * SLOT) + struct.pack("=qq", n, 0)
    machine = loops.kernel(spec, kernel)
    return Launch(machine, -(-n // BLOCK), BLOCK, parameter, (ADDRESS,) * 4)


def _viewed(x: Any) -> Any:
    """Return a CuPy array of an operand's memory; other things come back themselves."""
    if not isinstance(x, Array):
        return x
    return x.owner if type(x.owner) is _optional.cupy().ndarray else x.cupy()


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

    Its values are the addresses of source, target, scratch memory, and mask or
    segments, where the kernel has them. ``start`` is the slot of the number that a fold
    starts from, None its first element, and what a mean is divided by.
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


def axes_of(axis: Any, rank: int) -> tuple[int, ...]:
    """Return the axes that are meant, counted from the first; None means all.

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
    """Return an axis counted from the first; a truth value is none."""
    if isinstance(axis, bool | np.bool_):
        raise TypeError(f"the axis is {axis}, which is not an integer")
    return normalize_axis_index(axis, rank)
