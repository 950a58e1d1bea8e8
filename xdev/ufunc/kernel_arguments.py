"""What kernels and functions of core arrays take: extents, dimensions, arguments."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.compile.grid import DIMENSIONS, Argument
from xdev.ufunc import foreign
from xdev.ufunc.argument_errors import PAGE
from xdev.ufunc.cuda_layout import broadcast, contiguous
from xdev.ufunc.cuda_operands import Array, Number
from xdev.ufunc.foreign import NUMBERS
from xdev.ufunc.inputs import is_dask
from xdev.ufunc.kinds import real
from xdev.ufunc.signatures import dtype_of_name

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence


Shape = tuple[int, ...]
SUPPORTED = frozenset("?bhilqBHILQfdFD")
FLOAT = np.dtype(np.float64)


def host(x: Any, name: str) -> Array | Number:
    """Return what an argument of a kernel on the CPU is.

    Raises
    ------
    TypeError
        It is neither an array in host memory nor a number.
    """
    adapter = foreign.of(type(x))
    if adapter is not None:
        x = adapter.to_native(x, name)
    if isinstance(x, np.ndarray) and not isinstance(x, np.ma.MaskedArray):
        address, _ = x.__array_interface__["data"]
        return Array(x, address, x.shape, x.strides, x.dtype, x.flags.writeable)
    if isinstance(x, NUMBERS):
        return Number(x)
    kind = type(x)
    way = "pass an array that it holds, or a number"
    if isinstance(x, list | tuple):
        way = "pass xdev.asarray(x), so that the kernel's writes can be seen"
    elif isinstance(x, np.ma.MaskedArray):
        way = "pass x.filled(value), or x.data and x.mask each"
    elif is_dask(x):
        way = f"map it over the blocks, xdev.distributed.map(kernel, x) ({PAGE})"
    elif hasattr(kind, "__dlpack__"):
        way = "pass xdev.to_device(x, 'cpu'), which copies only where it must"
    message = f"{name} takes NumPy and CUDA arrays and numbers, not "
    raise TypeError(f"{message}{kind.__module__}.{kind.__qualname__}: {way}")


def result_type(dtypes: Iterable[np.dtype[Any]]) -> np.dtype[Any]:
    """Return the dtype that floats in a function have, of those of its arrays."""
    inexact = [dtype for dtype in dtypes if dtype.kind in "fc"]
    return np.result_type(*inexact) if inexact else FLOAT


def types(
    operands: Sequence[Array | Number], names: Sequence[str], name: str
) -> tuple[tuple[Argument, ...], np.dtype[Any]]:
    """Return the arguments' types, and the dtype that floats in the function have.

    Python's numbers are weak, as in NEP 50: a float has the result type of the arrays
    that are no integers, an int is int64.

    Parameters
    ----------
    operands : sequence of Array and Number
        The arguments.
    names : sequence of str
        Their names in the function.
    name : str
        The function's, for errors.

    Raises
    ------
    TypeError
        There is no array, or a dtype that kernels do not have.
    ValueError
        An array is not aligned.
    """
    arrays = [x for x in operands if isinstance(x, Array)]
    if not arrays:
        raise TypeError(f"{name} got no array: what it computes has nowhere to go")
    working = result_type(x.dtype for x in arrays)
    kinds = []
    for x, label in zip(operands, names, strict=True):
        dtype = x.dtype if isinstance(x, Array) or not x.weak else _weak(x, working)
        if dtype.char not in SUPPORTED or not dtype.isnative:
            shown = dtype if dtype.names else dtype.str  # which has the byte order
            raise TypeError(
                f"{name}: {label} has dtype {shown}, which kernels do not have: use "
                "bool, integers, float32, float64, complex64 or complex128 in native "
                "byte order"
            )
        if isinstance(x, Number):
            kinds.append(Argument(dtype))
            continue
        if not _aligned(x):
            raise ValueError(f"{name}: {label} is not aligned: copy it first")
        kinds.append(Argument(dtype, len(x.shape), _contiguous(x), x.writable))
    return tuple(kinds), working


def key(x: Array | Number) -> Any:
    """Return all of an argument that its type depends on."""
    if isinstance(x, Number):
        return x.layout
    return x.dtype, len(x.shape), _contiguous(x), x.writable, _aligned(x)


def _aligned(x: Array) -> bool:
    return not any(n % x.dtype.alignment for n in (x.address, *x.strides))


def begin_writes(
    args: Sequence[Any],
    operands: Sequence[Array | Number],
    names: Sequence[str],
    name: str,
    writes: Callable[[], Container[str]],
) -> None:
    """Tell the libraries of arrays that a kernel is about to write them.

    Those that keep arrays for later, as autograd does, are told of no others.

    Parameters
    ----------
    args : sequence
        The arguments as they came.
    operands, names, name
        As :func:`types` takes them.
    writes : callable
        Returns the names of the arrays that are written; a TypeError: nobody knows.

    Raises
    ------
    TypeError
        A library forbids it.
    """
    if not foreign.any_of(args):
        return
    try:
        written = writes()
    except TypeError:
        written = names
    for x, operand, label in zip(args, operands, names, strict=True):
        adapter = foreign.of(type(x))
        writable = isinstance(operand, Array) and operand.writable
        if adapter and writable and label in written:
            adapter.begin_write(x, name, label)


def sizes(extents: Extents, arrays: Sequence[Array]) -> tuple[bool, bool]:
    """Say what a CUDA kernel may be compiled for.

    Returns
    -------
    (bool, bool)
        Whether a launch has a thread for each point, and extents, shapes and strides
        fit into 32 bits with their sign; whether each array has fewer than 2**31 bytes,
        of which a view is made.
    """
    numbers = [*extents.shape]
    for x in arrays:
        numbers += (*x.shape, *x.strides)
    fit = max(numbers) < 2**31 and min(numbers) >= -(2**31)
    small = all(prod(x.shape) * x.dtype.itemsize < 2**31 for x in arrays)
    return extents.whole and fit, small


def _weak(x: Number, working: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of a Python number."""
    value = x.value
    if isinstance(value, bool):
        return np.dtype(np.bool_)
    if isinstance(value, int):
        return np.dtype(np.int64)
    if isinstance(value, complex):
        return np.result_type(working, 1j)
    return real(working)


