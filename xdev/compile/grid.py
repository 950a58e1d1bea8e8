"""Kernels over a grid: a function of indices and arrays, run for every index.

Every device compiles the same: a function that finds its arguments in one block of
memory, 8-byte words. First come the extents, then where out-of-bounds accesses are
reported (0: not at all), then a slot for each argument, an array's address or a
number's bytes, then for each array its shape and its strides [B]. On the CPU a loop
runs over points, whose numbers count the last index fastest; on CUDA a thread has one
point, or several.
"""

from __future__ import annotations

import ctypes
import importlib
import math
import struct
import warnings
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from xdev import _optional, atomic
from xdev.compile import compilers, cubins, digests, errors
from xdev.compile.cubins import FUNCTION
from xdev.compile.formulas import BITS, FLOAT_BITS, called, flags_call
from xdev.compile.numpy_functions import CPU, CUDA
from xdev.errors import DeviceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Layout = tuple[Any, list[Any], list[Any]]  # where it is, a char*; shape; strides


DIMENSIONS = 3  # a grid has so many; those that it lacks are 1, in front
HEADER = DIMENSIONS + 1  # words before the slots
WORD = 8
SLOT = 2  # words: any number fits


class Argument(NamedTuple):
    """The type of an argument: an array's, or a number's."""

    dtype: np.dtype[Any]
    ndim: int | None = None  # of a number
    contiguous: bool = False  # in C order without gaps
    writable: bool = False  # by the kernel

    @property
    def type(self) -> Any:
        """The type that Numba has for it."""
        numba = _optional.numba()
        item = numba.np.numpy_support.from_dtype(self.dtype)
        if self.ndim is None:
            return item
        layout = "C" if self.contiguous else "A"
        readonly = not self.writable
        return numba.core.types.Array(item, self.ndim, layout, readonly=readonly)

    def __str__(self) -> str:
        if self.ndim is None:
            return str(self.dtype)
        return f"{self.dtype}[{', '.join(':' * self.ndim)}]"


LENGTH = 5 + DIMENSIONS  # of a report of what is out of bounds
REPORT = Argument(np.dtype(np.int64), 1, contiguous=True, writable=True)


def report_type() -> Any:
    """Return Numba's type of a report, and of the point of the grid beside it."""
    types = _optional.numba().core.types
    return types.Tuple((REPORT.type, types.UniTuple(types.int64, DIMENSIONS)))


@final
@dataclass(frozen=True, slots=True, eq=False)  # a key of dicts: hashed as an object
class Grid:
    """A function of indices and arguments, and the types that it is compiled for.

    Where it is ``checked``, it takes one argument more, for :func:`checked`. A function
    of core arrays takes no index, but ``cores``: the arrays have loop dimensions in
    front, through which the grid's one or two indices count; the last argument's are
    the loop's extents.
    """

    function: Callable[..., Any]
    indices: int
    arguments: tuple[Argument, ...]
    fastmath: bool = False
    checked: bool = False
    cores: tuple[Argument, ...] | None = None

    @property
    def parts(self) -> tuple[object, ...]:
        """All that decides the machine code but the function; its ``repr`` tells it."""
        options = self.fastmath, self.checked
        return "grid", self.indices, self.arguments, *options, self.cores

    @property
    def words(self) -> int:
        """How many words its memory has."""
        layouts = (2 * (argument.ndim or 0) for argument in self.arguments)
        return HEADER + SLOT * len(self.arguments) + sum(layouts)

    @property
    def shown(self) -> tuple[Argument, ...]:
        """What errors show as the types that the function takes."""
        return self.arguments if self.cores is None else self.cores

    def types(self) -> tuple[Any, ...]:
        """Return what the function takes, in Numba's types."""
        types = _optional.numba().core.types
        if self.cores is not None:
            return tuple(core.type for core in self.cores)
        report = [report_type()] if self.checked else []
        own = (argument.type for argument in self.arguments)
        return (*[types.intp] * self.indices, *own, *report)


