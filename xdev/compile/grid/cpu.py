"""Kernels over a grid on the CPU: a loop over a range of the grid's points.

A point's number counts the last index fastest. Ranges of the numbers are what threads
share.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from xdev import _optional
from xdev._disk_cache import DiskCache
from xdev.compile import cpu, digests, errors, loops
from xdev.compile.formulas import called
from xdev.compile.grid import (
    DIMENSIONS,
    Grid,
    KernelMemory,
    check_result,
    target,
)
from xdev.compile.numpy_functions import CPU

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.compile.grid import Argument


_written = DiskCache("writes")
_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_char_p)


def loop(grid: Grid) -> Callable[[int, int, bytes], None]:
    """Return ``run(start, stop, memory)``, which computes a range of points.

    It leaves the interpreter's lock to others meanwhile.

    Parameters
    ----------
    grid : Grid
        The function and its types.

    Raises
    ------
    TypeError
        The function cannot be compiled for these types; the text has the reason and
        the source line.
    """
    digest, name = digests.digest(grid.function), grid.function.__name__
    address = loops.load_or_compile(digest, grid.parts, name, partial(_compiled, grid))
    function = _PROTOTYPE(address)
    function.address = address  # type: ignore[attr-defined]
    return function


@_optional.numba_unset()
def _compiled(grid: Grid) -> tuple[bytes, str]:
    """Return the object file of the loop, and its name there."""
    types = _optional.numba().core.types
    compiled = _compiled_for(grid, grid.arguments)
    errors.refuse_faults(grid.function, grid.arguments, compiled)

    def emit(context: Any, builder: Any, arguments: Any) -> None:
        start, stop, words = arguments
        memory = KernelMemory(target(CPU), context, builder, words)
        _loop(grid, compiled, memory, start, stop)

    return cpu.emitted(emit, types.int64, types.int64, types.voidptr)


def writes(grid: Grid) -> frozenset[int]:
    """Return the places of the arrays that a kernel writes.

    They are those which it cannot be compiled for when they are read-only.

    Parameters
    ----------
    grid : Grid
        The function, and types of arrays that may be written.

    Raises
    ------
    TypeError
        It cannot be compiled for these either.
    """
    function, arguments = grid.function, grid.arguments
    digest = digests.digest(function)
    parts = "writes", *grid.parts, digests.environment()
    key = None if digest is None else digests.joined(digest, *parts)
    written = None if key is None else _written.load(key)
    if written is None:
        _compiled_for(grid, arguments)
        places = bytearray()
        for k, own in enumerate(arguments):
            try:
                frozen = own._replace(writable=False)
                _compiled_for(grid, (*arguments[:k], frozen, *arguments[k + 1 :]))
            except TypeError:
                places.append(k)
        written = bytes(places)
        if key is not None:
            _written.save(key, written, function.__name__)
    return frozenset(written)


def _compiled_for(grid: Grid, arguments: tuple[Argument, ...]) -> Any:
    kinds = replace(grid, arguments=arguments).types()
    return device_function(grid.function, kinds, arguments, fastmath=grid.fastmath)


@_optional.numba_unset()
def device_function(
    function: Callable[..., Any],
    kinds: Sequence[Any],
    shown: Sequence[object],
    *,
    fastmath: bool,
) -> Any:
    """Return Numba's compilation of a function for types, to be called by a loop.

    Parameters
    ----------
    function : callable
        A Python function that returns nothing.
    kinds : sequence
        What it takes, in Numba's types.
    shown : sequence
        The types that errors show.
    fastmath : bool
        Whether floating point arithmetic may be reordered and contracted.

    Raises
    ------
    TypeError
        It cannot be compiled for them, or returns something.
    """
    target(CPU)
    dispatcher = cpu.jitted(function, kinds, shown, fastmath=fastmath, _nrt=False)
    (compiled,) = dispatcher.overloads.values()
    check_result(function, shown, compiled.signature.return_type)
    return compiled


def call(memory: KernelMemory, compiled: Any, values: Sequence[Any]) -> None:
    """Emit a call of a compiled function; an exception ends this call alone."""
    context = memory.context
    context.active_code_library.add_linking_library(compiled.library)
    context.call_internal_no_propagate(
        memory.builder, compiled.fndesc, compiled.signature, values
    )


def _loop(
    grid: Grid, compiled: Any, memory: KernelMemory, start: Any, stop: Any
) -> None:
    """Emit the loop over rows of points, and the one along a row."""
    builder, cgutils = memory.builder, memory.target.cgutils
    _, height, width = memory.words(0, DIMENSIONS)
    loaded = grid.load(memory)
    point = cgutils.alloca_once_value(builder, start)
    body = builder.append_basic_block("row")
    done = builder.append_basic_block("done")
    builder.cbranch(builder.icmp_signed("<", start, stop), body, done)
    builder.position_at_end(body)
    first = builder.load(point)
    row = builder.sdiv(first, width)
    begin = builder.srem(first, width)
    i, j = row.type(0), row
    if grid.indices == DIMENSIONS:  # else there is but one plane
        i, j = builder.sdiv(row, height), builder.srem(row, height)
    left, room = builder.sub(stop, first), builder.sub(width, begin)
    count = builder.select(builder.icmp_signed("<", left, room), left, room)
    for index in (i, j, begin):  # so that nothing is looked up from an array's end
        _assume(memory, builder.icmp_signed(">=", index, index.type(0)))
    end = builder.add(begin, count, flags=["nsw"])
    with cgutils.for_range_slice(builder, begin, end, begin.type(1), begin.type) as (
        k,
        _,
    ):
        call(memory, compiled, grid.operands(memory, (i, j, k), loaded))
    following = builder.add(first, count, flags=["nsw"])
    builder.store(following, point)
    builder.cbranch(builder.icmp_signed("<", following, stop), body, done)
    builder.position_at_end(done)


def _assume(memory: KernelMemory, condition: Any) -> None:
    """Emit a promise to the optimiser."""
    nothing = memory.target.cgutils.ir.VoidType()
    called(memory.builder, "llvm.assume", nothing, condition)


# Functions of core arrays on the CPU: the inner loop of a generalized NumPy ufunc.

Places = tuple[tuple[int, ...], ...]


def inner_loop(
    function: Callable[..., Any],
    arguments: tuple[Argument, ...],
    places: Places,
    *,
    fastmath: bool,
) -> int:
    """Compile the inner loop of a generalized ufunc.

    Parameters
    ----------
    function : callable
        ``function(*arguments)``, plain Python.
    arguments : tuple of Argument
        The operands' types, of arrays with any strides.
    places : tuple of tuple of int
        For each operand the places of its core dimensions among all; an array without
        any has one axis of length 1.
    fastmath : bool
        Whether floating point arithmetic may be reordered and contracted.

    Returns
    -------
    int
        The address of a C function of NumPy's inner loop signature.

    Raises
    ------
    TypeError
        The function cannot be compiled for these types; the text has the reason and
        the source line.
    """
    parts = "cores", arguments, places, fastmath
    name = function.__name__

    make = partial(_compiled_inner, function, arguments, places, fastmath=fastmath)
    return loops.load_or_compile(digests.digest(function), parts, name, make)


@_optional.numba_unset()
def _compiled_inner(
    function: Callable[..., Any],
    arguments: tuple[Argument, ...],
    places: Places,
    *,
    fastmath: bool,
) -> tuple[bytes, str]:
    """Return its object file and name: arrays without gaps have code of their own."""
    cases = [arguments]
    if any(places):
        dense = (a._replace(contiguous=a.ndim is not None) for a in arguments)
        cases = [arguments, tuple(dense)]
    compiled = [
        device_function(function, [a.type for a in case], arguments, fastmath=fastmath)
        for case in cases
    ]
    for one in compiled:
        errors.refuse_faults(function, arguments, one)

    emit = partial(_cores, places, cases, compiled)
    return cpu.emitted(emit, *[_optional.numba().core.types.voidptr] * 4)


def _cores(
    places: Places,
    cases: Sequence[tuple[Argument, ...]],
    compiled: Sequence[Any],
    context: Any,
    builder: Any,
    pointers: Sequence[Any],
) -> None:
    """Emit the loop over what NumPy hands over: addresses, extents and strides.

    Of two cases the second is for arrays that lie in C order without gaps.
    """
    args, dimensions, steps = (
        KernelMemory(target(CPU), context, builder, pointer) for pointer in pointers[:3]
    )
    size, count = dimensions.word(0), len(places)
    data, outer = map(args.pointer, args.words(0, count)), steps.words(0, count)
    following = iter(steps.words(count, sum(map(len, places))))
    operands, gaps = [], []
    for own, argument, start in zip(places, cases[0], data, strict=True):
        shape = [dimensions.word(1 + place) for place in own]
        strides = [next(following) for _ in own]
        step = itemsize = args.int64(argument.dtype.itemsize)
        for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
            gaps.append(builder.icmp_signed("!=", stride, step))
            step = builder.mul(step, extent)
        if argument.ndim is not None and not own:  # an array of one element
            shape, strides = [args.int64(1)], [itemsize]
        operands.append((start, shape, strides))

    def loop(case: int) -> None:
        cgutils = args.target.cgutils
        with cgutils.for_range(builder, size, intp=args.int64) as turn:
            values = []
            each = zip(cases[case], operands, outer, strict=True)
            for argument, (start, *layout), step in each:
                place = args.moved(start, builder.mul(turn.index, step))
                values.append(args.value(argument, place, *layout))
            call(args, compiled[case], values)

    if not gaps:
        loop(0)
        return
    with builder.if_else(reduce(builder.or_, gaps)) as ways:
        for case, way in enumerate(ways):
            with way:
                loop(case)
