"""The inner loop of a NumPy ufunc, emitted as LLVM instructions.

There is one loop for operands that are apart, in SIMD instructions, whatever their
strides; one for a reduction into one value; and one that goes element by element, for
operands that overlap. The first says to LLVM, by alias scopes, that no store changes
what a later iteration loads. Operations that are over before the next elements are
there have loops of their own where operands lie as they commonly do.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, final

from xdev.compile import cpu_blocks, cpu_fold
from xdev.compile.cpu_blocks import Call
from xdev.compile.cpu_memory import ALONE, Memory
from xdev.compile.cpu_work import CALLING
from xdev.compile.exceptions import ALL, INVALID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.compile.cpu_body import Body

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
            cpu_blocks.whole(memory, body, call)
            builder.branch(done)
        with builder.if_then(loop.apart()):
            for case in cases:
                with builder.if_then(loop.has_strides(case)):
                    loop.go_through(case)
                    builder.branch(done)
            with builder.if_then(loop.suits_blocks()):
                cpu_blocks.emit(memory, body, call)
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
                    cpu_fold.emit(memory, body, call)
                    builder.branch(done)
            loop.reduce(few=paired)
            builder.branch(done)
    cpu_blocks.elementwise(memory, body, call, apart=False)
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
    if nin == BINARY and body.work.amount < CALLING:
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
        cpu_blocks.elementwise(self.memory, self.body, known, apart=True)

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
            plain = cpu_blocks.contiguous(memory, body, self.call)
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
