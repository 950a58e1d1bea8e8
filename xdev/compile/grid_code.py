"""Machine code of functions over a grid: loops on the CPU, kernels on CUDA.

On the CPU a point's number counts the last index fastest, and threads share ranges of
the numbers. On CUDA a thread has one point, or several.
"""

from __future__ import annotations

import ctypes
import warnings
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from xdev import _optional
from xdev.compile import cpu, cubins, digests, errors, numba_cuda
from xdev.compile.cubins import FUNCTION
from xdev.compile.formulas import BITS, called, flags_call
from xdev.compile.grid import DIMENSIONS, ORDER, Grid, KernelMemory, target
from xdev.compile.numpy_functions import CPU, CUDA
from xdev.errors import DeviceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
        start, stop, words = arguments
        memory = KernelMemory(target(CPU), context, builder, words)
        _loop(grid, compiled, memory, start, stop)

    return cpu.emitted(emit, types.int64, types.int64, types.voidptr)


def writes(grid: Grid) -> frozenset[int]:
    """Return the places of the arrays that a kernel writes, of a grid that may.

    They are those which it cannot be compiled for when they are read-only.
    """
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
    function = cpu.jitted(
        grid.function, types, grid.shown, fastmath=fastmath, _nrt=False
    )
    (compiled,) = function.overloads.values()
    _check_result(grid, compiled.signature.return_type)
    return compiled


def _check_result(grid: Grid, returned: Any) -> None:
    """Refuse a function that returns something, by the type that it returns."""
    if returned is not _optional.numba().core.types.none:
        message = f"it returns {returned}, but what it computes goes to its arrays: "
        flaw = TypeError(message + "out[i] = …")
        raise errors.compile_error(grid.function, grid.shown, flaw)


def _loop(
    grid: Grid, compiled: Any, memory: KernelMemory, start: Any, stop: Any
) -> None:
    """Emit the loop over rows of points, and the one along a row."""
    builder, context, cgutils = memory.builder, memory.context, memory.target.cgutils
    context.active_code_library.add_linking_library(compiled.library)
    _, height, width = map(memory.word, range(DIMENSIONS))
    loaded = grid.load(memory)
    if grid.cores is not None:  # which tell of floating point errors, as ufuncs do
        flags_call(builder, "feclearexcept", sum(BITS))
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
        positive = builder.icmp_signed(">=", index, index.type(0))
        called(builder, "llvm.assume", cgutils.ir.VoidType(), positive)
    end = builder.add(begin, count, flags=["nsw"])
    along = cgutils.for_range_slice(builder, begin, end, begin.type(1), begin.type)
    with along as (k, _):
        values = grid.operands(memory, (i, j, k), loaded)
        # An exception ends this call alone.
        context.call_internal_no_propagate(
            builder, compiled.fndesc, compiled.signature, values
        )
    following = builder.add(first, count, flags=["nsw"])
    builder.store(following, point)
    builder.cbranch(builder.icmp_signed("<", following, stop), body, done)
    builder.position_at_end(done)
    if grid.cores is not None:
        raised = flags_call(builder, "fetestexcept", sum(BITS))
        report = builder.inttoptr(memory.word(DIMENSIONS), memory.int64.as_pointer())
        bits = builder.zext(raised, memory.int64)
        builder.atomic_rmw("or", report, bits, ORDER)


# A kernel of a cubin.


def cubin(
    grid: Grid, capability: tuple[int, int], *, narrow: bool = False
) -> tuple[bytes, str]:
    """Compile a function of indices into a kernel. No GPU is needed.

    Its one parameter is the memory of its arguments, by value.
    """
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
    compiler = target(CUDA)

    @compiler.extending.intrinsic  # type: ignore[untyped-decorator]
    def run(_typing: Any, i: Any, j: Any, k: Any, words: Any) -> Any:
        def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
            memory = KernelMemory(compiler, context, builder, args[3], narrow=narrow)
            values = grid.operands(memory, args[:DIMENSIONS], grid.load(memory))
            _call_on_cuda(context, builder, grid, values)
            return context.get_dummy_value()

        return types.void(i, j, k, words), generate

    def entry(i, j, k, words):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        run(i, j, k, words)

    signature = types.void(*[types.int64] * DIMENSIONS, types.voidptr)
    slow = numba.core.errors.NumbaPerformanceWarning
    with (
        warnings.catch_warnings(action="ignore", category=slow),  # of what is refused
        errors.explained(grid.function, grid.shown, " for CUDA"),
    ):
        try:
            return numba_cuda.compiled(
                entry, signature, capability, fastmath=grid.fastmath
            )
        except Exception:
            # Numba knows the line; numba-cuda does not where it calls in between.
            _host_function(grid)
            raise


def _call_on_cuda(
    context: Any, builder: Any, grid: Grid, values: Sequence[Any]
) -> None:
    """Emit a call of the function; an exception ends this point of the grid alone."""
    types = _optional.numba().core.types
    compiled = context.compile_subroutine(
        builder, grid.function, types.void(*grid.types()), caching=False
    )
    _check_result(grid, compiled.signature.return_type)
    context.call_internal_no_propagate(
        builder, compiled.fndesc, compiled.signature, values
    )
