"""Grids: the points that a function runs for, and how each device runs it for them."""

from __future__ import annotations

import functools
from array import array
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import prod
from operator import attrgetter, index
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional, memory, native
from xdev.compile import grid as grid_code, launch, threads
from xdev.compile.grid import DIMENSIONS, HEADER, LENGTH, WORD, packer
from xdev.compile.launch import Launch, Value
from xdev.errors import not_array, quoted, type_name
from xdev.memory.arrays import transposed
from xdev.ufunc import cuda, cuda_operands, foreign
from xdev.ufunc.argument_errors import PAGE
from xdev.ufunc.cuda_operands import Array, Number, read
from xdev.ufunc.foreign import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.compile.grid import Argument, Grid
    from xdev.ufunc.cuda import Result
    from xdev.ufunc.layout import Shape

# What stands in a kernel's brackets: extents, and the shape of a block on CUDA.

BLOCKS = {1: (256,), 2: (8, 32), 3: (2, 4, 32)}  # where none is given
THREADS = 1024  # CUDA's limit for a block,
DEEP = 64  # for its first of three axes,
WIDEST = 2**31 - 1  # for blocks along the last axis,
MANY = 65535  # and along the others


@final
@dataclass(frozen=True, slots=True)
class Extents:
    """The points that a kernel runs for, and how they are dealt out on CUDA."""

    dimensions: int
    shape: Shape  # of three axes, 1 in front where there are fewer indices
    block: Shape  # the threads of a block, likewise

    @property
    def size(self) -> int:
        """The number of points."""
        return prod(self.shape)

    @property
    def launch(self) -> tuple[Any, Any]:
        """The blocks, and the threads of each, along x, y and z."""
        z, y, x = (-(-n // m) for n, m in zip(self.shape, self.block, strict=True))
        deep, high, wide = self.block
        return (x, min(y, MANY), min(z, MANY)), (wide, high, deep)

    def narrow(self, arrays: Sequence[Array]) -> bool:
        """Say whether a kernel for 32 bits and a thread for each point will do."""
        numbers = [*self.shape]
        for x in arrays:
            numbers += (*x.shape, *x.strides)
        pairs = zip(self.shape[:-1], self.block[:-1], strict=True)
        whole = all(-(-n // m) <= MANY for n, m in pairs)
        return whole and max(numbers) < 2**31 and min(numbers) >= -(2**31)

    @classmethod
    def read(cls, key: Any, name: str) -> Extents:
        """Return what ``kernel[key]`` means."""
        points, *blocks = key if isinstance(key, tuple) and key else (key,)
        if not isinstance(points, tuple):
            points, blocks = key, []
        extents = _integers(points, name)
        block = _integers(blocks[0], name) if blocks else BLOCKS.get(len(extents), ())
        if (
            not 1 <= len(extents) == len(block) <= DIMENSIONS
            or len(blocks) > 1
            or min(extents) < 0
            or min(block) < 1
            or prod(extents) >= 2**63
            or prod(block) > THREADS
            or (len(block) == DIMENSIONS and block[0] > DEEP)
            or -(-extents[-1] // block[-1]) > WIDEST
        ):
            shown = ", ".join(map(repr, key)) if isinstance(key, tuple) else repr(key)
            raise ValueError(
                f"{name}[{shown}]: a kernel has one to three extents of at least 0, of "
                f"at most 2**63 - 1 points, and {WIDEST:,} blocks along the last axis; "
                f"a block goes beside a tuple of them, {name}[(n,), 256], and has as "
                f"many axes and 1 to {THREADS} threads, {DEEP} along the first of three"
            )
        missing = (1,) * (DIMENSIONS - len(extents))
        return cls(len(extents), missing + extents, missing + block)


def _integers(values: Any, name: str) -> tuple[int, ...]:
    try:
        return tuple(map(index, values if isinstance(values, tuple) else (values,)))
    except TypeError:
        message = f"{name}[…]: extents and blocks are integers, not {quoted(values)}"
        raise TypeError(message) from None


# On the CPU: a compiled loop over points, shared by threads.


@final
class HostRun:
    """A compiled loop, and all that it works on but addresses and numbers."""

    def __init__(
        self,
        machine: Any,
        kinds: Sequence[Argument],
        points: Extents,
        operands: Sequence[Array | Number],
        *,
        shared: bool = True,
        **_: bool,
    ) -> None:
        self._machine, self._pack, self._points = machine, packer(kinds), points
        self._kinds = [(k, x.dtype.type) for k, x in enumerate(kinds) if x.ndim is None]
        self._layouts, self._shared = layouts(operands), shared
        self._each = 0.0  # seconds that a point took when threads last shared them

    def __call__(self, values: list[Any]) -> array[int]:
        """Compute of addresses and numbers; return what points have reported."""
        for place, kind in self._kinds:
            if type(values[place]) is not bytes:
                values[place] = kind(values[place]).tobytes()
        report = array("q", bytes(WORD * LENGTH))
        address, _ = report.buffer_info()
        words = self._pack(*self._points.shape, address, *values, *self._layouts)
        machine, size, each = self._machine, self._points.size, self._each
        if self._shared:
            self._each = threads.compute(machine, machine.address, words, size, each)
        else:
            machine(0, size, words)
        return report


@functools.cache
def address_function() -> Callable[[Any], int]:
    """Return what tells where an array begins; the array's own attributes take 1 µs."""
    compiled = native.module("threads")
    return attrgetter("ctypes.data") if compiled is None else compiled.address


def _of(x: np.ndarray[Any, Any]) -> Array:
    place = address_function()(x), x.shape, x.strides, x.dtype
    return Array(x, *place, x.flags.writeable)


@final
class HostGrids:
    """Functions over grids on NumPy arrays and numbers: what differs from CUDA's."""

    run = HostRun
    ordered = nullcontext

    def read(self, x: Any, name: str, _: str = "") -> Array | Number:
        """Return what an argument of a kernel is."""
        adapter = foreign.of(type(x))
        if adapter is not None:
            x = adapter.to_native(x, name)
        if isinstance(x, np.ndarray) and not isinstance(x, np.ma.MaskedArray):
            return _of(x)
        if isinstance(x, NUMBERS):
            return Number(x)
        raise TypeError(
            f"{name} takes NumPy and CUDA arrays and numbers, not {type_name(x)}: pass "
            "an array (of a list xdev.asarray(x), so that writes can be seen; of a "
            "masked array x.filled(value), or x.data and x.mask); map it over Dask's "
            f"blocks, xdev.distributed.map(kernel, x) ({PAGE})"
        )

    def on_device(self, *_: object) -> AbstractContextManager[Any]:
        """Return the one place there is."""
        return nullcontext("cpu")

    def operand(self, x: Any, *_: object) -> Array | Number:
        """Return what an input of a function of core arrays is, subclasses too."""
        return Number(x) if isinstance(x, NUMBERS) else _of(np.asanyarray(x))

    def written(self, x: Any, name: str) -> Array:
        """Return what an output is."""
        if not isinstance(x, np.ndarray):
            message = f"{name}: out= is {not_array(x, 'pass an array that it holds')}"
            raise TypeError(message)
        if not x.flags.writeable:
            raise ValueError(f"{name}: out is read-only: pass one that may be written")
        return _of(x)

    def points(self, loop: Shape, name: str) -> Extents:
        """Return the points of a loop, by rows: along them no index is divided."""
        return Extents.read((prod(loop[:-1]), loop[-1]), name)

    def compiled(self, grid: Grid, **_: bool) -> Any:
        """Return a function's loop."""
        return grid_code.loop(grid)

    def made(self, result: Result) -> Array:
        """Return a new array."""
        made = memory.host_array(result.shape, result.dtype)
        return _of(made if result.straight else transposed(made, result.axes))

    def copied(self, x: Array, dtype: np.dtype[Any]) -> Array:
        """Return an input's copy of a dtype."""
        return _of(np.array(x.owner, dtype))

    def assign(self, target: Array, source: Array) -> None:
        """Cast results into the output that the caller gave."""
        np.copyto(target.owner, source.owner, casting="unsafe")

    def returned(
        self, new: Any, owners: tuple[Any, ...], function: Any, place: int, subok: bool
    ) -> Any:
        """Return a new result as NumPy does: a subclass of an input's, or a scalar."""
        arrays = (x for x in owners if isinstance(x, np.ndarray))
        like: Any = max(arrays, key=attrgetter("__array_priority__"), default=new)
        if subok and type(like) is not np.ndarray:
            return like.__array_wrap__(new, (function, owners, place), not new.ndim)
        return new[()]


# On CUDA: a launch on CuPy's current stream.


@final
class CudaGrids:
    """Functions over grids on CUDA arrays of any library, and numbers."""

    read = operand = staticmethod(read)
    written = staticmethod(cuda.written)
    made = staticmethod(cuda.new_array)
    on_device = staticmethod(cuda.on_device)
    ordered = staticmethod(cuda_operands.ordered)

    def points(self, loop: Shape, name: str) -> Extents:
        """Return the points of a loop."""
        return Extents.read(prod(loop), name)

    def compiled(self, grid: Grid, *, narrow: bool) -> Any:
        """Return a function's kernel on the current device."""
        cuda.require()
        here = launch.capability(_optional.cupy().cuda.runtime.getDevice())
        return launch.Kernel(*grid_code.cubin(grid, here, narrow=narrow))

    def run(
        self,
        machine: Any,
        kinds: Sequence[Argument],
        points: Extents,
        operands: Sequence[Array | Number],
        *,
        checked: bool = False,
        **_: bool,
    ) -> Callable[[list[Any]], Any]:
        """Return the launch: all of it but addresses and numbers."""
        values = tuple(
            Value() if isinstance(x, Array) else Value.number(x.value, kind.dtype)
            for x, kind in zip(operands, kinds, strict=True)
        )
        slots = (0 if isinstance(x, Array) else b"" for x in operands)
        report = _optional.cupy().zeros(LENGTH, "q") if checked else None
        address = 0 if report is None else report.data.ptr
        words = packer(kinds)(*points.shape, address, *slots, *layouts(operands))
        start = Launch(machine, *points.launch, words, values, first=HEADER * WORD)

        def reporting(values: list[Any]) -> Any:
            start(values)
            return report.tolist()  # type: ignore[union-attr] # where it is checked

        return reporting if checked else start

    def copied(self, x: Array, dtype: np.dtype[Any]) -> Any:
        """Return an input's copy of a dtype."""
        return read(x.cupy().astype(dtype), "")

    def assign(self, target: Array, source: Array) -> None:
        """Cast results into the output that the caller gave."""
        target.cupy()[...] = source.owner

    def returned(self, new: Any, owners: tuple[Any, ...], *_: object) -> Any:
        """Return a new result as an array of the first array's library."""
        return foreign.from_native(new, owners[0] if owners else None)


def layouts(operands: Sequence[Array | Number]) -> list[int]:
    """Return the arrays' shapes and strides, as a grid's memory has them."""
    arrays = (x for x in operands if isinstance(x, Array))
    return [number for x in arrays for number in (*x.shape, *x.strides)]


HOST, CUDA = HostGrids(), CudaGrids()
