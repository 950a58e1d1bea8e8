"""Methods of a ufunc on CUDA arrays: reductions, scans, slices, pairs, at indices.

A function of two is taken to be associative, as every parallel reduction must: its
operands keep their order, but not which pairs are folded first.
"""

from __future__ import annotations

import secrets
import struct
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
from xdev.ufunc import cuda, foreign, layout
from xdev.ufunc.argument_errors import reduction_error
from xdev.ufunc.cuda_operands import Array, Number, read
from xdev.ufunc.dtypes import strong
from xdev.ufunc.foreign import is_cuda

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.compile.cubins import Template
    from xdev.ufunc.cuda import CudaLoops
    from xdev.ufunc.dtypes import Specialisation
    from xdev.ufunc.layout import Lines, Shape

BYTE = np.dtype(np.uint8)
READY = secrets.randbits(62) << 1  # marks a segment's fold: no memory holds it so
Start = tuple[bytes | None, float]
Fold = tuple[Launch, int]  # and the bytes where the segments of lines meet
KEYS = (int, float, tuple, str, type, np.dtype, type(None))  # of calls that are learnt
#: Bytes of a contiguous line that one block scans alone: more are two launches.
ALONE = 2**17


def straightened(x: Array, order: Sequence[int]) -> Array:
    """Return a contiguous copy with its axes in an order."""
    return Array.of(x.cupy().transpose(order).copy(order="C"))


