"""The inner loops of NumPy's ufuncs, emitted as LLVM instructions, and their ufuncs.

Of NumPy's C function there is one loop for operands that are apart, in SIMD
instructions, whatever their strides; one for a reduction into one value; and one that
goes element by element, for operands that overlap. The first says to LLVM, by
arguments without aliases, that no store changes what a later iteration loads.
Operations that are over before the next elements are there have loops of their own
where one of two operands is a number.
"""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from functools import cache, partial, reduce
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from xdev import _optional
from xdev._forks import immortal
from xdev.compile import numpy_functions
from xdev.compile.formulas import ALL, INVALID, flags_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Rows = Sequence["Strided"]

LINE = 64  # bytes of a cache line
REGISTER = 64  # bytes of the largest one: on the stack it may not straddle cache lines
# So many iterations LLVM unrolls, of loops that gain nothing by SIMD, and would take
# longer to compile; of those that go element by element; of copies.
ALONE, UNROLLED, COPIED = 1, 8, 4
WORD = 8  # bytes of the largest integer
ROOM = 16384  # bytes of the rows of all operands: a part of the first cache
LONG, SHORT = 256, LINE  # elements of a row; whole cache lines, however small they are
FEW = 8  # elements at strides: fewer gain nothing by SIMD
PAIRED = 16  # values of a fold: fewer gain nothing by pairs
BLOCK = 8192  # bytes of values that are folded in pairs at once
BINARY = 2


class Strided(NamedTuple):
    """Values at a stride: their Numba type, where the first is, bytes to the next."""

    kind: Any
    start: Any
    stride: Any


@final
class Emitter:
    """Loads, stores and loops of one function that is being emitted."""

    def __init__(self, context: Any, builder: Any) -> None:  # of Numba's, and LLVM's
        numba = _optional.numba()
        self.context, self.builder = context, builder
        self.cgutils, self.ir = numba.core.cgutils, numba.core.cgutils.ir
        self.intp = context.get_value_type(numba.core.types.intp)
        self.byte = self.cgutils.voidptr_t
        # The function may put whole registers on the stack where they belong.
        builder.function.attributes.update([f"alignstack({REGISTER})"])

    def at(self, pointer: Any, index: Any, stride: Any) -> Any:
        """Return where an element is."""
        b = self.builder
        return b.gep(pointer, [b.mul(index, stride)], inbounds=True)

    def load(self, kind: Any, pointer: Any) -> Any:
        """Return the value at a place."""
        model = self.context.data_model_manager[kind]
        pointer = self.builder.bitcast(pointer, model.get_data_type().as_pointer())
        return model.load_from_data_pointer(self.builder, pointer)

    def store(self, kind: Any, value: Any, pointer: Any) -> None:
        """Put a value at a place."""
        data = self.context.data_model_manager[kind].get_data_type()
        pointer = self.builder.bitcast(pointer, data.as_pointer())
        self.context.pack_value(self.builder, kind, value, pointer)

    def word(self, pointer: Any, kind: Any, index: Any) -> Any:
        """Return one of the words at a place: of an LLVM type."""
        typed = self.builder.bitcast(pointer, kind.as_pointer())
        return self.builder.load(self.builder.gep(typed, [index], inbounds=True))

    def equal(self, one: Any, other: Any) -> Any:
        """Return whether two words are equal."""
        return self.builder.icmp_signed("==", one, other)

    def every(self, conditions: Iterable[Any]) -> Any:
        """Return whether all conditions hold."""
        return reduce(self.builder.and_, conditions)

    def smaller(self, one: Any, other: Any) -> Any:
        """Return the smaller of two lengths."""
        b = self.builder
        return b.select(b.icmp_signed("<", one, other), one, other)

    def room(self, nbytes: int) -> Any:
        """Return bytes on the stack for as long as the function runs, not cleared."""
        kind = self.ir.ArrayType(self.ir.IntType(8), nbytes)
        with self.builder.goto_entry_block():
            place = self.builder.alloca(kind)
        place.align = LINE
        return self.builder.bitcast(place, self.byte)

    def loop(
        self,
        count: Any,
        inputs: Sequence[Strided],
        outputs: Sequence[Strided],
        compute: Callable[[list[Any]], Sequence[Any]] = list,
        *,
        unroll: int = 0,
    ) -> None:
        """Emit a loop that loads, computes, or else copies, and stores.

        ``compute`` emits the outputs' values of the inputs'. So many iterations LLVM
        unrolls; 0: as it likes, by SIMD.
        """
        b = self.builder
        with self.cgutils.for_range(b, count, intp=self.intp) as loop:
            places = [self.at(row.start, loop.index, row.stride) for row in inputs]
            values = list(map(self.load, (row.kind for row in inputs), places))
            for row, value in zip(outputs, compute(values), strict=True):
                place = self.at(row.start, loop.index, row.stride)
                self.store(row.kind, value, place)
            end = b.block
        if unroll:
            self._unroll(end, unroll)

    def _unroll(self, block: Any, unroll: int) -> None:
        """Have LLVM unroll the loop whose last block this is, without SIMD code."""
        metadata, ir = self.builder.module.add_metadata, self.ir
        scalar = metadata(["llvm.loop.vectorize.enable", ir.IntType(1)(0)])
        count = metadata(["llvm.loop.unroll.count", ir.IntType(32)(unroll)])
        number = len(self.builder.module.metadata)
        loop = metadata([metadata([f"xdev loop {number}"])])
        # LLVM wants a loop's first operand to be itself.
        loop.operands = (loop, scalar, count)
        block.terminator.set_metadata("llvm.loop", loop)

    def call(
        self, name: str, emit: Callable[..., None], of: tuple[Any, ...], *arguments: Any
    ) -> None:
        """Emit a call of a function of this module, emitted once and never inlined.

        Loops inside a loop would take LLVM longer. In the function no two pointers lead
        to the same place, so that no store changes what a later iteration loads.
        ``emit`` takes the function's own emitter, what is known now, ``of``, and the
        arguments, which are pointers and words.
        """
        b, ir, name = self.builder, self.ir, f"xdev_{name}"
        callee = b.module.globals.get(name)
        if callee is None:
            kinds = [argument.type for argument in arguments]
            callee = ir.Function(b.module, ir.FunctionType(ir.VoidType(), kinds), name)
            callee.linkage = "internal"
            callee.attributes.add("noinline")
            for argument in callee.args:
                if argument.type == self.byte:
                    argument.add_attribute("noalias")
            own = ir.IRBuilder(callee.append_basic_block("entry"))
            emit(Emitter(self.context, own), *of, *callee.args)
            own.ret_void()
        b.call(callee, arguments)


