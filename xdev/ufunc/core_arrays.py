"""Functions of core arrays: their dimensions and types, and calls on CUDA arrays."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from xdev import _optional
from xdev.compile import launch
from xdev.compile.grid import Argument, Grid
from xdev.ufunc import cuda, cuda_layout, cuda_operands, foreign
from xdev.ufunc.cuda_layout import Shape, broadcast
from xdev.ufunc.cuda_operands import Array, Number, handed, read
from xdev.ufunc.cuda_plan import Result
from xdev.ufunc.inputs import strong
from xdev.ufunc.kernels import Extents, launch_of, loaded
from xdev.ufunc.signatures import dtype_of_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.ufunc.generalized import CoreFunction, CoreSpecialisation
    from xdev.ufunc.signatures import Signature

# Core dimensions: ``"(n),(n)->()"``, and the shapes that they stand for.

NAME = r"\s*(?:[A-Za-z_]\w*|[1-9]\d*)\s*"
OPERAND = rf"\s*\(\s*(?:{NAME}(?:,{NAME})*)?\)\s*"
WHOLE = re.compile(rf"({OPERAND}(?:,{OPERAND})*)->({OPERAND}(?:,{OPERAND})*)")


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """The core dimensions of each operand, by name; a number is a fixed length.

    Parameters
    ----------
    text : str
        The signature.
    inputs, outputs : tuple of tuple of str
        The names.
    """

    text: str
    inputs: tuple[tuple[str, ...], ...]
    outputs: tuple[tuple[str, ...], ...]

    @classmethod
    def parse(cls, text: object) -> Layout:
        """Read a signature.

        Raises
        ------
        TypeError
            It is none.

        Examples
        --------
        >>> Layout.parse("(m,n),(n)->(m)").inputs
        (('m', 'n'), ('n',))
        """
        match = WHOLE.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise TypeError(
                f"{text!r} is not a layout of core dimensions: write one pair of "
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

    @property
    def names(self) -> tuple[str, ...]:
        """Each name once, as NumPy numbers them."""
        return tuple(dict.fromkeys(n for names in self.operands for n in names))

    @property
    def places(self) -> tuple[Shape, ...]:
        """For each operand the numbers of its core dimensions."""
        return tuple(tuple(map(self.names.index, own)) for own in self.operands)

    def shapes(
        self, inputs: Sequence[Shape], outputs: Sequence[Shape | None], name: str
    ) -> tuple[Shape, list[Shape]]:
        """Return the loop shape, and the shape of every output.

        Parameters
        ----------
        inputs : sequence of tuple of int
            The inputs' shapes, core dimensions last.
        outputs : sequence of tuple of int and None
            Those of the outputs that are given.
        name : str
            The function's, for errors.

        Raises
        ------
        ValueError
            They do not fit, or the length of an output's core dimension is unknown.
        """
        lengths: dict[str, int] = {n: int(n) for n in self.names if n.isdigit()}
        loops: list[Shape | None] = []
        for k, (shape, own) in enumerate(
            zip((*inputs, *outputs), self.operands, strict=True)
        ):
            if shape is None:
                loops.append(None)
                continue
            if len(shape) < len(own):
                raise ValueError(
                    f"{name}: operand {k} of shape {shape} lacks core dimensions: it "
                    f"has ({','.join(own)}) in {self.text}"
                )
            split = len(shape) - len(own)
            loops.append(shape[:split])
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
        count = len(self.inputs)
        reads = [shape for shape in loops[:count] if shape is not None]
        most = max(map(len, reads), default=0)  # unlike other ufuncs' outputs, these
        writes = [  # may lack leading dimensions of length 1
            (1,) * (most - len(shape)) + shape
            for shape in loops[count:]
            if shape is not None
        ]
        loop = broadcast(reads, writes, name)
        return loop, [loop + tuple(lengths[n] for n in own) for own in self.outputs]


# Explicit types of core arrays, as Numba writes them.

#: For each operand the dtype, and the number of axes; None for a number.
Types = tuple[tuple[np.dtype[Any], int | None], ...]
CORE = re.compile(r"\s*(\w+)\s*(?:\[([:,\s1]*)\])?\s*")
CORES = re.compile(r"\s*(?:void\s*)?\((.*)\)\s*|([^()]*,[^()]*)", re.DOTALL)


def parse_cores(signature: object, layout: Layout) -> Types:
    """Turn ``"void(float32[:], float32[:], float32[:])"`` into types.

    Parameters
    ----------
    signature : str or Numba signature
        The types of the inputs, then of the outputs.
    layout : Layout
        Their core dimensions.

    Raises
    ------
    TypeError
        It is none, or does not fit the core dimensions.

    Examples
    --------
    >>> parse_cores("void(float32[:], int64, float32[:])", Layout.parse("(n),()->(n)"))
    ((dtype('float32'), 1), (dtype('int64'), None), (dtype('float32'), 1))
    """
    types = _operands(signature)
    operands = layout.operands
    if len(types) != len(operands):
        raise TypeError(
            f"{signature} has {len(types)} types, but {layout.text} has "
            f"{len(operands)} operands"
        )
    for k, ((_, ndim), own) in enumerate(zip(types, operands, strict=True)):
        output = k >= len(layout.inputs)
        fits = ndim == len(own) or (not own and (ndim == 1 or not output))
        if ndim is None and (own or output):
            fits = False
        if not fits:
            raise TypeError(
                f"{signature}: operand {k} has the core dimensions ({','.join(own)}) "
                f"in {layout.text}, so that its type is an array of "
                f"{max(len(own), 1)} axes"
            )
    return types


def _operands(signature: object) -> Types:
    taken: Any = getattr(signature, "args", signature)
    if isinstance(taken, tuple):
        kinds = [(getattr(x, "dtype", x), getattr(x, "ndim", None)) for x in taken]
        return tuple(
            (dtype_of_name(str(name), signature), ndim) for name, ndim in kinds
        )
    whole = CORES.fullmatch(taken) if isinstance(taken, str) else None
    if whole is None:
        raise TypeError(
            f"{signature!r} is not a signature: write it as Numba does, "
            "'void(float32[:], float32[:], float32[:])'"
        )
    types = []
    for text in re.split(r",(?![^\[]*\])", whole[1] or whole[2]):
        match = CORE.fullmatch(text)
        if match is None:
            raise TypeError(f"{signature}: {text.strip()!r} is not a type")
        name, axes = match.groups()
        ndim = None if axes is None else axes.count(",") + 1
        types.append((dtype_of_name(name, signature), ndim))
    return tuple(types)


# ``axes=``, ``axis=`` and ``keepdims=`` of a generalized ufunc, as NumPy has them.


def axes_of_cores(
    layout: Layout,
    name: str,
    axes: Any = None,
    axis: Any = None,
    keepdims: bool = False,
) -> list[Shape]:
    """Return the axes of each operand's core dimensions, as a call's keywords say.

    Where they are kept, those of an output are the input's, with length 1.

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
        listed = axes if isinstance(axes, list) else []
        core_axes = [one if isinstance(one, tuple) else (one,) for one in listed]
        if len(core_axes) == nin and not any(counts[nin:]):
            core_axes += [()] * (len(counts) - nin)
        if [len(one) for one in core_axes] != counts:
            raise TypeError(
                f"{name}: axes is a list with a tuple of axes for each operand, of "
                f"{counts} core dimensions, not {axes}"
            )
    if keepdims:
        core_axes[nin:] = core_axes[:1] * (len(counts) - nin)
    return [tuple(map(index, one)) for one in core_axes]


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
        axes = axes_of_cores(layout, name, **keywords)
        kept = bool(keywords.get("keepdims"))
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
                return self._run(typing, axes, inputs, outputs, results, kept=kept)

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
        axes: list[Shape],
        inputs: Sequence[Array | Number],
        outputs: Sequence[Array | None],
        owners: Sequence[Any],
        *,
        kept: bool,
    ) -> Any:
        """Launch, after the results that nobody gave are made; return them all."""
        layout, nin = self._function.layout, len(inputs)
        there = [y for y in outputs if y is not None]
        reads = [
            self._turned(_apart_on_cuda(x, to, there), own)
            if isinstance(x, Array)
            else x
            for x, to, own in zip(inputs, typing.inputs, axes[:nin], strict=True)
        ]
        written = [
            None if y is None else self._turned(y, own, kept=kept).shape
            for y, own in zip(outputs, axes[nin:], strict=True)
        ]
        shapes = [x.shape if isinstance(x, Array) else () for x in reads]
        loop, shapes = layout.shapes(shapes, written, self._function.name)
        results = [
            self._made(own, shape + ((1,) * len(own) if kept else ()), dtype)
            if y is None
            else y
            for y, own, shape, dtype in zip(
                outputs, axes[nin:], shapes, typing.outputs, strict=True
            )
        ]
        writes = [
            self._turned(y, own, kept=kept)
            for y, own in zip(results, axes[nin:], strict=True)
        ]
        if prod(loop):
            self._launch(typing, loop, reads, writes)
        first = next((x.owner for x in inputs if isinstance(x, Array)), None)
        whole = tuple(
            foreign.from_native(y.owner, first) if x is None else x
            for x, y in zip(owners, results, strict=True)
        )
        return whole if len(whole) > 1 else whole[0]

    def _order(self, own: Shape, ndim: int) -> Shape:
        """Return the axes of an operand, those of its core dimensions last."""
        last = normalize_axis_tuple(own, ndim, self._function.name)
        return (*(axis for axis in range(ndim) if axis not in last), *last)

    def _turned(self, x: Array, own: Shape, *, kept: bool = False) -> Array:
        """Return an array with its core dimensions last; without them if kept."""
        order = self._order(own, len(x.shape))
        shape = tuple(x.shape[axis] for axis in order)
        strides = tuple(x.strides[axis] for axis in order)
        if kept:
            loops = len(shape) - len(own)
            if shape[loops:] != (1,) * len(own):
                name = self._function.name
                message = f"{name}: with keepdims, out has length 1 along core axes"
                raise ValueError(message)
            shape, strides = shape[:loops], strides[:loops]
        return x.laid_out(shape, strides)

    def _made(self, own: Shape, shape: Shape, dtype: np.dtype[Any]) -> Array:
        """Return a new output; ``shape`` has its core dimensions last."""
        order = self._order(own, len(shape))
        straight = tuple(range(len(shape)))
        placed = tuple(shape[order.index(axis)] for axis in straight)
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
        narrow = points.narrow([x for x in operands if isinstance(x, Array)])
        current = _optional.cupy().cuda.runtime.getDevice()
        key = typing, kinds, narrow, launch.capability(current)
        with self._lock:
            if key not in self._kernels:
                fastmath = function.fastmath
                grid = Grid(typing.function, 1, kinds, fastmath, cores=typing.arguments)
                self._kernels[key] = loaded(grid, narrow=narrow)
        run = launch_of(self._kernels[key], kinds, points, operands)
        run(handed(operands, dtypes, function.name, function.names))


def _apart_on_cuda(x: Array, dtype: np.dtype[Any], writes: Sequence[Array]) -> Array:
    """Return an input of a dtype, copied where it has another or an output meets it."""
    spoilt = any(x.reach.meets(y.reach, y.address - x.address) for y in writes)
    if x.dtype == dtype and not spoilt:
        return x
    copied = x.cupy().astype(dtype)
    return Array(copied, copied.data.ptr, copied.shape, copied.strides, dtype)