def packer(arguments: Sequence[Argument]) -> Callable[..., bytes]:
    """Return ``pack(*words)``: a kernel's memory, of integers and numbers' bytes."""
    slots = (f"{SLOT * WORD}s" if a.ndim is None else "Q8x" for a in arguments)
    layouts = 2 * sum(a.ndim or 0 for a in arguments)
    return struct.Struct(f"={HEADER}q{''.join(slots)}{layouts}q").pack


# What every device emits: the arguments loaded from memory, one call of the function.
# Numba's and numba-cuda's instructions are the same, but for what a Target has.


@final
class Target:
    """One compiler's own modules, by its package: ``CPU`` or ``CUDA``."""

    def __init__(self, root: str) -> None:
        core = "core." if root == CPU else ""
        self.root = root
        self.cgutils, self.arrays, self.extending = (
            importlib.import_module(f"{root}.{name}")
            for name in (f"{core}cgutils", "np.arrayobj", "extending")
        )
        for name in ("add", "max", "min", "cas"):
            self.extending.overload(getattr(atomic, name))(_overload(self, name))
        _checking(self.extending)

    def add_float(self, builder: Any, pointer: Any, value: Any) -> Any:
        """Emit an atomic addition of floats."""
        if self.root == CPU:
            return builder.atomic_rmw("fadd", pointer, value, ORDER)
        functions = importlib.import_module(f"{self.root}.nvvmutils")
        bits = FLOAT_BITS[str(value.type)]
        declare = getattr(functions, f"declare_atomic_add_float{bits}")
        return builder.call(declare(builder.module), (pointer, value))


@cache
def target(root: str) -> Target:
    """Return a compiler that knows :mod:`xdev.atomic` and :func:`checked`."""
    return Target(root)


