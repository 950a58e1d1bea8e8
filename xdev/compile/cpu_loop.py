"""The inner loop of a NumPy ufunc, emitted as LLVM instructions.

There is one loop for operands that are apart, in SIMD instructions, whatever their
strides; one for a reduction into one value; and one that goes element by element, for
operands that overlap. The first says to LLVM, by alias scopes, that no store changes
what a later iteration loads. Operations that are over before the next elements are
there have loops of their own where operands lie as they commonly do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, final

from xdev.compile.cpu_memory import ALONE, LINE, Memory
from xdev.compile.divisions import ALL, INVALID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.compile.cpu import Body


# A CPU loop in blocks: operands that are not contiguous pass through rows that are.
#
# So one SIMD loop serves every layout. A number fills its row once, elements at a
# stride are copied block by block, and contiguous operands are used where they lie.

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


def emit_whole(memory: Memory, body: Body, call: Call) -> None:
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


def emit_blocks(memory: Memory, body: Body, call: Call) -> None:
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


# The fold of many values to one, in pairs of neighbours: the order stays theirs.
#
# Each pass folds values 2 k and 2 k + 1 to value k, in SIMD instructions whatever the
# function is. So the rounding errors of a sum grow as the logarithm of its length
# does.

BLOCK = 4096  # bytes that are folded at once, to a sixteenth of it: the passes over
KEPT = 16  # few values would gain nothing by SIMD
LEVELS = 56  # of a tree of such blocks: as many elements as addresses could have


def emit_fold(memory: Memory, body: Body, call: Call) -> None:
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

    def even() -> Any:
        return _equal(b, b.and_(b.load(pending), intp(1)), intp(0))

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
        with memory.repeating(even):
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


FEW = 8  # elements at strides: fewer gain nothing by SIMD
PAIRED = 16  # values of a fold: fewer gain nothing by pairs
BINARY = 2


def emit(
    context: Any,
    builder: Any,
    body: Body,
    arguments: Sequence[Any],
    *,
    reorderable: bool = False,
) -> None:
    """Emit every case of the loop, the fast ones first, and the choice between them.

    Parameters
    ----------
    context, builder : Numba's target context, LLVM's instruction builder
        Where to.
    body : Body
        What one iteration does; resolved.
    arguments : sequence of four LLVM values
        NumPy's ``args``, ``dimensions``, ``steps`` and ``data``. NumPy calls the loop
        with no data. Others give it int64 indices there, one an iteration: the first
        input, which is the output too, has ``dimensions[1]`` elements, and each
        iteration works in place on that of its index.
    reorderable : bool
        Whether reductions may fold values in pairs.
    """
    memory = Memory(context, builder)
    memory.align_stack()
    *arguments, indices = arguments
    loop = _Loop(memory, body, *arguments)
    call, operands = loop.call, body.operands
    done = builder.append_basic_block("done")
    in_place = len(body.outputs) == 1 and operands[0] == operands[-1]
    if in_place and len(body.inputs) <= BINARY:
        number = builder.ptrtoint(indices, memory.intp)
        there = builder.icmp_unsigned("!=", number, memory.intp(0))
        with builder.if_then(there, likely=False):
            loop.go_to(indices, loop.extent(arguments[1]))
            builder.branch(done)
    cases, blocks = _cases(body)
    if blocks:
        rows = [operand.itemsize for operand in operands]
        whole = builder.and_(loop.has_strides(rows), loop.apart_at(rows))
        with builder.if_then(whole):
            emit_whole(memory, body, call)
            builder.branch(done)
        with builder.if_then(loop.apart()):
            for case in cases:
                with builder.if_then(loop.has_strides(case)):
                    loop.go_through(case)
                    builder.branch(done)
            with builder.if_then(loop.suits_blocks()):
                emit_blocks(memory, body, call)
                builder.branch(done)
    else:
        for case in cases:
            alone = builder.and_(loop.has_strides(case), loop.apart_at(case))
            with builder.if_then(alone):
                loop.go_through(case)
                builder.branch(done)
    if in_place and len(body.inputs) == BINARY:
        with builder.if_then(loop.is_reduction()):
            paired = reorderable and operands[0] == operands[1]
            if paired:
                many = builder.icmp_signed(">=", call.count, memory.intp(PAIRED))
                with builder.if_then(many):
                    emit_fold(memory, body, call)
                    builder.branch(done)
            loop.reduce(few=paired)
            builder.branch(done)
    elementwise(memory, body, call, apart=False)
    builder.branch(done)
    builder.position_at_end(done)
    if body.branches:
        loop.clear_exceptions(ALL)
    elif body.work.compares:  # of NaN's NumPy's comparisons say nothing
        loop.clear_exceptions(INVALID)


def _cases(body: Body) -> tuple[list[list[int]], bool]:
    """Return strides that have loops of their own, and whether the others have one."""
    sizes, nin = [operand.itemsize for operand in body.operands], len(body.inputs)
    if nin == 1 and not body.dear:
        return [sizes], False
    if nin == BINARY and body.work.cheap:
        fixed = [[0 if k == j else s for k, s in enumerate(sizes)] for j in range(nin)]
        return ([sizes, *fixed], False) if body.light else (fixed, True)
    if nin > 1 and body.work.parameters:
        return [[0 if 0 < k < nin else size for k, size in enumerate(sizes)]], True
    return [], True


@final
class _Loop:
    """The operands of one call of the loop, and the instructions over them."""

    def __init__(
        self, memory: Memory, body: Body, args: Any, dimensions: Any, steps: Any
    ) -> None:
        self.memory, self.builder, self.body = memory, memory.builder, body
        every = range(len(body.operands))
        self.call = Call(
            [self._word(args, memory.byte, k) for k in every],
            [self._word(steps, memory.intp, k) for k in every],
            self._word(dimensions, memory.intp, 0),
        )

    def has_strides(self, case: Sequence[int]) -> Any:
        """Return whether the strides are those of a case."""
        equal = [
            self._equal(stride, constant)
            for stride, constant in zip(self.call.strides, case, strict=True)
        ]
        return self._all(equal)

    def go_through(self, case: Sequence[int]) -> None:
        """Emit the loop for the strides of a case, over operands that are apart."""
        strides = [self.memory.intp(stride) for stride in case]
        known = Call(self.call.pointers, strides, self.call.count)
        elementwise(self.memory, self.body, known, apart=True)

    def apart_at(self, case: Sequence[int]) -> Any:
        """Return whether operands are apart that lie as in a case: in rows, or numbers.

        As :meth:`apart` says, in so few instructions that nobody waits for them.
        """
        b, memory, body = self.builder, self.memory, self.body
        starts = [b.ptrtoint(pointer, memory.intp) for pointer in self.call.pointers]
        ends = []
        for start, stride, operand in zip(starts, case, body.operands, strict=True):
            one = memory.intp(operand.itemsize)
            ends.append(b.add(start, b.mul(self.call.count, one) if stride else one))
        tests = []
        for out in range(len(body.inputs), len(starts)):
            for k in range(out):
                before = b.icmp_unsigned("<=", ends[k], starts[out])
                clear = b.or_(before, b.icmp_unsigned("<=", ends[out], starts[k]))
                if len(body.outputs) == 1 and case[k] == case[out]:
                    exact = b.icmp_unsigned("==", starts[k], starts[out])
                    clear = b.or_(clear, exact)
                tests.append(clear)
        return self._all(tests)

    def apart(self) -> Any:
        """Return whether no store of one iteration touches what another loads.

        An output may be an input exactly, but only a single one: its value depends on
        every load, so that no load can move behind the store.
        """
        b, memory, body = self.builder, self.memory, self.body
        pointers, strides = self.call.pointers, self.call.strides
        sizes = [memory.intp(operand.itemsize) for operand in body.operands]
        test = memory.function("apart", "ppiiiiii", _apart, returns=True)
        last = b.sub(self.call.count, memory.intp(1))
        same = memory.intp(int(len(body.outputs) == 1))
        tests = []
        for out in range(len(body.inputs), len(pointers)):
            for k in range(out):
                pairs = ((x[k], x[out]) for x in (pointers, strides, sizes))
                arguments = [value for pair in pairs for value in pair]
                tests.append(b.call(test, [*arguments, last, same]))
        return b.icmp_signed("!=", reduce(b.and_, tests), memory.intp(0))

    def suits_blocks(self) -> Any:
        """Return whether the loop in blocks gains by its rows."""
        b, memory, body = self.builder, self.memory, self.body
        several = b.icmp_signed(">=", self.call.count, memory.intp(FEW))
        if not body.dear:  # numbers alone are worth rows
            strides = self.call.strides
            plain = contiguous(memory, body, self.call)
            near = [
                b.or_(one, self._equal(strides[k], 0)) if k < len(body.inputs) else one
                for k, one in enumerate(plain)
            ]
            several = b.and_(several, self._all(near))
        return several

    def is_reduction(self) -> Any:
        """Return whether the output and the first input are one and the same value."""
        (first, _, last), strides = self.call.pointers, self.call.strides
        one = self.builder.icmp_unsigned("==", first, last)
        return self._all([one, self._equal(strides[0], 0), self._equal(strides[2], 0)])

    def reduce(self, *, few: bool) -> None:
        """Emit the loop that keeps the running result in a register."""
        b, memory, body = self.builder, self.memory, self.body
        first, values, last = self.call.pointers
        kind, others, _ = (operand.stored for operand in body.operands)
        running = memory.cgutils.alloca_once_value(b, memory.load(kind, first))
        with memory.cgutils.for_range(b, self.call.count, intp=memory.intp) as loop:
            place = memory.at(values, loop.index, self.call.strides[1])
            pair = [b.load(running), memory.load(others, place)]
            (result,) = body.apply(memory.context, b, pair)
            b.store(result, running)
            end = b.block
        if few:
            memory.advise(end, ALONE)
        memory.store(kind, b.load(running), last)

    def go_to(self, indices: Any, extent: Any) -> None:
        """Emit the loop over indices, of which negative ones count from the end."""
        b, memory, body = self.builder, self.memory, self.body
        (first, *others), count = self.call.pointers[:-1], self.call.count
        kind, word = body.operands[0].stored, memory.intp
        typed = b.bitcast(indices, word.as_pointer())
        with memory.cgutils.for_range(b, count, intp=word) as loop:
            index = b.load(b.gep(typed, [loop.index], inbounds=True))
            negative = b.icmp_signed("<", index, word(0))
            index = b.select(negative, b.add(index, extent), index)
            place = memory.at(first, index, self.call.strides[0])
            values = [memory.load(kind, place)]
            for k, other in enumerate(others, 1):
                value = memory.at(other, loop.index, self.call.strides[k])
                values.append(memory.load(body.operands[k].stored, value))
            (result,) = body.apply(memory.context, b, values)
            memory.store(kind, result, place)
            end = b.block
        memory.advise(end, ALONE)

    def extent(self, dimensions: Any) -> Any:
        """Return how many elements there are to work on by indices."""
        return self._word(dimensions, self.memory.intp, 1)

    def clear_exceptions(self, which: int) -> None:
        """Emit a call of C's ``feclearexcept``, which is slow, where one was raised."""
        ir, b, cgutils = self.memory.ir, self.builder, self.memory.cgutils
        number = ir.IntType(32)
        kind = ir.FunctionType(number, [number])
        test, clear = (
            cgutils.get_or_insert_function(b.module, kind, f"fe{name}except")
            for name in ("test", "clear")
        )
        raised = b.icmp_signed("!=", b.call(test, [number(which)]), number(0))
        with b.if_then(raised, likely=False):
            b.call(clear, [number(which)])

    def _equal(self, value: Any, number: int) -> Any:
        return self.builder.icmp_signed("==", value, self.memory.intp(number))

    def _all(self, conditions: Sequence[Any]) -> Any:
        return reduce(self.builder.and_, conditions)

    def _word(self, pointer: Any, kind: Any, index: int) -> Any:
        typed = self.builder.bitcast(pointer, kind.as_pointer())
        place = self.memory.cgutils.gep_inbounds(self.builder, typed, index)
        return self.builder.load(place)


