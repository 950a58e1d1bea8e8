"""Functions over a grid on CUDA arrays: one launch on CuPy's current stream.

Kernels have a thread for each point, functions of core arrays one for each loop index.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import partial
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional, native
from xdev._plain_calls import BYTES, LIMIT
from xdev.compile import launch
from xdev.compile.grid import (
    HEADER,
    LENGTH,
    WORD,
    Argument,
    Grid,
    cuda as compiler,
    packer,
)
from xdev.compile.launch import Launch, Value
from xdev.ufunc import (
    cuda,
    cuda_layout,
    cuda_operands,
    foreign,
    kernel_arguments as arguments,
)
from xdev.ufunc.cuda_operands import Array, Number, handed, read
from xdev.ufunc.cuda_plan import Result
from xdev.ufunc.foreign import NUMBERS
from xdev.ufunc.inputs import strong
from xdev.ufunc.kernel_arguments import Extents, sizes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.ufunc.cuda_layout import Shape
    from xdev.ufunc.generalized import CoreFunction, CoreSpecialisation
    from xdev.ufunc.kernel_arguments import Layout
    from xdev.ufunc.kernel_functions import KernelFunction
    from xdev.ufunc.signatures import Signature


def run(
    function: KernelFunction, extents: Extents, args: Sequence[Any]
) -> native.calls.LaunchPlan | None:
    """Run for every point.

    Parameters
    ----------
    function : KernelFunction
        The kernel's.
    extents : Extents
        The points.
    args : sequence
        CUDA arrays of one device, of any library, and numbers.

    Returns
    -------
    LaunchPlan or None
        What another such call would launch. None where nothing ran, accesses are
        checked, or arrays are of other libraries.

    Raises
    ------
    TypeError, ValueError, OverflowError
        The arguments are wrong, or the function cannot be compiled for them.
    DeviceMismatchError
        Arrays of two devices. Whatever is raised, nothing was written.
    IndexError
        An access was out of bounds; only under ``XDEV_DEBUG=1``, where a call waits
        until its work is done.
    """
    indices, name = extents.dimensions, function.name
    names = function.split(indices, len(args))
    operands = [read(x, name, label) for x, label in zip(args, names, strict=True)]
    arrays = [x for x in operands if isinstance(x, Array)]
    with cuda.on_device(arrays, name) as place:
        fits = sizes(extents, arrays)
        key = "cuda", place, *fits, *map(arguments.key, operands)
        plan = function.plan(key, indices, operands, partial(loaded, fits=fits))
        dtypes = [kind.dtype for kind in plan.kinds]
        values = handed(operands, dtypes, name, names)
        arguments.begin_writes(args, operands, names, name, plan.writes)
        if not extents.size:
            return None
        report = _optional.cupy().zeros(LENGTH, "q") if plan.checked else None
        address = 0 if report is None else report.data.ptr
        work = launch_of(plan.machine, plan.kinds, extents, operands, address)
        with cuda_operands.ordered(arrays):
            work(values)
        if report is not None:
            function.refuse_reported(report.tolist(), indices)
            return None
        array = _optional.cupy().ndarray
        if not all(type(x) is array or isinstance(x, NUMBERS) for x in args):
            return None
        encoders = tuple(
            Number.encoder(dtype) if value.kind == BYTES else None
            for value, dtype in zip(work.values, dtypes, strict=True)
        )
        return native.calls.LaunchPlan(work, encoders=encoders)


def loaded(grid: Grid, *, fits: tuple[bool, bool]) -> Any:
    """Return a function's kernel on the current device.

    Parameters
    ----------
    grid : Grid
        The function and its types.
    fits : (bool, bool)
        As :func:`sizes` returns it.

    Raises
    ------
    TypeError
        It cannot be compiled, or CUDA hands over no memory of that size.
    """
    cuda.require()
    if grid.words * WORD > LIMIT:
        raise TypeError(
            f"{grid.function.__name__} has too many arguments for CUDA: their "
            f"addresses, shapes and strides take {grid.words * WORD} bytes of at "
            f"most {LIMIT}"
        )
    here = launch.capability(_optional.cupy().cuda.runtime.getDevice())
    narrow, small = fits
    return launch.Kernel(*compiler.cubin(grid, here, narrow=narrow, small=small))


def launch_of(
    kernel: Any,
    kinds: tuple[Argument, ...],
    extents: Extents,
    operands: Sequence[Array | Number],
    report: int = 0,
) -> Launch:
    """Return the launch over a grid: all of it but addresses and numbers."""
    values = tuple(
        Value() if isinstance(x, Array) else Value.number(x.value, kind.dtype)
        for x, kind in zip(operands, kinds, strict=True)
    )
    slots = (0 if isinstance(x, Array) else b"" for x in operands)
    arrays = (x for x in operands if isinstance(x, Array))
    layouts = [number for x in arrays for number in (*x.shape, *x.strides)]
    memory = packer(kinds)(*extents.shape, report, *slots, *layouts)
    return Launch(kernel, *extents.launch, memory, values, first=HEADER * WORD)


# ``axes=``, ``axis=`` and ``keepdims=`` of a generalized ufunc, as NumPy has them.


@final
@dataclass(frozen=True, slots=True)
class Axes:
    """Where the core dimensions of each operand are; they count from the end.

    Parameters
    ----------
    operands : tuple of tuple of int
        For each operand the axes of its core dimensions.
    kept : bool
        Whether an output without core dimensions keeps the input's, with length 1.
    """

    operands: tuple[Shape, ...]
    kept: bool = False

    @classmethod
    def read(
        cls,
        layout: Layout,
        name: str,
        axes: Any = None,
        axis: Any = None,
        keepdims: bool = False,
    ) -> Axes:
        """Return what a call's keywords say.

        Raises
        ------
        TypeError
            They do not fit the core dimensions, or each other.
        """
        counts = [len(own) for own in layout.operands]
        nin = len(layout.inputs)
        if keepdims and (any(counts[nin:]) or len(set(counts[:nin])) > 1):
            raise TypeError(
                f"{name}: keepdims needs inputs of as many core dimensions each, and "
                f"outputs without any, not {layout.text}"
            )
        if axis is not None:
            if axes is not None or set(counts) - {0, 1}:
                message = f"{name}: axis needs one core dimension, and no axes beside"
                raise TypeError(message)
            core_axes = [(axis,) * count for count in counts]
        elif axes is None:
            core_axes = [tuple(range(-count, 0)) for count in counts]
        else:
            core_axes = _listed(axes, counts, nin, name)
        if keepdims:
            core_axes[nin:] = core_axes[:1] * (len(counts) - nin)
        return cls(tuple(tuple(map(index, one)) for one in core_axes), bool(keepdims))

    def order(self, k: int, ndim: int, name: str) -> Shape:
        """Return the axes of an operand, those of its core dimensions last.

        Raises
        ------
        ValueError
            It has not so many, or one is named twice.
        """
        own = tuple(axis + ndim * (axis < 0) for axis in self.operands[k])
        if any(not 0 <= axis < ndim for axis in own) or len(set(own)) < len(own):
            raise ValueError(
                f"{name}: operand {k} of {ndim} axes has no axes {self.operands[k]}"
            )
        return (*(axis for axis in range(ndim) if axis not in own), *own)


def _listed(axes: Any, counts: Sequence[int], nin: int, name: str) -> list[Any]:
    """Return one tuple an operand."""
    if not isinstance(axes, list):
        raise TypeError(f"{name}: axes is a list with a tuple of axes for each operand")
    core_axes = [axis if isinstance(axis, tuple) else (axis,) for axis in axes]
    if len(core_axes) == nin and not any(counts[nin:]):
        core_axes += [()] * (len(counts) - nin)
    if [len(one) for one in core_axes] != list(counts):
        message = f"{name}: axes has {axes}, but core dimensions are {tuple(counts)}"
        raise TypeError(message)
    return core_axes


# A function of core arrays on CUDA arrays: one thread for each loop index.


@final
class CudaCores:
    """The CUDA kernels of one function of core arrays.

    Parameters
    ----------
    function : CoreFunction
        The function.
    """

    def __init__(self, function: CoreFunction) -> None:
        self._function = function
        self._lock = threading.Lock()  # guards the dict below: a kernel is made once
        self._kernels: dict[Any, Any] = {}

    def __call__(
        self,
        args: Sequence[Any],
        outs: tuple[Any, ...] | None = None,
        *,
        signature: Signature | None = None,
        casting: str = "same_kind",
        **keywords: Any,
    ) -> Any:
        """Compute the function of arrays and numbers on their device.

        Parameters
        ----------
        args : sequence
            CUDA arrays of one device, of any library, and numbers.
        outs : tuple of arrays and None, optional
            Where the results go; written in place and returned themselves.
        signature : (inputs, outputs), optional
            The results' dtype where no array is given for them; with signatures that of
            all that they give.
        casting : str
            What casts of inputs are allowed; outputs have the typing's dtypes.
        **keywords
            ``axes``, ``axis`` and ``keepdims``.

        Returns
        -------
        array or tuple of arrays
            ``outs``, or new arrays of the first array's library.

        Raises
        ------
        TypeError, ValueError
            The arguments are wrong, or the function cannot be compiled for them.
        DeviceMismatchError
            Arrays of two devices. Whatever is raised, nothing was written.
        """
        cuda.require()
        function, name = self._function, self._function.name
        dtype = None if signature is None else signature[1][0]
        layout = function.layout
        axes = Axes.read(layout, name, **keywords)
        named = zip(args, function.labels, strict=True)
        inputs = [read(x, name, label) for x, label in named]
        results = outs or (None,) * len(layout.outputs)
        outputs = [None if x is None else cuda.written(x, name) for x in results]
        arrays = [x for x in (*inputs, *outputs) if isinstance(x, Array)]
        with cuda.on_device(arrays, name):
            values = [x.value if isinstance(x, Number) else x for x in inputs]
            asked = function.resolve(values)
            dtypes = [None if x is None else x.dtype for x in outputs]
            typing = function.specialise(asked, dtypes, dtype, casting)
            self._check_casts(inputs, outputs, typing, casting)
            with cuda_operands.ordered(arrays):
                return self._run(typing, axes, inputs, outputs, results)

    def _check_casts(
        self,
        inputs: Sequence[Array | Number],
        outputs: Sequence[Array | None],
        typing: CoreSpecialisation,
        casting: str,
    ) -> None:
        """Refuse inputs that may not be cast, and outputs that would have to be."""
        name = self._function.name
        can_cast: Any = np.can_cast  # checks the word itself
        for k, (x, to) in enumerate(zip(inputs, typing.inputs, strict=True)):
            weak = isinstance(x, Number) and x.weak
            if not weak and not can_cast(x.dtype, to, casting):
                raise TypeError(
                    f"{name}: input {k} cannot be cast from {x.dtype} to {to} with "
                    f"casting={casting!r}: cast it first, or pass another casting"
                )
        for y, dtype in zip(outputs, typing.outputs, strict=True):
            if y is not None and y.dtype != dtype:
                raise TypeError(
                    f"{name}: out is of {y.dtype}, but the function writes {dtype}: "
                    "pass an out of that dtype"
                )

    def _run(
        self,
        typing: CoreSpecialisation,
        axes: Axes,
        inputs: Sequence[Array | Number],
        outputs: Sequence[Array | None],
        owners: Sequence[Any],
    ) -> Any:
        """Launch, after the results that nobody gave are made; return them all."""
        layout, name, nin = self._function.layout, self._function.name, len(inputs)
        there = [y for y in outputs if y is not None]
        reads = [
            _turned(_apart_on_cuda(x, to, there), axes.order(k, len(x.shape), name))
            if isinstance(x, Array)
            else x
            for k, (x, to) in enumerate(zip(inputs, typing.inputs, strict=True))
        ]
        written = [
            y if y is None else self._turned_output(axes, nin + k, y).shape
            for k, y in enumerate(outputs)
        ]
        shapes = [x.shape if isinstance(x, Array) else () for x in reads]
        loop, shapes = layout.shapes(shapes, written, name)
        results = [
            self._made(axes, nin + k, shape, dtype) if y is None else y
            for k, (y, shape, dtype) in enumerate(
                zip(outputs, shapes, typing.outputs, strict=True)
            )
        ]
        writes = [self._turned_output(axes, nin + k, y) for k, y in enumerate(results)]
        if prod(loop):
            self._launch(typing, loop, reads, writes)
        first = next((x.owner for x in inputs if isinstance(x, Array)), None)
        whole = tuple(
            foreign.from_native(y.owner, first) if x is None else x
            for x, y in zip(owners, results, strict=True)
        )
        return whole if len(whole) > 1 else whole[0]

    def _turned_output(self, axes: Axes, k: int, y: Array) -> Array:
        """Return an output with its core dimensions last, those kept dropped."""
        name = self._function.name
        turned = _turned(y, axes.order(k, len(y.shape), name))
        if not axes.kept:
            return turned
        loops = len(y.shape) - len(axes.operands[k])
        if any(n != 1 for n in turned.shape[loops:]):
            message = f"{name}: with keepdims, out has length 1 along core dimensions"
            raise ValueError(message)
        return turned.laid_out(turned.shape[:loops], turned.strides[:loops])

    def _made(self, axes: Axes, k: int, shape: Shape, dtype: np.dtype[Any]) -> Array:
        """Return a new output; ``shape`` has its core dimensions last."""
        if axes.kept:
            shape += (1,) * len(axes.operands[k])
        order = axes.order(k, len(shape), self._function.name)
        placed = tuple(shape[order.index(axis)] for axis in range(len(shape)))
        straight = tuple(range(len(shape)))
        return cuda.new_array(Result(placed, straight, dtype))

    def _launch(
        self,
        typing: CoreSpecialisation,
        loop: Shape,
        reads: Sequence[Array | Number],
        writes: Sequence[Array],
    ) -> None:
        function, operands = self._function, [*reads, *writes]
        splits = [
            len(x.shape) - len(own) if isinstance(x, Array) else 0
            for x, own in zip(operands, function.layout.operands, strict=True)
        ]
        outer = [
            cuda_layout.stretch(x.shape[:at], x.strides[:at], loop)
            for x, at in zip(operands, splits, strict=True)
            if isinstance(x, Array)
        ]
        # Outputs first: theirs is the order of the loop dimensions.
        count = len(writes)
        extents, steps = cuda_layout.collapse(loop, outer[-count:] + outer[:-count])
        following = iter(steps[count:] + steps[:count])
        dtypes = [core.dtype for core in typing.arguments]
        owners = [x.owner for x in operands]
        numbers = strong(owners, dtypes, function.name, function.names)
        for k, (x, at, core) in enumerate(
            zip(operands, splits, typing.arguments, strict=True)
        ):
            if isinstance(x, Number):
                operands[k] = Number(core.dtype.type(numbers[k]))
                continue
            shape, strides = x.shape[at:], x.strides[at:]
            if core.ndim and not shape:  # an array of one element
                shape, strides = (1,), (core.dtype.itemsize,)
            operands[k] = x.laid_out(extents + shape, next(following) + strides)
        points = Extents.read(prod(loop), function.name)
        kinds = tuple(
            Argument(core.dtype, len(x.shape) if isinstance(x, Array) else None)
            for x, core in zip(operands, typing.arguments, strict=True)
        )
        fits = sizes(points, [x for x in operands if isinstance(x, Array)])
        current = _optional.cupy().cuda.runtime.getDevice()
        key = typing, kinds, fits, launch.capability(current)
        with self._lock:
            if key not in self._kernels:
                fastmath = function.fastmath
                grid = Grid(typing.function, 1, kinds, fastmath, cores=typing.arguments)
                self._kernels[key] = loaded(grid, fits=fits)
        run = launch_of(self._kernels[key], kinds, points, operands)
        run(handed(operands, dtypes, function.name, function.names))


def _turned(x: Array, order: Shape) -> Array:
    """Return an array with its axes in an order."""
    shape = tuple(x.shape[axis] for axis in order)
    return x.laid_out(shape, tuple(x.strides[axis] for axis in order))


def _apart_on_cuda(x: Array, dtype: np.dtype[Any], writes: Sequence[Array]) -> Array:
    """Return an input of a dtype, copied where it has another or an output meets it."""
    spoilt = any(x.reach.meets(y.reach, y.address - x.address) for y in writes)
    if x.dtype == dtype and not spoilt:
        return x
    copied = x.cupy().astype(dtype)
    return Array(copied, copied.data.ptr, copied.shape, copied.strides, dtype)