# What one iteration does, and what it costs.

CALLING = 100  # simple instructions that take as long as a call
LIGHT = 10  # simple instructions that take less time than loading and storing do
COPYING = 4  # simple instructions that copying an element is worth


class Work(NamedTuple):
    """What a function costs."""

    amount: int  # in simple instructions
    branches: bool  # whether there are conditions, or loops, that are no instruction
    compares: bool  # whether floats are compared by size


class LoopOperand(NamedTuple):
    """One operand: its Numba type in memory, that of its values, their sizes."""

    stored: Any
    computed: Any
    itemsize: int
    width: int


class Body(NamedTuple):
    """What one iteration does: a scalar function, compiled by Numba, on operands.

    SIMD code computes both sides of a condition, so that ``log(x) if x > 0 else 0``
    would have NumPy warn of a logarithm not taken: where the function has ``branches``
    the loop clears the exceptions.
    """

    compiled: Any
    inputs: list[LoopOperand]
    outputs: list[LoopOperand]
    branches: bool
    work: Work
    library: Any  # the function's, whose mathematics is vectorized

    @property
    def operands(self) -> list[LoopOperand]:
        """Return the inputs, then the outputs, as NumPy has them."""
        return self.inputs + self.outputs

    @property
    def dear(self) -> bool:
        """Return whether an iteration takes longer than copying its elements does."""
        work = self.work
        return work.branches or work.amount > COPYING * len(self.operands)

    @property
    def cases(self) -> list[list[int]]:
        """Return strides that have loops of their own: of one element, and numbers."""
        sizes, nin = [operand.itemsize for operand in self.operands], len(self.inputs)
        numbers = range(nin if nin == BINARY and self.work.amount < CALLING else 0)
        zeros = ([size * (k != j) for k, size in enumerate(sizes)] for j in numbers)
        return [sizes, *zeros]

    @property
    def blocks(self) -> bool:
        """Return whether other strides have the loop in blocks."""
        nin, work = len(self.inputs), self.work
        light = not work.branches and work.amount <= LIGHT
        return self.dear if nin == 1 else nin != BINARY or not light

    def compute(self, emitter: Emitter, values: Sequence[Any]) -> list[Any]:
        """Emit the scalar function, between the types that are computed with."""
        context, builder = emitter.context, emitter.builder
        fndesc, signature = self.compiled.fndesc, self.compiled.signature
        context.add_linking_libs([self.library])
        parts = numpy_functions.call(context, builder, fndesc, signature, values)
        kind = signature.return_type
        kinds = getattr(kind, "types", (kind,))  # a tuple's
        return [
            context.cast(builder, part, source, o.computed)
            for o, part, source in zip(self.outputs, parts, kinds, strict=True)
        ]