def _apart(memory: Memory, *arguments: Any) -> Any:
    """Emit what says whether two operands are where the other is not.

    Or lie beside each other in the same larger elements, as columns of a matrix; or are
    exactly the ``same``, where that will do.
    """
    b, intp = memory.builder, memory.intp
    *pointers, stride, other_stride, size, other_size, last, same = arguments
    zero = intp(0)
    starts = [b.ptrtoint(pointer, intp) for pointer in pointers]

    def bounds(start: Any, stride: Any, size: Any) -> tuple[Any, Any]:
        way = b.mul(last, stride)
        back = b.icmp_signed("<", way, zero)
        low = b.add(start, b.select(back, way, zero))
        return low, b.add(b.add(start, b.select(back, zero, way)), size)

    low, high = bounds(starts[0], stride, size)
    bottom, top = bounds(starts[1], other_stride, other_size)
    clear = b.or_(b.icmp_unsigned("<=", high, bottom), b.icmp_unsigned("<=", top, low))
    negative = b.icmp_signed("<", stride, zero)
    span = b.select(negative, b.neg(stride), stride)
    way = b.sub(starts[1], starts[0])

    def beside(way: Any, first: Any, second: Any) -> Any:
        least = b.icmp_signed(">=", way, first)
        return b.and_(least, b.icmp_signed("<=", b.add(way, second), span))

    exact = b.and_(b.icmp_signed("==", way, zero), b.icmp_signed("!=", same, zero))
    for each in (size, other_size):
        exact = b.and_(exact, b.icmp_signed(">=", span, each))
    either = b.or_(beside(way, size, other_size), beside(b.neg(way), other_size, size))
    equal = b.icmp_signed("==", stride, other_stride)
    found = b.or_(clear, b.and_(equal, b.or_(either, exact)))
    return b.zext(found, intp)