@final
class KernelMemory:
    """The words of a kernel, at a pointer, and the values that are loaded from them.

    Where it is ``narrow``, all shapes and strides fit into 32 bits, and are loaded so:
    products of indices with them are then single instructions on CUDA.
    """

    def __init__(
        self, grid: Grid, root: str, place: tuple[Any, Any, Any], *, narrow: bool
    ) -> None:
        self._grid, self.target, self._narrow = grid, target(root), narrow
        self.context, self.builder, self._pointer = place
        self.int64 = self.target.cgutils.ir.IntType(64)

    def word(self, index: int) -> Any:
        """Return a word as an integer."""
        return self.builder.load(self._place(index, self.int64))

    def load(self) -> list[Any]:
        """Emit the loading of all that is the same for every index."""
        arguments = self._grid.arguments
        layouts: list[Layout] = []
        layout = HEADER + SLOT * len(arguments)
        for place, argument in enumerate(arguments):
            if argument.ndim is not None:
                middle, after = layout + argument.ndim, layout + 2 * argument.ndim
                shape = [self._layout(k, "zext") for k in range(layout, middle)]
                strides = [self._layout(k, "sext") for k in range(middle, after)]
                data = self._pointer_at(HEADER + SLOT * place)
                layouts.append((data, shape, strides))
                layout = after
        if self._grid.cores is not None:
            return layouts
        return self._values(arguments, layouts, ())

    def call(self, compiled: Any, indices: Sequence[Any], loaded: list[Any]) -> None:
        """Emit a call of the function; an exception ends that point alone."""
        grid, own = self._grid, indices[DIMENSIONS - self._grid.indices :]
        if grid.cores is not None:
            operands = self._values(grid.cores, loaded, own)
        else:
            report = [self._report(indices)] if grid.checked else []
            operands = [*own, *loaded, *report]
        self.context.call_internal_no_propagate(
            self.builder, compiled.fndesc, compiled.signature, operands
        )

    def _report(self, indices: Sequence[Any]) -> Any:
        """Return what :func:`checked` takes as its report."""
        shape, strides = [self.int64(LENGTH)], [self.int64(WORD)]
        words = self._value(REPORT, self._pointer_at(DIMENSIONS), shape, strides)
        point = self.target.cgutils.pack_array(self.builder, indices)
        return self.context.make_tuple(self.builder, report_type(), [words, point])

    def _values(
        self, cores: Sequence[Argument], layouts: Sequence[Any], indices: Sequence[Any]
    ) -> list[Any]:
        """Return what a function of core arrays takes at indices of the grid.

        The last of two counts the last loop dimension, the first one the others.
        """
        builder, arguments = self.builder, self._grid.arguments
        (last, core), (_, extents, _) = (arguments[-1], cores[-1]), layouts[-1]
        loop = (last.ndim or 0) - (core.ndim or 0)
        index = list(indices)[-loop:]
        while 0 < len(index) < loop:
            extent = extents[loop - len(index)]
            number = builder.udiv(index[0], extent)
            index[:1] = number, builder.urem(index[0], extent)
        following, values = iter(layouts), []
        for place, (argument, core) in enumerate(zip(arguments, cores, strict=True)):
            if argument.ndim is None:  # a number for all, perhaps where an array is
                byte = self.target.cgutils.ir.IntType(8)
                data = self._place(HEADER + SLOT * place, byte)
                shape = [self.int64(1)] * (core.ndim or 0)
                strides = [self.int64(core.dtype.itemsize)] * len(shape)
            else:
                data, shape, strides = next(following)
                for i, step in zip(index, strides[:loop], strict=True):
                    data = builder.gep(data, [builder.mul(i, step)], inbounds=True)
                shape, strides = shape[loop:], strides[loop:]
            values.append(self._value(core, data, shape, strides))
        return values

    def _value(
        self, argument: Argument, data: Any, shape: list[Any], strides: list[Any]
    ) -> Any:
        """Return the number at a ``char*``, or the array that starts there."""
        kind, number = argument.type, argument.ndim is None
        model = self.context.data_model_manager[kind if number else kind.dtype]
        pointer = self.builder.bitcast(data, model.get_data_type().as_pointer())
        if number:
            return model.load_from_data_pointer(self.builder, pointer)
        array = self.context.make_array(kind)(self.context, self.builder)
        itemsize = self.int64(argument.dtype.itemsize)
        self.target.arrays.populate_array(
            array, pointer, shape, strides, itemsize, meminfo=None
        )
        return array._getvalue()  # noqa: SLF001 - how Numba names it

    def _pointer_at(self, index: int) -> Any:
        """Return a word as a ``char*``."""
        return self.builder.inttoptr(self.word(index), self.target.cgutils.voidptr_t)

    def _layout(self, index: int, widen: str) -> Any:
        """Return a word of a shape or of strides."""
        if not self._narrow:
            return self.word(index)
        half = self._place(index, self.target.cgutils.ir.IntType(32))
        return getattr(self.builder, widen)(self.builder.load(half), self.int64)

    def _place(self, index: int, kind: Any) -> Any:
        offset = self.int64(index * WORD)
        place = self.builder.gep(self._pointer, [offset], inbounds=True)
        return self.builder.bitcast(place, kind.as_pointer())


# Accesses out of bounds: reported and stopped, by one emission for every device.
#
# The first point of the grid to see one writes a report of ``LENGTH`` 64-bit integers:
# 1, the argument's number, the axis, the index, the axis's length, and its own three
# indices. Each point that sees one ends there.


def checked(index: Any, *_shape_argument_axis_report: Any) -> Any:
    """Return an index into an array; in compiled code, if it is in bounds."""
    return index


