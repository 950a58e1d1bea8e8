"""Kernels over a grid on the CPU: a loop over a range of the grid's points.

A point's number counts the last index fastest. Ranges of the numbers are what threads
share.
"""

from __future__ import annotations

import ctypes
import importlib
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from xdev import _optional
from xdev.compile import digests, faults, loops, subroutines
from xdev.compile.grid import (
    DIMENSIONS,
    Grid,
    atomics,
    bounds,
    check_result,
    overlap,
)
from xdev.compile.grid.emission import Memory, Target
from xdev.compile.refusals import cause, compiler_errors, refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_char_p)


@cache
def target() -> Target:
    """Return Numba's own functions."""
    numba = _optional.numba()
    arrays = importlib.import_module("numba.np.arrayobj")

    def add_float(builder: Any, pointer: Any, value: Any) -> Any:
        return builder.atomic_rmw("fadd", pointer, value, atomics.ORDER)

    return Target(numba.core.cgutils, arrays, add_float, attrgetter("call_conv"))


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
    made = loops.kept(digest, grid.parts, name, lambda: loops.code_of(_compiled(grid)))
    function = _PROTOTYPE(made.address)
    function.code = made  # type: ignore[attr-defined] # lives as long as the function
    return function


@_optional.numba_unset()
def _compiled(grid: Grid) -> Any:
    """Return Numba's C function of the loop."""
    numba = _optional.numba()
    types = numba.core.types
    compiled = device_function(
        grid.function, grid.types(), grid.arguments, fastmath=grid.fastmath
    )
    faults.check(grid.function, grid.arguments, compiled)

    @numba.extending.intrinsic  # type: ignore[untyped-decorator]
    def run(_typing: Any, start: Any, stop: Any, words: Any) -> Any:
        def generate(context: Any, builder: Any, _: Any, given: Any) -> Any:
            start, stop, words = given
            memory = Memory(target(), context, builder, words)
            points = partial(_loop, grid, compiled)
            overlap.emit(memory, words, grid.arguments, (start, stop), points)
            return context.get_dummy_value()

        return types.void(start, stop, words), generate

    def inner(start, stop, words):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        run(start, stop, words)

    signature = types.void(types.int64, types.int64, types.voidptr)
    return numba.cfunc(signature, _nrt=False)(inner)


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
    numba = _optional.numba()
    for served in (atomics, bounds):
        served.serve(numba.extending, target())
    options = {"error_model": "numpy", "fastmath": fastmath, "forceinline": True}
    bare = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # a loop calls it
    made = numba.njit(_nrt=False, **bare, **options)(function)
    try:
        with subroutines.unraising():
            made.compile(tuple(kinds))
    except compiler_errors() as error:
        raise refusal(function, shown, error) from cause(error)
    (compiled,) = made.overloads.values()
    check_result(function, shown, compiled.signature.return_type)
    return compiled


def call(memory: Memory, compiled: Any, values: Sequence[Any]) -> None:
    """Emit a call of a compiled function; an exception ends this call alone."""
    context = memory.context
    context.active_code_library.add_linking_library(compiled.library)
    context.call_internal_no_propagate(
        memory.builder, compiled.fndesc, compiled.signature, values
    )


def _loop(grid: Grid, compiled: Any, memory: Memory, start: Any, stop: Any) -> None:
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


def _assume(memory: Memory, condition: Any) -> None:
    """Emit a promise to the optimiser."""
    ir = memory.target.cgutils.ir
    kind = ir.FunctionType(ir.VoidType(), [ir.IntType(1)])
    assume = memory.target.cgutils.get_or_insert_function(
        memory.builder.module, kind, "llvm.assume"
    )
    memory.builder.call(assume, [condition])