def emit(
    emitter: Emitter, body: Body, arguments: Sequence[Any], *, reorderable: bool
) -> None:
    """Emit every case of the loop, the fast ones first, and the choice between them.

    The arguments are NumPy's ``args``, ``dimensions``, ``steps`` and ``data``, which is
    not used. Where the loop is ``reorderable``, reductions may fold values in pairs.
    """
    b, intp = emitter.builder, emitter.intp
    operands, nin = body.operands, len(body.inputs)
    args, dimensions, steps, _ = arguments
    numbers = [intp(k) for k in range(len(operands))]
    count = emitter.word(dimensions, intp, numbers[0])
    rows = [
        Strided(
            o.stored, emitter.word(args, emitter.byte, k), emitter.word(steps, intp, k)
        )
        for o, k in zip(operands, numbers, strict=True)
    ]
    done = b.append_basic_block("done")

    @contextmanager
    def where(condition: Any) -> Iterator[None]:
        with b.if_then(condition):
            yield
            b.branch(done)

    for case in body.cases:
        strides = list(map(intp, case))
        pairs = list(zip(rows, strides, strict=True))
        equal = emitter.every(emitter.equal(row.stride, s) for row, s in pairs)
        fixed = [row._replace(stride=s) for row, s in pairs]
        with where(b.and_(equal, _apart(emitter, body, fixed, count))):
            starts = [row.start for row in rows]
            emitter.call(f"row.{case}", _row, (body, case), *starts, count)
    if body.blocks:
        suited = _suits_blocks(emitter, body, rows, count)
        with where(b.and_(suited, _apart(emitter, body, rows, count))):
            _blocks(emitter, body, rows, count)
    in_place = len(body.outputs) == 1 and operands[0] == operands[-1]
    if in_place and nin == BINARY:
        same = b.icmp_unsigned("==", rows[0].start, rows[2].start)
        still = [emitter.equal(rows[k].stride, intp(0)) for k in (0, 2)]
        with where(emitter.every([same, *still])):
            if reorderable and operands[0] == operands[1]:
                with where(b.icmp_signed(">=", count, intp(PAIRED))):
                    _reduce_in_pairs(emitter, body, rows, count)
            _reduce(emitter, body, rows, count)
    _elementwise(emitter, body, rows, count, apart=False)
    b.branch(done)
    b.position_at_end(done)
    if body.branches or body.work.compares:  # of NaN's NumPy's comparisons say nothing
        which = ALL if body.branches else INVALID
        raised = flags_call(b, "fetestexcept", which)
        with b.if_then(b.icmp_signed("!=", raised, raised.type(0)), likely=False):
            flags_call(b, "feclearexcept", which)  # which is slow


def _elementwise(
    emitter: Emitter, body: Body, rows: Rows, count: Any, *, apart: bool
) -> None:
    """Emit the loop at given strides."""
    nin, compute = len(body.inputs), partial(body.compute, emitter)
    unroll = 0 if apart else ALONE if body.dear else UNROLLED
    emitter.loop(count, rows[:nin], rows[nin:], compute, unroll=unroll)