def _checking(extending: Any) -> None:
    """Let a compiler know the check."""
    types = _optional.numba().core.types

    def integer(index, shape, argument, axis, report):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        at, length = np.int64(index), shape[0]
        if at >= length or at < -length:
            words, point = report
            if atomic.cas(words, 0, 0, 1) == 0:
                words[1], words[2], words[3], words[4] = argument, axis, at, length
                words[5], words[6], words[7] = point
            raise IndexError
        return index

    def several(index, shape, argument, axis, report):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        checked(index[0], shape, argument, axis, report)
        checked(index[1:], shape[1:], argument, axis + 1, report)
        return index

    def choose(index, shape, argument, axis, report):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202, ARG001
        if isinstance(index, types.Integer):
            return integer
        kinds = list(index) if isinstance(index, types.BaseTuple) else []
        # With an ellipsis or a new axis, places in the index are not axes.
        plain = all(isinstance(k, types.Integer | types.SliceType) for k in kinds)
        if kinds and plain:
            return several
        return lambda index, shape, argument, axis, report: index  # noqa: ARG005

    extending.overload(checked)(choose)


# What :mod:`xdev.atomic` is in compiled code: one emission for every device.

ORDER = "monotonic"
UPDATED = ("int32", "int64", "uint32", "uint64", "float32", "float64")  # everywhere


def _overload(target: Target, name: str) -> Any:
    """Return an update's overload, without types: numba-cuda would compare them."""
    types = _optional.numba().core.types
    update = _updating(target, name)
    if name == "cas":
        return lambda a, index, expected, value: (  # noqa: ARG005
            lambda a, index, expected, value: update(a, index, expected, value)  # noqa: PLW0108 - Numba's form
        )

    def choose(a, index, value):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        _check(a, index, (value,), name)
        if name != "add" and isinstance(a.dtype, types.Float):
            return _extreme(getattr(np, str(a.dtype)), larger=name == "max")
        return lambda a, index, value: update(a, index, value, value)

    return choose


def _extreme(kind: Any, *, larger: bool) -> Any:
    """Return the update to the larger or smaller of two floats: NaN wins, and stays."""

    def update(a, index, value):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        new, old = kind(value), a[index]
        while old == old and (new != new or (new > old if larger else new < old)):  # noqa: PLR0124
            seen = atomic.cas(a, index, old, new)
            if seen == old and math.copysign(1.0, seen) == math.copysign(1.0, old):
                break  # of the same bits
            old = seen
        return old

    return update


def _updating(target: Target, name: str) -> Any:
    """Return the compiled-code call that updates an element."""
    types = _optional.numba().core.types

    @target.extending.intrinsic  # type: ignore[untyped-decorator]
    def update(_typing: Any, a: Any, index: Any, expected: Any, value: Any) -> Any:
        _check(a, index, (expected, value), name)
        one = isinstance(index, types.Integer)
        kinds = [index] if one else list(index)

        def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
            unpack = target.cgutils.unpack_tuple
            indices = [args[1]] if one else unpack(builder, args[1])
            places = [
                context.cast(builder, place, kind, types.intp)
                for place, kind in zip(indices, kinds, strict=True)
            ]
            array = context.make_array(a)(context, builder, args[0])
            pointer = target.cgutils.get_item_pointer(
                context, builder, a, array, places, wraparound=True
            )
            seen = context.cast(builder, args[2], expected, a.dtype)
            new = context.cast(builder, args[3], value, a.dtype)
            if name == "cas":
                bits = target.cgutils.ir.IntType(a.dtype.bitwidth)
                where = builder.bitcast(pointer, bits.as_pointer())
                words = (builder.bitcast(x, bits) for x in (seen, new))
                both = builder.cmpxchg(where, *words, ORDER, ORDER)
                return builder.bitcast(builder.extract_value(both, 0), new.type)
            if isinstance(a.dtype, types.Integer):
                word = name if name == "add" or a.dtype.signed else f"u{name}"
                return builder.atomic_rmw(word, pointer, new, ORDER)
            return target.add_float(builder, pointer, new)

        return a.dtype(a, index, expected, value), generate

    return update


