"""Memory of a CPU loop, as LLVM instructions: elements, rows of them on the stack."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, final

from xdev import _optional

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LINE = 64  # bytes of a cache line
REGISTER = 64  # bytes of the largest one: on the stack it may not straddle cache lines
WORD = 8  # bytes of the largest integer that is copied at once
ALONE: dict[str, int | bool | None] = {
    "vectorize.enable": False,
    "unroll.disable": None,
}  # of loops that gain nothing by it, and would take longer to compile


@final
class Memory:
    """Loads and stores of one function that is being emitted.

    Parameters
    ----------
    context, builder : Numba's target context, LLVM's instruction builder
        Where to.
    """

    def __init__(self, context: Any, builder: Any) -> None:
        numba = _optional.numba()
        self.context, self.builder = context, builder
        self.cgutils, self.ir = numba.core.cgutils, numba.core.cgutils.ir
        self.intp = context.get_value_type(numba.core.types.intp)
        self.byte = self.cgutils.voidptr_t
        metadata = builder.module.add_metadata
        domain = metadata(["xdev"])
        self._read = metadata([metadata(["xdev inputs", domain])])
        self._written = metadata([metadata(["xdev outputs", domain])])

    def align_stack(self) -> None:
        """Let the function put whole registers on the stack where they belong."""
        self.builder.function.attributes.update([f"alignstack({REGISTER})"])

    def at(self, pointer: Any, index: Any, stride: Any) -> Any:
        """Return where an element is."""
        b = self.builder
        return b.gep(pointer, [b.mul(index, stride)], inbounds=True)

    def load(self, kind: Any, pointer: Any, *, apart: bool = False) -> Any:
        """Return the value at a place; ``apart``: no output lies there."""
        model = self.context.data_model_manager[kind]
        pointer = self.builder.bitcast(pointer, model.get_data_type().as_pointer())
        with self._marked("load", self._read, self._written, apart=apart):
            return model.load_from_data_pointer(self.builder, pointer)

    def store(
        self, kind: Any, value: Any, pointer: Any, *, apart: bool = False
    ) -> None:
        """Put a value at a place; ``apart``: no input lies there."""
        model = self.context.data_model_manager[kind]
        pointer = self.builder.bitcast(pointer, model.get_data_type().as_pointer())
        with self._marked("store", self._written, self._read, apart=apart):
            self.context.pack_value(self.builder, kind, value, pointer)

    def smaller(self, one: Any, other: Any) -> Any:
        """Return the smaller of two lengths."""
        b = self.builder
        return b.select(b.icmp_signed("<", one, other), one, other)

    def room(self, nbytes: int) -> Any:
        """Return bytes on the stack for as long as the function runs, not cleared."""
        kind = self.ir.ArrayType(self.ir.IntType(8), nbytes)
        with self.builder.goto_entry_block():
            made = self.builder.alloca(kind)
        made.align = LINE
        return self.builder.bitcast(made, self.byte)

    @contextmanager
    def repeating(self, going_on: Callable[[], Any]) -> Iterator[None]:
        """Emit what is inside as a loop, for as long as a condition holds."""
        b = self.builder
        test, inside, after = map(b.append_basic_block, ("while", "do", "after"))
        b.branch(test)
        b.position_at_end(test)
        b.cbranch(going_on(), inside, after)
        b.position_at_end(inside)
        yield
        b.branch(test)
        b.position_at_end(after)

    def advise(self, block: Any, advice: dict[str, int | bool | None]) -> None:
        """Say to LLVM how to optimise the loop whose last block this is."""
        metadata, ir = self.builder.module.add_metadata, self.ir
        parts = []
        for what, value in advice.items():
            name = f"llvm.loop.{what}"
            bits = ir.IntType(1 if isinstance(value, bool) else 32)
            constant = [] if value is None else [ir.Constant(bits, int(value))]
            parts.append(metadata([name, *constant]))
        number = len(self.builder.module.metadata)
        loop = metadata([metadata([f"xdev loop {number}"])])
        loop.operands = (loop, *parts)  # LLVM wants a loop's first operand to be itself
        block.terminator.set_metadata("llvm.loop", loop)

    def fill(self, target: Any, source: Any, count: Any, itemsize: int) -> None:
        """Emit what repeats an element in a row on the stack, to a cache line's end."""
        function = self.function(f"fill.{itemsize}", "ppi", _fill, itemsize)
        self.builder.call(function, [target, source, count])

    def copy(
        self, target: Any, source: Any, steps: Sequence[Any], count: Any, itemsize: int
    ) -> None:
        """Emit what copies elements in their order, at strides of target and source."""
        function = self.function(f"copy.{itemsize}", "ppiii", _copy, itemsize)
        self.builder.call(function, [target, source, *steps, count])

    def function(
        self,
        name: str,
        kinds: str,
        emit: Callable[..., Any],
        *given: Any,
        returns: bool = False,
    ) -> Any:
        """Return a function of this module, emitted once and never inlined.

        Parameters
        ----------
        name : str
            What tells it from others.
        kinds : str
            ``p`` for each pointer, ``i`` for each word that it takes.
        emit : callable
            Emits it, of the function's own :class:`Memory`, what is ``given``, and the
            arguments.
        returns : bool
            Whether it returns a word, which ``emit`` returns.
        """
        b, ir, name = self.builder, self.ir, f"xdev_{name}"
        made = b.module.globals.get(name)
        if made is None:
            types = [self.byte if kind == "p" else self.intp for kind in kinds]
            result = self.intp if returns else ir.VoidType()
            made = ir.Function(b.module, ir.FunctionType(result, types), name)
            made.linkage = "internal"
            made.attributes.add("noinline")
            own = ir.IRBuilder(made.append_basic_block("entry"))
            value = emit(Memory(self.context, own), *given, *made.args)
            own.ret(value) if returns else own.ret_void()
        return made

    @contextmanager
    def _marked(
        self, what: str, own: Any, other: Any, *, apart: bool
    ) -> Iterator[None]:
        """Mark loads or stores emitted inside: they meet none of the other scope."""
        block = self.builder.block
        before = len(block.instructions)
        yield
        for instruction in block.instructions[before:]:
            if apart and instruction.opname == what:
                instruction.set_metadata("alias.scope", own)
                instruction.set_metadata("noalias", other)