def _row(emitter: Emitter, body: Body, case: Sequence[int], *arguments: Any) -> None:
    """Emit the loop over operands that are apart, at strides of a case."""
    *starts, count = arguments
    rows = [
        Strided(operand.stored, start, emitter.intp(stride))
        for operand, start, stride in zip(body.operands, starts, case, strict=True)
    ]
    _elementwise(emitter, body, rows, count, apart=True)


def _apart(emitter: Emitter, body: Body, rows: Rows, count: Any) -> Any:
    """Return whether no store of one iteration touches what another loads.

    Operands are where others are not. A single output may be an input: its value
    depends on every load, and none can move behind the store.
    """
    b, intp, zero = emitter.builder, emitter.intp, emitter.intp(0)
    sizes = [operand.itemsize for operand in body.operands]
    starts = [b.ptrtoint(row.start, intp) for row in rows]
    last, bounds = b.sub(count, intp(1)), []
    for start, row, size in zip(starts, rows, sizes, strict=True):
        way, back = b.mul(last, row.stride), b.icmp_signed("<", row.stride, zero)
        low = b.add(start, b.select(back, way, zero))
        bounds.append((low, b.add(start, b.add(b.select(back, zero, way), intp(size)))))
    tests = []
    for out in range(len(body.inputs), len(rows)):
        (low, high), stride = bounds[out], rows[out].stride
        span = b.select(b.icmp_signed("<", stride, zero), b.neg(stride), stride)
        for k in range(out):
            bottom, top = bounds[k]
            apart = b.or_(
                b.icmp_unsigned("<=", high, bottom), b.icmp_unsigned("<=", top, low)
            )
            if len(body.outputs) == 1:
                same = emitter.equal(starts[out], starts[k])
                alike = emitter.equal(rows[k].stride, stride)
                wide = b.icmp_signed(">=", span, intp(max(sizes[k], sizes[out])))
                apart = b.or_(apart, emitter.every([same, alike, wide]))
            tests.append(apart)
    return emitter.every(tests)


def _suits_blocks(emitter: Emitter, body: Body, rows: Rows, count: Any) -> Any:
    """Return whether the loop in blocks gains by its rows."""
    b, intp = emitter.builder, emitter.intp
    tests = [b.icmp_signed(">=", count, intp(FEW))]
    if not body.dear:  # numbers alone are worth rows
        for k, (row, operand) in enumerate(zip(rows, body.operands, strict=True)):
            plain = emitter.equal(row.stride, intp(operand.itemsize))
            number = emitter.equal(row.stride, intp(0))
            tests.append(b.or_(plain, number) if k < len(body.inputs) else plain)
    return emitter.every(tests)


