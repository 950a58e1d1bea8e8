"""A function of core arrays: a NumPy ufunc for each typing, or one thread an index."""

from __future__ import annotations

import threading
from math import prod
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional, memory
from xdev.compile import launch, loops, threads
from xdev.compile.grid import Argument, Grid, cpu
from xdev.ufunc import cuda, cuda_layout, cuda_streams, foreign
from xdev.ufunc.complaints import explain
from xdev.ufunc.cuda_operands import Array, Number, handed, read
from xdev.ufunc.cuda_plan import Result
from xdev.ufunc.generalized.layouts import Axes
from xdev.ufunc.inputs import strong
from xdev.ufunc.kernels import Extents
from xdev.ufunc.kernels.arguments import sizes
from xdev.ufunc.kernels.cuda import launch_of, loaded
from xdev.ufunc.layout import POOLED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.ufunc.cuda_layout import Shape
    from xdev.ufunc.generalized.functions import CoreFunction, Specialisation
    from xdev.ufunc.signatures import Signature

# A function of core arrays on NumPy arrays: a real generalized ufunc for each typing.
#
# Broadcasting, ``out=``, casting, ``axes=``, ``keepdims=`` and overlap are NumPy's
# own.


@final
class CpuCores:
    """The NumPy ufuncs of one function of core arrays.

    Parameters
    ----------
    function : CoreFunction
        The function.
    parallel : bool
        Whether threads share the first loop dimension.
    """

    def __init__(self, function: CoreFunction, *, parallel: bool) -> None:
        self._function, self._parallel = function, parallel
        self._ufuncs: dict[Specialisation, np.ufunc] = {}

    def ufunc(self, made: Specialisation) -> np.ufunc:
        """Return the NumPy ufunc whose one loop is this typing."""
        ufunc = self._ufuncs.get(made)
        if ufunc is None:
            function = self._function
            loop = cpu.inner_loop(
                made.function,
                made.arguments,
                function.layout.places,
                fastmath=function.fastmath,
            )
            ufunc = loops.register(
                loop,
                made.inputs,
                made.outputs,
                name=f"xdev:{function.name}",
                doc=function.function.__doc__ or "",
                identity=None,
                signature=function.layout.text,
            )
            ufunc = self._ufuncs.setdefault(made, ufunc)
        return ufunc

    def __call__(
        self,
        args: Sequence[Any],
        outs: tuple[Any, ...] | None = None,
        *,
        signature: Signature | None = None,
        **keywords: Any,
    ) -> Any:
        """Compute the function of NumPy arrays and numbers.

        Parameters
        ----------
        args : sequence
            One operand an input.
        outs : tuple of arrays and None, optional
            Where the results go; returned themselves.
        signature : (inputs, outputs), optional
            The results' dtype where no array is given for them; with signatures that of
            all that they give.
        **keywords
            ``axes``, ``axis``, ``keepdims``, ``casting``, ``order`` and ``subok``, as
            in NumPy.

        Raises
        ------
        TypeError, ValueError
            As NumPy raises them, with the way out. Nothing was written.
        """
        function = self._function
        dtype = None if signature is None else signature[1][0]
        inputs = function.resolve(args)
        given = outs or (None,) * len(function.layout.outputs)
        dtypes = [getattr(out, "dtype", None) for out in given]
        casting = keywords.get("casting", "same_kind")
        made = function.specialise(inputs, dtypes, dtype, casting)
        ufunc = self.ufunc(made)
        if dtype is not None and function.signatures:  # else NumPy casts safely alone
            keywords["signature"] = (*made.inputs, *made.outputs)
        numbers = strong(args, inputs, function.name, function.labels)
        operands = [_apart(np.asanyarray(x), given) for x in numbers]
        loop: Shape = ()
        if not {"axes", "axis", "keepdims"} & keywords.keys():
            loop, given = self._pooled(operands, given, made)
        try:
            there = all(out is not None for out in given)
            if self._parallel and there and loop and not keywords:
                return self._shared(ufunc, operands, given, loop)
            return ufunc(*operands, out=given, **keywords)
        except (TypeError, ValueError) as error:
            explain(error, outs)
            raise

    def _pooled(
        self, operands: list[Any], given: tuple[Any, ...], made: Specialisation
    ) -> tuple[Shape, tuple[Any, ...]]:
        """Return the loop's shape and the outputs, large new ones from xdev's pool."""
        layout, name = self._function.layout, self._function.name
        shapes = [None if out is None else np.shape(out) for out in given]
        loop, results = layout.shapes([x.shape for x in operands], shapes, name)
        if any(type(x) is not np.ndarray for x in operands):
            return loop, given  # a subclass decides on its results
        return loop, tuple(
            memory.host_array(shape, dtype)
            if out is None and prod(shape) * dtype.itemsize >= POOLED
            else out
            for out, shape, dtype in zip(given, results, made.outputs, strict=True)
        )

    def _shared(
        self,
        ufunc: np.ufunc,
        operands: list[Any],
        given: tuple[Any, ...],
        loop: Shape,
    ) -> Any:
        """Compute in threads, by slices of the first loop dimension."""
        layout = self._function.layout
        whole = [
            np.broadcast_to(x, loop + x.shape[x.ndim - len(own) :])
            for x, own in zip(operands, layout.inputs, strict=True)
        ]
        writes = [
            out[(None,) * (len(loop) + len(own) - out.ndim)]
            for out, own in zip(given, layout.outputs, strict=True)
        ]

        def piece(start: int, stop: int) -> None:
            part = tuple(out[start:stop] for out in writes)
            ufunc(*(x[start:stop] for x in whole), out=part)

        threads.run(piece, loop[0])
        return given if len(given) > 1 else given[0]