@final
class CudaMethods:
    """The methods of a ufunc on CUDA arrays, by the function's kernels.

    ``identity`` is the ufunc's; ``statistic``, one of ``cubins.STATISTICS``, says what
    becomes of a sum.
    """

    def __init__(
        self, loops: CudaLoops, identity: int | str | None, statistic: str = "fold"
    ) -> None:
        self._loops, self._name = loops, loops.scalar.name
        self._identity, self._statistic = identity, statistic
        self._plans: dict[Any, Fold] = {}
        self._launches: dict[Any, native.calls.Launches] = {}

    def again(
        self,
        array: Any,
        axis: Any,
        dtype: Any = None,
        correction: float = 0,
        method: str = "reduce",
    ) -> Any:
        """Repeat a call with other values; NotImplemented: there was none such."""
        try:
            launches = self._launches.get(_key(method, axis, dtype, correction))
        except TypeError:  # a list of axes, or what else is no key
            return NotImplemented
        return NotImplemented if launches is None else launches(array)

    def _learn(
        self, key: tuple[Any, ...], array: Any, y: Array, run: Launch, scratch: int = 0
    ) -> None:
        """Have :meth:`again` launch by a plan."""
        plain = all(isinstance(part, KEYS) for part in key)
        if plain and {type(array), type(y.owner)} == {_optional.cupy().ndarray}:
            plan = native.calls.LaunchPlan(run, y.dtype, y.shape, scratch=scratch)
            launches = cuda.remember(self._launches, key, native.calls.Launches(1))
            launches.learn((array,), plan)

    def _operands(
        self, array: Any, out: Any, dtype: Any
    ) -> tuple[Array, Array | None, Specialisation]:
        """Return what is folded, where results go if said, and the fold's typing."""
        cuda.require()
        x = read(array, self._name)
        if isinstance(x, Number):
            raise TypeError(f"{self._name} needs an array, not {type(array).__name__}")
        y = None if out is None else cuda.written(out, self._name)
        return x, y, self._loops.scalar.folding(x.dtype, y and y.dtype, dtype)

    def _result(self, out: Array | None, shape: Shape, dtype: np.dtype[Any]) -> Array:
        """Return where the result goes: the caller's array, or a new one.

        As NumPy's methods do, the kernels cast to whatever ``out`` holds.
        """
        if out is None:
            return Array.of(array_maker()(shape, dtype))
        if out.shape != shape:
            message = f"{self._name}: out has shape {out.shape}, but the result {shape}"
            raise ValueError(message)
        return out

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
        correction: float = 0,
    ) -> Any:
        """Fold along axes, as :meth:`numpy.ufunc.reduce` does.

        ``correction`` is taken off the number that a variance is divided by.
        """
        x, given, spec = self._operands(array, out, self._loop(array, dtype))
        axes, loop = axes_of(axis, len(x.shape)), computed(spec.outputs[0])
        places = self._statistic.startswith("arg")
        if places and axis is not None:
            axis_of(axis, max(len(x.shape), 1))  # one alone
        count = prod(x.shape[i] for i in axes)
        freedom = max(float(count - correction), 0.0)
        if len(axes) > 1 and self._identity is None:
            raise reduction_error("not reorderable", self._name)
        first = self._initial(initial, spec)
        mask = self._mask(where, x.shape)
        if mask is not None and first is None:
            raise reduction_error("where mask", self._name)
        if first is None and not count:
            raise reduction_error("no identity", self._name)
        shape = tuple(
            1 if i in axes else n
            for i, n in enumerate(x.shape)
            if keepdims or i not in axes
        )
        with cuda.placed(self._name, x, mask, given):
            source, mask = cuda.apart(x, [given]), cuda.apart(mask, [given])
            kind = np.dtype(np.intp) if places else spec.outputs[0]
            y = self._result(given, shape, kind)
            if prod(shape):
                begin = None if first is None else padded(loop.type(first))
                left = (
                    s for i, s in enumerate(y.strides) if not (keepdims and i in axes)
                )
                steps = tuple(
                    0 if i in axes else next(left) for i in range(len(x.shape))
                )
                plan, source, mask = self._found(
                    spec, source, mask, axes, (steps, y.dtype), (begin, freedom)
                )
                run, nbytes = plan
                scratch = array_maker()((nbytes,), BYTE) if nbytes else None
                values = [source.address, y.address]
                if scratch is not None or mask is not None:
                    values.append(0 if scratch is None else scratch.data.ptr)
                if mask is not None:
                    values.append(mask.address)
                run(values)
                plain = out is None and not keepdims and mask is None
                if plain and initial is np._NoValue and source.owner is array:  # noqa: SLF001
                    key = _key("reduce", axis, dtype, correction)
                    self._learn(key, array, y, run, nbytes)
            return _returned(y, given, x)

    def _loop(self, array: Any, dtype: Any) -> Any:
        """Return what to fold in instead of what the array and ``out`` say, if so."""
        if self._statistic == "count":
            return np.intp
        if self._statistic.startswith("arg"):
            return array.dtype
        if self._statistic == "fold":
            return dtype
        real = array.dtype.kind == "f" or is_bfloat16(array.dtype)
        return dtype if real else np.float64

    def _found(
        self,
        spec: Specialisation,
        x: Array,
        mask: Array | None,
        axes: Shape,
        target: tuple[Shape, np.dtype[Any]],
        start: Start,
    ) -> tuple[Fold, Array, Array | None]:
        """Return how to reduce, and the operands, copied where their axes need it."""
        here = _optional.cupy().cuda.runtime.getDevice()
        key = spec, x.layout, mask and mask.layout, axes, target, start, here
        plan = self._plans.get(key)
        if plan is not None:
            return plan, x, mask
        steps, dtype = target
        masks = (0,) * len(x.shape) if mask is None else mask.strides
        found = layout.lines(x.shape, axes, x.strides, steps, masks)
        if found is None:  # axes that do not merge: a copy in which they do
            order = [*(i for i in range(len(x.shape)) if i not in axes), *axes]
            x, mask = straightened(x, order), mask and straightened(mask, order)
            axes = tuple(range(len(order) - len(axes), len(order)))
            target = tuple(steps[i] for i in order), dtype
            return self._found(spec, x, mask, axes, target, start)
        loop, itemsize = computed(spec.outputs[0]), x.dtype.itemsize
        plain = mask is None
        group = layout.reducing(found, plain and found.steps[0] == itemsize)
        kernel = Reduce(x.dtype, loop, dtype, group, len(found.extents), not plain)
        wide = found.wide(itemsize) if group <= WARPS and plain else 1
        kernel = kernel._replace(statistic=self._statistic, wide=wide)
        splits, each = found.split(group, kernel.span, itemsize, wide)
        nbytes = 0
        if splits > 1:
            kernel = kernel._replace(joining=WARP if splits <= BLOCK else BLOCK)
            nbytes = found.number * splits * kernel.partial
        fold = self._launch(spec, kernel, found, splits, each, start)
        return cuda.remember(self._plans, key, (fold, nbytes)), x, mask

    def _launch(
        self,
        spec: Specialisation,
        kernel: Reduce,
        found: Lines,
        splits: int,
        each: int,
        start: Start = (None, 0.0),
    ) -> Launch:
        """Return the launch of a reduction's kernel over lines, or segments of them.

        Its values are the addresses of source, target, scratch memory, and mask or
        segments, where the kernel has them. ``start`` is the slot of the number that a
        fold starts from, None its first element, and what a mean is divided by.
        """
        first, freedom = start
        blocks = folding = layout.grid(
            found.number // kernel.wide, splits, kernel.group
        )
        if kernel.joining:
            blocks += layout.grid(found.number, 1, kernel.joining)
        begin = struct.pack("=iiqd", first is not None, folding, READY, freedom)
        parameter = bytes(4 * SLOT) + (first or bytes(SLOT)) + begin
        parameter += found.parameter(splits, each)
        count = 4 if kernel.masked or kernel.segmented else 3 if kernel.joining else 2
        return self._launching(spec, kernel, blocks, parameter, count)

    def _launching(
        self,
        spec: Specialisation,
        kernel: Template,
        blocks: int,
        parameter: bytes,
        count: int,
    ) -> Launch:
        """Return the launch of a kernel of so many addresses."""
        machine = self._loops.kernel(spec, kernel)
        return Launch(machine, blocks, BLOCK, parameter, (Value(),) * count)

    def _initial(self, initial: Any, spec: Specialisation) -> Any:
        """Return what a reduction starts from, None for its first element."""
        if initial is np._NoValue:  # noqa: SLF001
            if self._identity in (None, "reorderable"):
                return None
            return np.asarray(self._identity).astype(spec.outputs[0])[()]
        if initial is None:
            return None
        value = initial.item() if hasattr(initial, "item") else initial
        name, labels = f"{self._name}.reduce", ("initial",)
        return strong((value,), spec.outputs[:1], name, labels)[0]

    def _mask(self, where: Any, shape: Shape) -> Array | None:
        """Return where elements take part; None: everywhere."""
        mask = cuda.mask_of(where, self._name)
        if mask is True:
            return None
        if not isinstance(mask, Array):
            mask = Array.of(_optional.cupy().asarray(mask))
        layout.broadcast([shape, mask.shape], [shape], self._name)
        strides = layout.stretch(mask.shape, mask.strides, shape)
        return mask.laid_out(shape, strides)

    def accumulate(self, array: Any, *, axis: Any, dtype: Any, out: Any) -> Any:
        """Fold along an axis and keep each step, as :meth:`numpy.ufunc.accumulate`."""
        x, given, spec = self._operands(array, out, dtype)
        if not x.shape:
            message = f"{self._name}.accumulate needs an array of one dimension or more"
            raise TypeError(message)
        place, loop = axis_of(axis, len(x.shape)), computed(spec.outputs[0])
        with cuda.placed(self._name, x, given):
            source = cuda.apart(x, [given])
            y = self._result(given, x.shape, spec.outputs[0])
            if not prod(x.shape):
                return _returned(y, given, x)
            found, itemsize = lines(source, place, y.strides), x.dtype.itemsize
            group, rank = layout.scanning(found), len(found.extents)
            kernel = Scan(x.dtype, loop, y.dtype, group, rank)
            first = Reduce(x.dtype, loop, loop, group, rank)
            splits, each, before = 1, found.length, None
            if group == 1 or found.length * itemsize > ALONE:
                splits, each = found.split(
                    group, max(kernel.span, first.span), itemsize
                )
            values = [source.address, y.address]
            if splits > 1:
                before = array_maker()((found.number, splits), loop)
                between = found.partial(splits, loop.itemsize)
                fold = self._launch(spec, first, between, splits, each)
                fold([source.address, before.data.ptr])
                values.append(before.data.ptr)
            parameter = bytes(3 * SLOT) + found.parameter(splits, each)
            blocks = layout.grid(found.number, splits, group)
            scan = self._launching(spec, kernel, blocks, parameter, len(values))
            scan(values)
            if out is None and before is None and source.owner is array:
                self._learn(_key("accumulate", axis, dtype), array, y, scan)
            return _returned(y, given, x)

    def reduceat(
        self, array: Any, *, indices: Any, axis: Any, dtype: Any, out: Any
    ) -> Any:
        """Fold slices, as :meth:`numpy.ufunc.reduceat` does."""
        x, given, spec = self._operands(array, out, dtype)
        axis = axis_of(axis, len(x.shape))
        loop, length = computed(spec.outputs[0]), x.shape[axis]
        places = read(indices, self._name) if is_cuda(indices) else indices
        with cuda.placed(self._name, x, places, given):
            starts = _optional.cupy().asarray(_viewed(places), dtype=np.int64)
            if starts.ndim != 1 or (starts.size and not within(starts, 0, length)):
                raise IndexError(
                    f"{self._name}.reduceat: indices must be one list of places in 0 "
                    f"to {length - 1}, the extent of axis {axis} less one"
                )
            count = starts.size
            shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
            source = cuda.apart(x, [given])
            y = self._result(given, shape, spec.outputs[0])
            if prod(shape):
                # The segments are the last of the dimensions that count lines.
                target = tuple(0 if i == axis else s for i, s in enumerate(y.strides))
                found = lines(source, axis, target)
                found = found._replace(
                    extents=(*found.extents, count),
                    source=(*found.source, 0),
                    target=(*found.target, y.strides[axis]),
                    mask=(*found.mask, 0),
                )
                group = 1 if length <= count * layout.SHORT else WARP
                kernel = Reduce(x.dtype, loop, y.dtype, group, len(found.extents))
                kernel = kernel._replace(segmented=True)
                fold = self._launch(spec, kernel, found, 1, length)
                fold([source.address, y.address, 0, starts.data.ptr])
            return _returned(y, given, x)

    def outer(self, a: Any, b: Any, keywords: dict[str, Any]) -> Any:
        """Apply to every pair of elements, as :meth:`numpy.ufunc.outer` does."""
        one, two = read(a, self._name), read(b, self._name)
        if isinstance(one, Array) and isinstance(two, Array):
            more = (0,) * len(two.shape)
            shape = one.shape + (1,) * len(more)
            one = one.laid_out(shape, one.strides + more)
        return self._loops((one, two), **keywords)

    def at(self, a: Any, indices: Any, b: Any) -> None:
        """Work in place at indices, as :meth:`numpy.ufunc.at` does."""
        cuda.require()
        y = cuda.written(a, self._name)
        index = indices if isinstance(indices, tuple) else (indices,)
        parts = [read(part, self._name) if is_cuda(part) else part for part in index]
        value = None if b is None else read(b, self._name)
        with cuda.placed(self._name, y, *parts, value):
            self._at_places(y, parts, value)

    def _at_places(
        self, y: Array, parts: Sequence[Any], value: Array | Number | None
    ) -> None:
        """Sort the positions; one thread works each run of equal ones."""
        cupy, array, name = _optional.cupy(), _viewed(y), f"{self._name}.at"
        places = _places(array, [_viewed(part) for part in parts], name)
        given = value.value if isinstance(value, Number) else value
        scalar = self._loops.scalar
        dtypes = scalar.resolve((array,) if value is None else (array, given))
        spec = scalar.specialise(dtypes)
        if len(spec.outputs) != 1 or not np.can_cast(
            spec.outputs[0], y.dtype, "same_kind"
        ):
            results = ", ".join(map(str, spec.outputs))
            raise TypeError(f"{name}: its result of {results} cannot go to {y.dtype}")
        other, dtype = None, None
        if value is not None:
            other = _viewed(value)
            if isinstance(value, Number):
                taken = spec.inputs[1:]
                (number,) = strong((given,), taken, name, scalar.labels[1:])
                other = cupy.asarray(number, taken[0])
            other = cupy.ascontiguousarray(cupy.broadcast_to(other, places.shape))
            dtype = other.dtype
        if not places.size:
            return
        positions = places.ravel()
        order = cupy.argsort(positions)  # stable
        positions, whole = positions[order], cupy.ascontiguousarray(array)
        kernel = Scatter(y.dtype, dtype, spec.inputs, spec.outputs[0])
        held = 0 if other is None else other.data.ptr
        parameter = bytes(4 * SLOT) + struct.pack("=qq", positions.size, 0)
        blocks = -(-positions.size // BLOCK)
        run = self._launching(spec, kernel, blocks, parameter, 4)
        run([whole.data.ptr, positions.data.ptr, order.data.ptr, held])
        if whole is not array:
            array[...] = whole


def _key(method: str, axis: Any, dtype: Any, correction: float = 0) -> tuple[Any, ...]:
    """Return what tells calls apart: 1, 1.0 and True are equal, and one is an axis."""
    kinds = tuple(map(type, axis)) if type(axis) is tuple else type(axis)
    return method, axis, kinds, dtype, correction, type(correction)


def _returned(y: Array, out: Array | None, like: Array) -> Any:
    """Return what the caller gets, once all is launched."""
    return foreign.from_native(y.owner, like.owner) if out is None else y.owner


def lines(x: Array, axis: int, target: Shape) -> Lines:
    """Return the lines of an array along one axis, without a mask."""
    rank = len(x.shape)
    found = layout.lines(x.shape, (axis,), x.strides, target, (0,) * rank)
    assert found is not None  # noqa: S101 - one axis
    return found


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
    cupy, axis = _optional.cupy(), 0
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
                    raise IndexError(
                        f"{name}: an index is out of bounds for axis {axis}"
                    )
                axis += 1
        moved.append(part)
    numbers = cupy.arange(array.size, dtype=np.int64).reshape(array.shape)
    return numbers[tuple(moved)]


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