def _fill(memory: Memory, itemsize: int, target: Any, source: Any, count: Any) -> None:
    b, ir, intp = memory.builder, memory.ir, memory.intp
    word = ir.IntType(8 * min(itemsize, WORD))
    words, many = max(itemsize // WORD, 1), LINE // min(itemsize, WORD)
    one, line = ir.VectorType(word, words), ir.VectorType(word, many)
    value = b.load(b.bitcast(source, one.as_pointer()), align=1)
    places = ir.Constant(
        ir.VectorType(ir.IntType(32), many), [k % words for k in range(many)]
    )
    value = b.shuffle_vector(value, ir.Constant(one, ir.Undefined), places)
    each = LINE // itemsize
    lines = b.sdiv(b.add(count, intp(each - 1)), intp(each))
    with memory.cgutils.for_range(b, lines, intp=intp) as loop:
        to = memory.at(target, loop.index, intp(LINE))
        b.store(value, b.bitcast(to, line.as_pointer()), align=LINE)
        end = b.block
    memory.advise(end, ALONE)


def _copy(
    memory: Memory,
    itemsize: int,
    target: Any,
    source: Any,
    to_step: Any,
    from_step: Any,
    count: Any,
) -> None:
    b, ir, intp = memory.builder, memory.ir, memory.intp
    word = ir.IntType(8 * min(itemsize, WORD))
    kind = ir.VectorType(word, max(itemsize // WORD, 1)).as_pointer()

    def move(index: Any) -> None:
        value = b.bitcast(memory.at(source, index, from_step), kind)
        to = b.bitcast(memory.at(target, index, to_step), kind)
        b.store(b.load(value, align=1), to, align=1)

    pairs = b.ashr(count, intp(1))
    with memory.cgutils.for_range(b, pairs, intp=intp) as loop:
        index = b.shl(loop.index, intp(1))
        move(index)
        move(b.or_(index, intp(1)))
        end = b.block
    memory.advise(end, ALONE)
    last = b.shl(pairs, intp(1))
    with b.if_then(b.icmp_signed("<", last, count)):
        move(last)
