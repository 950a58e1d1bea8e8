"""The fold of many values to one, in pairs of neighbours: the order stays theirs.

Each pass folds values 2 k and 2 k + 1 to value k, in SIMD instructions whatever the
function is. So the rounding errors of a sum grow as the logarithm of its length does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xdev.compile.cpu_blocks import Call
    from xdev.compile.cpu_body import Body
    from xdev.compile.cpu_memory import Memory

BLOCK = 4096  # bytes that are folded at once, to a sixteenth of it: the passes over
KEPT = 16  # few values would gain nothing by SIMD
LEVELS = 56  # of a tree of such blocks: as many elements as addresses could have


def emit(memory: Memory, body: Body, call: Call) -> None:
    """Emit the fold of the second operand's values onto the first's, which is one.

    Values are kept as they are computed with: halves are rounded once, at the end.
    """
    b, intp, cgutils = memory.builder, memory.intp, memory.cgutils
    operand, (into, values, _), stride = body.inputs[0], call.pointers, call.strides[1]
    kind = operand.computed
    size = memory.context.get_abi_sizeof(memory.context.get_data_type(kind))
    block, kept = BLOCK // size, BLOCK // size // KEPT
    fold = memory.function("fold", "piip", _fold, body, size, returns=True)
    row, stack = memory.room(BLOCK), memory.room((LEVELS * kept + 1) * size)

    def place(index: Any) -> Any:
        return memory.at(stack, index, intp(size))

    first = memory.load(operand.stored, into)
    memory.store(kind, body.widened(memory.context, b, operand, first), stack)
    top = cgutils.alloca_once_value(b, intp(1))  # values on the stack
    blocks = cgutils.alloca_once_value(b, intp(0))
    pending = cgutils.alloca_once(b, memory.intp)
    with cgutils.for_range_slice(b, intp(0), call.count, intp(block), intp) as (k, _):
        n = memory.smaller(intp(block), b.sub(call.count, k))
        source = _source(memory, body, memory.at(values, k, stride), stride, row, n)
        made = b.call(fold, [source, n, intp(kept), place(b.load(top))])
        b.store(b.add(b.load(top), made), top)
        b.store(b.add(b.load(blocks), intp(1)), blocks)
        b.store(b.select(_equal(b, n, intp(block)), b.load(blocks), intp(1)), pending)
        # Two neighbours that are of as many blocks become one, as in a binary counter.
        with memory.repeating(lambda: _even(b, b.load(pending))):
            b.store(b.sub(b.load(top), intp(kept)), top)
            pair = place(b.sub(b.load(top), intp(kept)))
            b.call(fold, [pair, intp(2 * kept), intp(kept), pair])
            b.store(b.ashr(b.load(pending), intp(1)), pending)
    with memory.repeating(lambda: b.icmp_signed(">", b.load(top), intp(1))):
        n = memory.smaller(intp(block), b.load(top))
        rest = b.sub(b.load(top), n)
        b.call(fold, [place(rest), n, intp(1), place(rest)])
        b.store(b.add(rest, intp(1)), top)
    result = memory.load(kind, stack)
    result = body.narrowed(memory.context, b, body.outputs[0], result)
    memory.store(operand.stored, result, into)


def _source(
    memory: Memory, body: Body, values: Any, stride: Any, row: Any, count: Any
) -> Any:
    """Return where values lie in a row as they are computed with."""
    b, intp, operand = memory.builder, memory.intp, body.inputs[1]
    own = intp(operand.itemsize)
    if operand.widen is None:
        plain = _equal(b, stride, own)
        with b.if_then(b.not_(plain)):
            memory.copy(row, values, (own, stride), count, operand.itemsize)
        return b.select(plain, values, row)
    kind = operand.computed
    size = intp(memory.context.get_abi_sizeof(memory.context.get_data_type(kind)))
    with memory.cgutils.for_range(b, count, intp=intp) as loop:
        place = memory.at(values, loop.index, stride)
        value = memory.load(operand.stored, place, apart=True)
        value = body.widened(memory.context, b, operand, value)
        memory.store(kind, value, memory.at(row, loop.index, size), apart=True)
    return row


def _fold(memory: Memory, body: Body, size: int, *arguments: Any) -> Any:
    """Emit what folds a row until so few values are left; it returns how many.

    Each pass writes where the one before has not: into two rooms by turns.
    """
    source, count, least, target = arguments
    b, intp, cgutils = memory.builder, memory.intp, memory.cgutils
    kind, one, step = body.inputs[0].computed, intp(1), intp(size)
    pairs = memory.function("pairs", "ppi", _pairs, body, size)
    row = cgutils.alloca_once_value(b, source)
    free = cgutils.alloca_once_value(b, memory.room(BLOCK // 2))
    spare = cgutils.alloca_once_value(b, memory.room(BLOCK // 4))
    n = cgutils.alloca_once_value(b, count)
    with memory.repeating(lambda: b.icmp_signed(">", b.load(n), least)):
        half, odd = b.ashr(b.load(n), one), b.and_(b.load(n), one)
        read, written = b.load(row), b.load(free)
        b.call(pairs, [read, written, half])
        with b.if_then(_equal(b, odd, one)):
            last = memory.load(kind, memory.at(read, b.sub(b.load(n), one), step))
            memory.store(kind, last, memory.at(written, half, step))
        b.store(b.add(half, odd), n)
        b.store(written, row)
        b.store(b.load(spare), free)
        b.store(written, spare)
    cgutils.raw_memcpy(b, target, b.load(row), b.load(n), size)
    return b.load(n)


def _pairs(memory: Memory, body: Body, size: int, *arguments: Any) -> None:
    """Emit one pass: a function of its own, in which nothing written is read."""
    memory.align_stack()
    read, written, count = arguments
    kind, b, intp = body.inputs[0].computed, memory.builder, memory.intp
    with memory.cgutils.for_range(b, count, intp=intp) as loop:
        left = memory.at(read, loop.index, intp(2 * size))
        values = [
            memory.load(kind, place, apart=True)
            for place in (left, memory.at(left, intp(1), intp(size)))
        ]
        (value,) = body.compute(memory.context, b, values)
        place = memory.at(written, loop.index, intp(size))
        memory.store(kind, value, place, apart=True)


def _equal(builder: Any, one: Any, other: Any) -> Any:
    return builder.icmp_signed("==", one, other)


def _even(builder: Any, number: Any) -> Any:
    one = number.type(1)
    return builder.icmp_signed("==", builder.and_(number, one), number.type(0))