def _apart(x: Any, outs: tuple[Any, ...]) -> Any:
    """Return an operand, copied where an output overlaps it.

    NumPy does so, too, but not for an output that is the very same view: it takes the
    loop for one that reads an element before it writes it.
    """
    work: Any = 1  # what NumPy spends, too; the stubs know only 0 and -1
    for out in outs:
        if isinstance(out, np.ndarray) and np.may_share_memory(out, x, max_work=work):
            return x.copy(order="K")
    return x


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
        given = outs or (None,) * len(layout.outputs)
        outputs = [None if x is None else cuda.written(x, name) for x in given]
        arrays = [x for x in (*inputs, *outputs) if isinstance(x, Array)]
        with cuda.on_device(arrays, name):
            values = [x.value if isinstance(x, Number) else x for x in inputs]
            asked = function.resolve(values)
            dtypes = [None if x is None else x.dtype for x in outputs]
            made = function.specialise(asked, dtypes, dtype, casting)
            self._check_casts(inputs, outputs, made, casting)
            with cuda_streams.ordered(arrays):
                return self._run(made, axes, inputs, outputs, given)

    def _check_casts(
        self,
        inputs: Sequence[Array | Number],
        outputs: Sequence[Array | None],
        made: Specialisation,
        casting: str,
    ) -> None:
        """Refuse inputs that may not be cast, and outputs that would have to be."""
        name = self._function.name
        can_cast: Any = np.can_cast  # checks the word itself
        for k, (x, to) in enumerate(zip(inputs, made.inputs, strict=True)):
            weak = isinstance(x, Number) and x.weak
            if not weak and not can_cast(x.dtype, to, casting):
                raise TypeError(
                    f"{name}: input {k} cannot be cast from {x.dtype} to {to} with "
                    f"casting={casting!r}: cast it first, or pass another casting"
                )
        for y, dtype in zip(outputs, made.outputs, strict=True):
            if y is not None and y.dtype != dtype:
                raise TypeError(
                    f"{name}: out is of {y.dtype}, but the function writes {dtype}: "
                    "pass an out of that dtype"
                )

    def _run(
        self,
        made: Specialisation,
        axes: Axes,
        inputs: Sequence[Array | Number],
        outputs: Sequence[Array | None],
        given: Sequence[Any],
    ) -> Any:
        """Launch, after the results that nobody gave are made; return them all."""
        layout, name, nin = self._function.layout, self._function.name, len(inputs)
        there = [y for y in outputs if y is not None]
        reads = [
            _turned(_apart_on_cuda(x, to, there), axes.order(k, len(x.shape), name))
            if isinstance(x, Array)
            else x
            for k, (x, to) in enumerate(zip(inputs, made.inputs, strict=True))
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
                zip(outputs, shapes, made.outputs, strict=True)
            )
        ]
        writes = [self._turned_output(axes, nin + k, y) for k, y in enumerate(results)]
        if prod(loop):
            self._launch(made, loop, reads, writes)
        first = next((x.owner for x in inputs if isinstance(x, Array)), None)
        whole = tuple(
            foreign.from_native(y.owner, first) if x is None else x
            for x, y in zip(given, results, strict=True)
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
        made: Specialisation,
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
        dtypes = [core.dtype for core in made.arguments]
        owners = [x.owner for x in operands]
        numbers = strong(owners, dtypes, function.name, function.names)
        for k, (x, at, core) in enumerate(
            zip(operands, splits, made.arguments, strict=True)
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
            for x, core in zip(operands, made.arguments, strict=True)
        )
        fits = sizes(points, [x for x in operands if isinstance(x, Array)])
        current = _optional.cupy().cuda.runtime.getDevice()
        key = made, kinds, fits, launch.capability(current)
        with self._lock:
            if key not in self._kernels:
                fastmath = function.fastmath
                grid = Grid(made.function, 1, kinds, fastmath, cores=made.arguments)
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
    made = x.cupy().astype(dtype)
    return Array(made, made.data.ptr, made.shape, made.strides, dtype)
