"""A CPU loop in blocks: operands that are not contiguous pass through rows that are.

So one SIMD loop serves every layout. A number fills its row once, elements at a stride
are copied block by block, and contiguous operands are used where they lie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from xdev.compile.cpu_memory import LINE, Memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.compile.cpu_body import Body

ROOM = 16384  # bytes of the rows of all operands: a part of the first cache
LONG, SHORT = 256, LINE  # elements of a row; whole cache lines, however small they are


@final
@dataclass(frozen=True, slots=True)
class Call:
    """What a loop is called with: LLVM's values."""

    pointers: Sequence[Any]
    strides: Sequence[Any]
    count: Any


def elementwise(memory: Memory, body: Body, call: Call, *, apart: bool) -> None:
    """Emit the loop that loads, computes and stores at given strides.

    Parameters
    ----------
    memory, body, call
        Where to, what an iteration does, and on which operands.
    apart : bool
        Whether no store changes what another iteration loads.
    """
    b, nin = memory.builder, len(body.inputs)
    with memory.cgutils.for_range(b, call.count, intp=memory.intp) as loop:
        places = [
            memory.at(pointer, loop.index, stride)
            for pointer, stride in zip(call.pointers, call.strides, strict=True)
        ]
        values = [
            memory.load(operand.stored, place, apart=apart)
            for operand, place in zip(body.inputs, places[:nin], strict=True)
        ]
        results = body.apply(memory.context, b, values)
        for operand, place, result in zip(
            body.outputs, places[nin:], results, strict=True
        ):
            memory.store(operand.stored, result, place, apart=apart)
        last = b.block
    advice = body.advice(apart=apart)
    if advice:
        memory.advise(last, advice)


def contiguous(memory: Memory, body: Body, call: Call) -> list[Any]:
    """Return which operands are contiguous."""
    return [
        memory.builder.icmp_signed("==", stride, memory.intp(operand.itemsize))
        for stride, operand in zip(call.strides, body.operands, strict=True)
    ]


def whole(memory: Memory, body: Body, call: Call) -> None:
    """Emit the loop over operands that are contiguous and apart."""
    memory.builder.call(_row_of(memory, body), [*call.pointers, call.count])


def _row_of(memory: Memory, body: Body) -> Any:
    """Return the loop as a function: loops inside a loop take LLVM longer."""
    return memory.function("row", "p" * len(body.operands) + "i", _row, body)


def _row(memory: Memory, body: Body, *arguments: Any) -> None:
    memory.align_stack()
    *pointers, count = arguments
    strides = [memory.intp(operand.itemsize) for operand in body.operands]
    elementwise(memory, body, Call(pointers, strides, count), apart=True)


def emit(memory: Memory, body: Body, call: Call) -> None:
    """Emit the loop over operands that are apart, whatever their strides.

    Where the body is not ``dear`` they are contiguous, or inputs that are numbers. What
    differs between operands is in values, without a branch: LLVM would make a loop for
    each combination.
    """
    b, intp, nin = memory.builder, memory.intp, len(body.inputs)
    sizes = [operand.itemsize for operand in body.operands]
    plain = contiguous(memory, body, call)
    length = max(min(LONG, ROOM // sum(sizes)) // LINE * LINE, SHORT)
    rows = [memory.room(length * size) for size in sizes]
    none, block = intp(0), intp(length)
    starts, steps, copied = [], [], []
    for k, size in enumerate(sizes):
        there = plain[k]
        if k < nin > 1:  # a function of one number is not worth the code
            number = b.icmp_signed("==", call.strides[k], none)
            with b.if_then(number):
                count = memory.smaller(call.count, block)
                memory.fill(rows[k], call.pointers[k], count, size)
            there = b.or_(there, number)
        starts.append(b.select(plain[k], call.pointers[k], rows[k]))
        steps.append(b.select(plain[k], call.strides[k], none))
        copied.append(b.select(there, none, block))
    moving = range(len(sizes) if body.dear else 0)
    with memory.cgutils.for_range_slice(b, none, call.count, block, intp) as (base, _):
        n = memory.smaller(block, b.sub(call.count, base))
        own = [
            memory.at(pointer, base, stride)
            for pointer, stride in zip(call.pointers, call.strides, strict=True)
        ]
        used = [memory.at(s, base, step) for s, step in zip(starts, steps, strict=True)]
        strides = [
            (call.strides[k], intp(size)) if k >= nin else (intp(size), call.strides[k])
            for k, size in enumerate(sizes)
        ]
        for k in moving:
            if k < nin:
                count = memory.smaller(n, copied[k])
                memory.copy(rows[k], own[k], strides[k], count, sizes[k])
        b.call(_row_of(memory, body), [*used, n])
        for k in moving:
            if k >= nin:
                count = memory.smaller(n, copied[k])
                memory.copy(own[k], rows[k], strides[k], count, sizes[k])
