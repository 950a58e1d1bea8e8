"""A loop for arrays that lie apart, beside the one for any: chosen as it is called.

What a store through one array does to the others is nothing then: values stay in
registers from one point to the next, and no row of points is tested for it again.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from xdev.compile.grid.emission import Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.compile.grid import Argument


def emit(
    memory: Memory,
    words: Any,
    arguments: Sequence[Argument],
    bounds: Sequence[Any],
    loop: Callable[[Memory, Any, Any], None],
) -> None:
    """Emit a loop, twice if it has arrays that may overlap.

    Parameters
    ----------
    memory : Memory
        Where the instructions go, and the arguments' words.
    words : LLVM value
        The address of those.
    arguments : sequence of Argument
        The kernel's.
    bounds : two LLVM values
        From which point to which.
    loop : callable
        ``loop(memory, start, stop)`` emits it.
    """
    builder, arrays = memory.builder, memory.layouts(arguments)
    apart = _apart(memory, arguments, arrays)
    if apart is None:
        loop(memory, *bounds)
        return
    with builder.if_else(apart) as (quick, any_):
        with quick:
            data = [where for where, _, _ in arrays]
            function = _function(memory, words.type, len(data), loop)
            builder.call(function, [*bounds, words, *data])
        with any_:
            loop(memory, *bounds)


def _function(
    memory: Memory, words: Any, count: int, loop: Callable[[Memory, Any, Any], None]
) -> Any:
    """Return a function of the loop, whose arrays are promised to lie apart."""
    module, ir = memory.builder.module, memory.target.cgutils.ir
    char = memory.target.cgutils.voidptr_t
    kinds = [memory.int64, memory.int64, words, *[char] * count]
    name = module.get_unique_name("apart")
    made = ir.Function(module, ir.FunctionType(ir.VoidType(), kinds), name)
    made.linkage = "internal"
    made.attributes.add("noinline")
    start, stop, given, *arrays = made.args
    for each in (given, *arrays):
        each.add_attribute("noalias")
    builder = ir.IRBuilder(made.append_basic_block())
    rest = memory.target, memory.context, builder, given
    loop(Memory(*rest, arrays=arrays), start, stop)
    builder.ret_void()
    return made


def _apart(
    memory: Memory,
    arguments: Sequence[Argument],
    arrays: Sequence[tuple[Any, list[Any], list[Any]]],
) -> Any:
    """Return whether no array that may be written overlaps another; None: none can."""
    builder, result = memory.builder, None
    kinds = [argument for argument in arguments if argument.ndim is not None]
    spans = [_span(memory, *each) for each in zip(kinds, arrays, strict=True)]
    for one, other in combinations(range(len(kinds)), 2):
        if kinds[one].writable or kinds[other].writable:
            before = builder.icmp_unsigned("<=", spans[one][1], spans[other][0])
            behind = builder.icmp_unsigned("<=", spans[other][1], spans[one][0])
            here = builder.or_(before, behind)
            result = here if result is None else builder.and_(result, here)
    return result


def _span(
    memory: Memory, argument: Argument, array: tuple[Any, list[Any], list[Any]]
) -> tuple[Any, Any]:
    """Return the address that an array begins at, and the one that it ends before."""
    builder, zero = memory.builder, memory.int64(0)
    data, shape, strides = array
    low = builder.ptrtoint(data, memory.int64)
    high = builder.add(low, memory.int64(argument.dtype.itemsize))
    for extent, stride in zip(shape, strides, strict=True):
        way = builder.mul(builder.sub(extent, memory.int64(1)), stride)
        down = builder.icmp_signed("<", way, zero)
        low = builder.add(low, builder.select(down, way, zero))
        high = builder.add(high, builder.select(down, zero, way))
    return low, high