def _check(a: Any, index: Any, values: Any, name: str) -> None:
    """Refuse what cannot be updated, as a typing error."""
    numba = _optional.numba()
    types = numba.core.types
    real = types.Integer | types.Float | types.Boolean
    axes = index if isinstance(index, types.BaseTuple) else [index]
    array = isinstance(a, types.Array) and a.mutable and str(a.dtype) in UPDATED
    integers = all(isinstance(k, types.Integer) for k in axes)
    numbers = all(isinstance(x, real) for x in values)
    if not (array and integers and numbers and len(axes) == a.ndim):
        given = ", ".join(map(str, (a, index, *values)))
        form = "index, expected" if name == "cas" else "index"
        raise numba.core.errors.TypingError(
            f"xdev.atomic.{name}(array, {form}, value) takes an array that may be "
            f"written, of {', '.join(UPDATED)}, an integer for each of its axes, and "
            f"real numbers: not ({given})"
        )


# Machine code on the CPU: a loop, of whose range threads share parts.

_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_char_p)


def loop(grid: Grid) -> Callable[[int, int, bytes], None]:
    """Return ``run(start, stop, memory)``, which computes a range of points.

    It leaves the interpreter's lock to others meanwhile.
    """
    digest, name = digests.digest(grid.function), grid.function.__name__
    address = digests.load_loop(digest, grid.parts, name, partial(_compiled, grid))
    function = _PROTOTYPE(address)
    function.address = address  # type: ignore[attr-defined]
    return function


@_optional.numba_unset()
def _compiled(grid: Grid) -> tuple[bytes, str]:
    """Return the object file of the loop, and its name there."""
    types = _optional.numba().core.types
    compiled = _host_function(grid)
    errors.refuse_faults(grid.function, grid.shown, compiled)

    def emit(context: Any, builder: Any, arguments: Any) -> None:
        *span, words = arguments
        place = context, builder, words
        memory = KernelMemory(grid, CPU, place, narrow=False)
        _emit_loop(grid, compiled, memory, *span)

    return compilers.emitted(emit, types.int64, types.int64, types.voidptr)


def writes(grid: Grid) -> frozenset[int]:
    """Return the places of the arrays that, read-only, it cannot be compiled for."""
    arguments = grid.arguments

    def make() -> tuple[bytes, str]:
        _host_function(grid)
        places = bytearray()
        for k, own in enumerate(arguments):
            try:
                frozen = own._replace(writable=False)
                parts = *arguments[:k], frozen, *arguments[k + 1 :]
                _host_function(replace(grid, arguments=parts))
            except TypeError:
                places.append(k)
        return bytes(places), ""

    digest, name = digests.digest(grid.function), grid.function.__name__
    places, _ = digests.load_or_compile("writes", digest, grid.parts, name, make)
    return frozenset(places)


@_optional.numba_unset()
def _host_function(grid: Grid) -> Any:
    """Return Numba's compilation of a grid's function, to be called by a loop."""
    target(CPU)
    types, fastmath = grid.types(), grid.fastmath
    function = compilers.jitted(
        grid.function, types, grid.shown, fastmath=fastmath, _nrt=False
    )
    (compiled,) = function.overloads.values()
    _check_result(grid, compiled.signature.return_type)
    return compiled


def _check_result(grid: Grid, returned: Any) -> None:
    """Refuse a function that returns something, by the type that it returns."""
    if returned is not _optional.numba().core.types.none:
        what = f"it returns {returned}, but what it computes goes to its arrays"
        flaw = TypeError(f"{what}: out[i] = …")
        raise errors.compile_error(grid.function, grid.shown, flaw)