def _blocks(emitter: Emitter, body: Body, rows: Rows, count: Any) -> None:
    """Emit the loop over operands that are apart, whatever their strides, in blocks.

    What is not contiguous passes through rows that are, so that one SIMD loop serves
    every layout: a number fills its row once, elements at a stride are copied block by
    block. Where the body is not ``dear`` there are no such elements. What differs
    between operands is in values: of branches LLVM would make loops.
    """
    b, intp, nin = emitter.builder, emitter.intp, len(body.inputs)
    none, sizes = intp(0), [operand.itemsize for operand in body.operands]
    length = intp(max(min(LONG, ROOM // sum(sizes)) // LINE * LINE, SHORT))
    own, plain, moved = [], [], []

    def move(k: int, target: Strided, source: Strided, n: Any) -> None:
        what = source.kind, sizes[k]
        emitter.call(f"copy.{source.kind}", _copy, what, *target[1:], *source[1:], n)

    for k, (row, size) in enumerate(zip(rows, sizes, strict=True)):
        own.append(Strided(row.kind, emitter.room(length.constant * size), intp(size)))
        plain.append(emitter.equal(row.stride, intp(size)))
        there = plain[k]
        if k < nin > 1:  # a function of one number is not worth the code
            number = emitter.equal(row.stride, none)
            with b.if_then(number):
                move(k, own[k], row, emitter.smaller(count, length))
            there = b.or_(there, number)
        moved.append(b.select(there, none, length))
    moving = range(len(rows) if body.dear else 0)

    with emitter.cgutils.for_range_slice(b, none, count, length, intp) as (base, _):
        n = emitter.smaller(length, b.sub(count, base))
        here = [
            row._replace(start=emitter.at(row.start, base, row.stride)) for row in rows
        ]
        triples = zip(plain, here, own, strict=True)
        starts = [b.select(one, there.start, row.start) for one, there, row in triples]
        for k in moving[:nin]:
            move(k, own[k], here[k], emitter.smaller(n, moved[k]))
        emitter.call(f"row.{sizes}", _row, (body, sizes), *starts, n)
        for k in moving[nin:]:
            move(k, here[k], own[k], emitter.smaller(n, moved[k]))


def _copy(emitter: Emitter, kind: Any, size: int, *arguments: Any) -> None:
    """Emit what copies elements in their order, at strides of target and source."""
    *ways, n = arguments  # of target and source: a start, a step
    if size <= WORD:  # processors copy integers faster
        kind = _optional.numba().core.types.Integer.from_bitwidth(8 * size)
    target, source = Strided(kind, *ways[:2]), Strided(kind, *ways[2:])
    emitter.loop(n, [source], [target], unroll=COPIED)


def _reduce(emitter: Emitter, body: Body, rows: Rows, count: Any) -> None:
    """Emit the fold one by one; the running result is in a register."""
    first, values, last = rows
    own = Strided(first.kind, emitter.room(body.inputs[0].itemsize), emitter.intp(0))
    emitter.store(own.kind, emitter.load(own.kind, first.start), own.start)
    emitter.loop(count, [own, values], [own], partial(body.compute, emitter))
    emitter.store(own.kind, emitter.load(own.kind, own.start), last.start)


# The fold of many values to one, in pairs of neighbours: the order stays theirs.
#
# Each pass folds values 2 k and 2 k + 1 to value k, by SIMD, so that rounding errors of
# a sum grow as the logarithm of its length. Halves are rounded once, at the end.


def _reduce_in_pairs(emitter: Emitter, body: Body, rows: Rows, count: Any) -> None:
    """Emit the fold of the second operand's values onto the first's, which is one."""
    into, values, _ = rows
    total = emitter.room(body.inputs[0].width)
    emitter.call("fold", _fold, (body,), *values[1:], count, total)
    first = emitter.load(into.kind, into.start)
    folded = emitter.load(body.inputs[0].computed, total)
    (value,) = body.compute(emitter, [first, folded])
    emitter.store(into.kind, value, into.start)


def _fold(emitter: Emitter, body: Body, *arguments: Any) -> None:
    """Emit the fold of many values to one: of each half by itself, down to blocks."""
    source, stride, count, target = arguments
    b, intp = emitter.builder, emitter.intp
    _, kind, _, width = body.inputs[0]
    block = intp(BLOCK // width)
    with b.if_else(b.icmp_signed("<=", count, block)) as (few, many):
        with few:
            emitter.call("block", _fold_block, (body,), *arguments)
        with many:
            other = emitter.room(width)
            half = b.mul(b.sdiv(count, intp(2 * block.constant)), block)
            half = b.select(emitter.equal(half, intp(0)), block, half)
            rest = emitter.at(source, half, stride), stride, b.sub(count, half)
            emitter.call("fold", _fold, (body,), source, stride, half, target)
            emitter.call("fold", _fold, (body,), *rest, other)
            pair = [emitter.load(kind, place) for place in (target, other)]
            (value,) = body.compute(emitter, pair)
            emitter.store(kind, value, target)


def _fold_block(emitter: Emitter, body: Body, *arguments: Any) -> None:
    """Emit the fold of a block, whose values are copied where they are not a row."""
    source, stride, count, target = arguments
    b, (stored, kind, _, width) = emitter.builder, body.inputs[1]
    step, copied, spare = emitter.intp(width), emitter.room(BLOCK), emitter.room(BLOCK)
    plain = emitter.equal(stride, step)
    if kind != stored:
        plain = plain.type(0)
    moved = b.select(plain, emitter.intp(0), count)
    rows = Strided(stored, source, stride), Strided(kind, copied, step)
    emitter.loop(moved, rows[:1], rows[1:])
    row = b.select(plain, source, copied)
    emitter.call("passes", _fold_passes, (body,), row, spare, count, target)


def _fold_passes(emitter: Emitter, body: Body, *arguments: Any) -> None:
    """Emit a pass, which leaves half the values, and those after it."""
    row, spare, count, target = arguments
    b, (_, kind, _, width) = emitter.builder, body.inputs[1]
    one, step = emitter.intp(1), emitter.intp(width)
    half, odd = b.ashr(count, one), b.and_(count, one)
    with b.if_else(emitter.equal(half, emitter.intp(0))) as (last, several):
        with last:
            emitter.store(kind, emitter.load(kind, row), target)
        with several:
            emitter.call("pairs", _pairs, (body,), row, spare, half)
            with b.if_then(emitter.equal(odd, one)):
                value = emitter.load(kind, emitter.at(row, b.sub(count, one), step))
                emitter.store(kind, value, emitter.at(spare, half, step))
            left = b.add(half, odd)
            rest = spare, emitter.at(spare, left, step), left, target
            emitter.call("passes", _fold_passes, (body,), *rest)


def _pairs(emitter: Emitter, body: Body, *arguments: Any) -> None:
    """Emit one pass: a function of its own, in which nothing written is read."""
    read, written, count = arguments
    _, kind, _, width = body.inputs[0]
    starts = read, emitter.at(read, emitter.intp(1), emitter.intp(width))
    pair = [Strided(kind, start, emitter.intp(2 * width)) for start in starts]
    result = [Strided(kind, written, emitter.intp(width))]
    emitter.loop(count, pair, result, partial(body.compute, emitter))


# Real NumPy ufuncs of loops, made through NumPy's C API.

POINTER, INT, TEXT = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
OBJECT = ctypes.py_object
# Functions: the place in NumPy's table, the result, the arguments.
FROM_FUNC_AND_DATA = 1, OBJECT, *[POINTER] * 2, TEXT, *[INT] * 4, TEXT, TEXT, INT
REGISTER_LOOP_FOR_TYPE = 2, INT, OBJECT, INT, *[POINTER] * 3
USER = 256  # the first number of dtypes that others bring
IDENTITIES = {0: 0, 1: 1, None: -1, "reorderable": -2}  # as NumPy numbers them


def register(
    loop: int,
    inputs: Sequence[np.dtype[Any]],
    outputs: Sequence[np.dtype[Any]],
    *,
    name: str,
    doc: str,
    identity: int | str | None,
) -> np.ufunc:
    """Make a NumPy ufunc of the inner loop at an address; the loop lives for ever.

    ``identity`` is what a reduction of nothing is; None: reductions take one axis at a
    time.
    """
    loops, data = (POINTER * 1)(loop), (POINTER * 1)(None)
    numbers = [dtype.num for dtype in (*inputs, *outputs)]
    # A dtype that NumPy has not from itself has a larger number, and its own call.
    user = next((number for number in numbers if number >= USER), None)
    types = bytes(numbers) if user is None else b""
    texts = name.encode(), doc.encode()
    # What the ufunc points into: NumPy copies none of it.
    immortal((loops, data, types, texts))
    counts = int(user is None), len(inputs), len(outputs), IDENTITIES[identity]
    make = _function(*FROM_FUNC_AND_DATA)
    ufunc: np.ufunc = make(loops, data, types, *counts, *texts, 0)
    if user is not None:
        every = (INT * len(numbers))(*numbers)
        _function(*REGISTER_LOOP_FOR_TYPE)(ufunc, user, loop, every, None)
    return ufunc


@cache
def _function(place: int, result: Any, *arguments: Any) -> Any:
    """Return a function of NumPy's table, by its place there, which never changes."""
    capsule = np._core._multiarray_umath._UFUNC_API  # type: ignore[attr-defined] # noqa: SLF001
    content = ctypes.PYFUNCTYPE(POINTER, OBJECT, TEXT)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    table = (POINTER * (place + 1)).from_address(content(capsule, None) or 0)
    return ctypes.PYFUNCTYPE(result, *arguments)(table[place] or 0)