def _contiguous(x: Array) -> bool:
    steps = contiguous(x.shape, x.dtype.itemsize)
    pairs = zip(x.shape, x.strides, steps, strict=True)
    return 0 in x.shape or all(n == 1 or own == step for n, own, step in pairs)


# What stands in a kernel's brackets: extents, and the shape of a block on CUDA.

Triple = tuple[int, int, int]
BLOCKS = {1: (256,), 2: (8, 32), 3: (2, 4, 32)}  # where none is given
THREADS = 1024  # CUDA's limit for a block,
DEEP = 64  # for its first of three axes,
WIDEST = 2**31 - 1  # for blocks along the last axis,
MANY = 65535  # and along the others


@final
@dataclass(frozen=True, slots=True)
class Extents:
    """The points that a kernel runs for, and how they are dealt out on CUDA.

    Parameters
    ----------
    dimensions : int
        How many indices there are.
    shape : (int, int, int)
        How many points there are along each; 1 in front where there are fewer.
    block : (int, int, int)
        The threads of a block, likewise.
    """

    dimensions: int
    shape: Triple
    block: Triple

    @property
    def size(self) -> int:
        """The number of points."""
        return prod(self.shape)

    @property
    def whole(self) -> bool:
        """Whether a launch has a thread for each point."""
        pairs = zip(self.shape[:-1], self.block[:-1], strict=True)
        return all(-(-n // m) <= MANY for n, m in pairs)

    @property
    def launch(self) -> tuple[Triple, Triple]:
        """The blocks, and the threads of each, along x, y and z."""
        *others, last = (
            -(-n // m) for n, m in zip(self.shape, self.block, strict=True)
        )
        blocks = *(min(count, MANY) for count in others), last
        z, y, x = blocks
        deep, high, wide = self.block
        return (x, y, z), (wide, high, deep)

    @classmethod
    def read(cls, key: Any, name: str) -> Extents:
        """Return what ``kernel[key]`` means.

        Raises
        ------
        TypeError
            It holds something that is no integer.
        ValueError
            There are more than three extents, a negative one, or too many points; or
            the block is none that CUDA has.
        """
        points, block, what = key, None, f"{name}[{_text(key)}]"
        if isinstance(key, tuple) and key and isinstance(key[0], tuple):
            if len(key) != 2:  # noqa: PLR2004 - extents and block
                message = f"{name}[…] takes extents and a block: {name}[(n,), 256]"
                raise ValueError(message)
            points, block = key
        extents = _integers(points, name, "extents")
        count = len(extents)
        if not 1 <= count <= DIMENSIONS or min(extents) < 0:
            raise ValueError(
                f"{what}: a kernel has one to three extents of at least 0; a block "
                f"goes beside a tuple of them, {name}[(n,), 256]"
            )
        threads = BLOCKS[count]
        if block is not None:
            threads = _integers(block, name, "a block")
        flaw = _flaw(extents, threads)
        if flaw:
            raise ValueError(what + flaw)
        return cls(count, _filled(extents), _filled(threads))


def _flaw(extents: tuple[int, ...], threads: tuple[int, ...]) -> str:
    """Return what is wrong with extents and a block, "" for nothing."""
    count, flaw = len(extents), ""
    if prod(extents) >= 2**63:
        flaw = " has too many points: at most 2**63 - 1"
    elif len(threads) != count or min(threads) < 1:
        flaw = (
            f": a block has as many axes as there are extents ({count}), each of at "
            "least one thread"
        )
    elif prod(threads) > THREADS or (count == DIMENSIONS and threads[0] > DEEP):
        flaw = (
            f": a block has at most {THREADS} threads, {DEEP} along the first of three "
            "axes"
        )
    elif -(-extents[-1] // threads[-1]) > WIDEST:
        flaw = (
            f" has more than {WIDEST:,} blocks along its last axis: pass a wider "
            "block, or more extents"
        )
    return flaw


def _integers(values: Any, name: str, what: str) -> tuple[int, ...]:
    each = values if isinstance(values, tuple) else (values,)
    try:
        return tuple(map(index, each))
    except TypeError:
        message = f"{name}[…]: {what} must be integers, not {_text(values)}"
        raise TypeError(message) from None


def _filled(values: tuple[int, ...]) -> Triple:
    first, second, third = (1,) * (DIMENSIONS - len(values)) + values
    return first, second, third


def _text(key: Any) -> str:
    return ", ".join(map(repr, key)) if isinstance(key, tuple) else repr(key)


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
