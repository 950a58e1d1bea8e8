"""Kernels over a grid: a function of indices and arrays, run for every index.

Every device compiles the same: a function that finds its arguments in one block of
memory, 8-byte words. First come the extents, then where out-of-bounds accesses are
reported (0: not at all), then a slot for each argument, an array's address or a
number's bytes, then for each array its shape and its strides [B].
"""

from __future__ import annotations

import importlib
import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from xdev import _optional, atomic
from xdev._forks import module_lock
from xdev.compile.formulas import FLOAT_BITS
from xdev.compile.numpy_functions import CPU

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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

    Where it is ``checked``, it reports accesses out of bounds, and has one argument
    more, which :func:`checked` takes. A function of core arrays takes no index, but
    ``cores``: the arrays among the arguments have as many loop dimensions in front,
    through which the grid's one or two indices count; the last argument's are the
    loop's extents.
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

    def load(self, memory: KernelMemory) -> list[Any]:
        """Emit the loading of all that is the same for every index."""
        layouts = memory.layouts(self.arguments)
        if self.cores is not None:
            return layouts
        return memory.cores(self.arguments, self.arguments, layouts, ())

    def operands(
        self, memory: KernelMemory, indices: Sequence[Any], loaded: Sequence[Any]
    ) -> list[Any]:
        """Emit what one call of the function takes, from the grid's three indices."""
        own = indices[DIMENSIONS - self.indices :]
        if self.cores is not None:
            return memory.cores(self.arguments, self.cores, loaded, own)
        report = [memory.report(indices)] if self.checked else []
        return [*own, *loaded, *report]


def packer(arguments: Sequence[Argument]) -> Callable[..., bytes]:
    """Return ``pack(*words)``: the memory of a kernel from integers and numbers' bytes.

    The words are the extents, the report's address, then addresses and numbers, then
    shapes and strides.
    """
    slots = (f"{SLOT * WORD}s" if a.ndim is None else "Q8x" for a in arguments)
    layouts = 2 * sum(a.ndim or 0 for a in arguments)
    return struct.Struct(f"={HEADER}q{''.join(slots)}{layouts}q").pack


# What every device emits: the arguments loaded from memory, one call of the function.
#
# Numba's and numba-cuda's instructions are the same LLVM ones; only a few functions of
# theirs differ, and come as a :class:`Target`.


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


_lock = module_lock()  # guards the dict below
_targets: dict[str, Target] = {}


def target(root: str) -> Target:
    """Return a compiler that knows :mod:`xdev.atomic` and :func:`checked`."""
    with _lock:
        if root not in _targets:
            _targets[root] = Target(root)
        return _targets[root]


@final
class KernelMemory:
    """The words of a kernel, at a pointer, and the values that are loaded from them.

    Where it is ``narrow``, all shapes and strides fit into 32 bits, and are loaded so:
    products of indices with them are then single instructions on CUDA.
    """

    def __init__(
        self,
        target: Target,
        context: Any,
        builder: Any,
        pointer: Any,
        *,
        narrow: bool = False,
    ) -> None:
        self.target, self.context, self.builder = target, context, builder
        self._pointer, self._narrow = pointer, narrow
        self.int64 = target.cgutils.ir.IntType(64)

    def word(self, index: int) -> Any:
        """Return a word as an integer."""
        return self.builder.load(self._place(index, self.int64))

    def report(self, indices: Sequence[Any]) -> Any:
        """Return what :func:`checked` takes as its report."""
        shape, strides = [self.int64(LENGTH)], [self.int64(WORD)]
        words = self.array(REPORT, self.pointer(self.word(DIMENSIONS)), shape, strides)
        point = self.target.cgutils.pack_array(self.builder, indices)
        return self.context.make_tuple(self.builder, report_type(), [words, point])

    def layouts(
        self, arguments: Sequence[Argument]
    ) -> list[tuple[Any, list[Any], list[Any]]]:
        """Return where each array is, a ``char*``, its shape and its strides."""
        arrays: list[tuple[Any, list[Any], list[Any]]] = []
        layout = HEADER + SLOT * len(arguments)
        for place, argument in enumerate(arguments):
            if argument.ndim is None:
                continue
            middle, after = layout + argument.ndim, layout + 2 * argument.ndim
            shape = [self._layout(k, "zext") for k in range(layout, middle)]
            strides = [self._layout(k, "sext") for k in range(middle, after)]
            data = self.pointer(self.word(HEADER + SLOT * place))
            arrays.append((data, shape, strides))
            layout = after
        return arrays

    def array(
        self, argument: Argument, data: Any, shape: list[Any], strides: list[Any]
    ) -> Any:
        """Return an array that starts at a ``char*``."""
        kind = argument.type
        model = self.context.data_model_manager[kind.dtype]
        pointer = self.builder.bitcast(data, model.get_data_type().as_pointer())
        struct = self.context.make_array(kind)(self.context, self.builder)
        itemsize = self.int64(argument.dtype.itemsize)
        self.target.arrays.populate_array(
            struct, pointer, shape, strides, itemsize, meminfo=None
        )
        return struct._getvalue()  # noqa: SLF001 - how Numba names it

    def cores(
        self,
        arguments: Sequence[Argument],
        cores: Sequence[Argument],
        layouts: Sequence[Any],
        indices: Sequence[Any],
    ) -> list[Any]:
        """Return what a function of core arrays takes at indices of the grid.

        The last of two counts the last loop dimension, the first one the others.
        """
        builder = self.builder
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
            values.append(self.value(core, data, shape, strides))
        return values

    def value(
        self, argument: Argument, data: Any, shape: list[Any], strides: list[Any]
    ) -> Any:
        """Return the number at a ``char*``, or the array that starts there."""
        if argument.ndim is not None:
            return self.array(argument, data, shape, strides)
        model = self.context.data_model_manager[argument.type]
        pointer = self.builder.bitcast(data, model.get_data_type().as_pointer())
        return model.load_from_data_pointer(self.builder, pointer)

    def pointer(self, address: Any) -> Any:
        """Return an address as a ``char*``."""
        return self.builder.inttoptr(address, self.target.cgutils.voidptr_t)

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


def checked(
    index: Any,
    shape: Any,  # noqa: ARG001
    argument: Any,  # noqa: ARG001
    axis: Any,  # noqa: ARG001
    report: Any,  # noqa: ARG001
) -> Any:
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

    def same(index, shape, argument, axis, report):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202, ARG001
        return index

    def choose(index, shape, argument, axis, report):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202, ARG001
        if isinstance(index, types.Integer):
            return integer
        kinds = list(index) if isinstance(index, types.BaseTuple) else []
        # With an ellipsis or a new axis, places in the index are not axes.
        plain = all(isinstance(k, types.Integer | types.SliceType) for k in kinds)
        return several if kinds and plain else same

    extending.overload(checked)(choose)


# What :mod:`xdev.atomic` is in compiled code: one emission for every device.

THREE = "array, index, value"
FORMS = {"cas": "array, index, expected, value"}  # those of other arguments
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
            seen, new = (
                context.cast(builder, operand, kind, a.dtype)
                for operand, kind in zip(args[2:], (expected, value), strict=True)
            )
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
        raise numba.core.errors.TypingError(
            f"xdev.atomic.{name}({FORMS.get(name, THREE)}) takes an array that may be "
            f"written, of {', '.join(UPDATED)}, an integer for each of its axes, and "
            f"real numbers: not ({given})"
        )