def _emit_loop(
    grid: Grid, compiled: Any, memory: KernelMemory, start: Any, stop: Any
) -> None:
    """Emit the loop over rows of points, and the one along a row."""
    builder, context, cgutils = memory.builder, memory.context, memory.target.cgutils
    context.active_code_library.add_linking_library(compiled.library)
    _, height, width = map(memory.word, range(DIMENSIONS))
    loaded = memory.load()
    if grid.cores is not None:  # which tell of floating point errors, as ufuncs do
        flags_call(builder, "feclearexcept", sum(BITS))
    point = cgutils.alloca_once_value(builder, start)
    body, done = map(builder.append_basic_block, ("row", "done"))
    builder.cbranch(builder.icmp_signed("<", start, stop), body, done)
    builder.position_at_end(body)
    first = builder.load(point)
    row, begin = builder.sdiv(first, width), builder.srem(first, width)
    i, j = row.type(0), row
    if grid.indices == DIMENSIONS:  # else there is but one plane
        i, j = builder.sdiv(row, height), builder.srem(row, height)
    left, room = builder.sub(stop, first), builder.sub(width, begin)
    count = builder.select(builder.icmp_signed("<", left, room), left, room)
    for index in (i, j, begin):  # so that nothing is looked up from an array's end
        positive = builder.icmp_signed(">=", index, index.type(0))
        called(builder, "llvm.assume", cgutils.ir.VoidType(), positive)
    end = builder.add(begin, count, flags=["nsw"])
    along = cgutils.for_range_slice(builder, begin, end, begin.type(1), begin.type)
    with along as (k, _):
        memory.call(compiled, (i, j, k), loaded)
    following = builder.add(first, count, flags=["nsw"])
    builder.store(following, point)
    builder.cbranch(builder.icmp_signed("<", following, stop), body, done)
    builder.position_at_end(done)
    if grid.cores is not None:
        raised = flags_call(builder, "fetestexcept", sum(BITS))
        report = builder.inttoptr(memory.word(DIMENSIONS), memory.int64.as_pointer())
        bits = builder.zext(raised, memory.int64)
        builder.atomic_rmw("or", report, bits, ORDER)


# Machine code on CUDA: a kernel of a cubin.


def cubin(
    grid: Grid, capability: tuple[int, int], *, narrow: bool = False
) -> tuple[bytes, str]:
    """Compile a function of indices into a kernel, which takes its memory by value."""
    sizes = {"WORDS": grid.words, "INDICES": grid.indices, "NARROW": int(narrow)}
    macros = cubins.defined({"FUNCTION": FUNCTION, **sizes})

    def make() -> tuple[bytes, str]:
        code = ltoir(grid, capability, narrow=narrow)
        return cubins.build(
            "grid", "xdev::grid", macros, code, capability, fastmath=grid.fastmath
        )

    digest, name = digests.digest(grid.function), grid.function.__name__
    return cubins.load_or_compile(digest, (*grid.parts, narrow, capability), name, make)


def ltoir(grid: Grid, capability: tuple[int, int], *, narrow: bool) -> bytes:
    """Compile the function alone: ``void(int64 i, int64 j, int64 k, const void*)``."""
    if not _optional.installed("numba_cuda"):
        message = f"kernels on CUDA need numba-cuda: {_optional.CUDA_EXTRA}"
        raise DeviceUnavailableError(message)
    _optional.numba_cuda()
    numba = _optional.numba()
    types = numba.core.types

    @target(CUDA).extending.intrinsic  # type: ignore[untyped-decorator]
    def run(_typing: Any, i: Any, j: Any, k: Any, words: Any) -> Any:
        def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
            place = context, builder, args[-1]
            memory = KernelMemory(grid, CUDA, place, narrow=narrow)
            called = types.void(*grid.types())
            compiled = context.compile_subroutine(
                builder, grid.function, called, caching=False
            )
            _check_result(grid, compiled.signature.return_type)
            memory.call(compiled, args[:DIMENSIONS], memory.load())
            return context.get_dummy_value()

        return types.void(i, j, k, words), generate

    def entry(i, j, k, words):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        run(i, j, k, words)

    changes = [compilers.of_32_bits(target(CUDA))] if narrow else []
    signature = types.void(*[types.int64] * DIMENSIONS, types.voidptr)
    slow = numba.core.errors.NumbaPerformanceWarning
    with (
        warnings.catch_warnings(action="ignore", category=slow),  # of what is refused
        errors.explained(grid.function, grid.shown, " for CUDA"),
    ):
        try:
            return compilers.cuda_code(
                entry, signature, capability, fastmath=grid.fastmath, changes=changes
            )
        except Exception:
            # Numba knows the line; numba-cuda does not where it calls in between.
            _host_function(grid)
            raise
