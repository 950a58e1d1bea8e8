"""The machine code of a kernel launch, written for LLVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdev import _optional
from xdev.compile.machine_launch import (
    ADDRESS,
    BLOCKS,
    BYTES,
    COUNT,
    DOUBLE,
    EACH,
    FIRST,
    FIRST_STREAM,
    FLOAT,
    FUNCTION,
    FUNCTIONS,
    HEAD,
    HIGH,
    KIND,
    KNOWN_STREAMS,
    LAUNCH,
    LIMIT,
    LOW,
    NAME,
    NBYTES,
    NEW_STREAM,
    NO_VALUE,
    OUTPUT,
    OVERLAP,
    SAME,
    SIGNED,
    SLOT,
    STREAM,
    STREAMS,
    TABLE,
    THREADS,
    WORD,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def text() -> str:
    """Return the function in LLVM's language."""
    return _Writer().module


class _Writer:
    """Writes the function in LLVM's language, from the first instruction to the last.

    Addresses are words throughout: which pointers LLVM has depends on its version.
    """

    def __init__(self) -> None:
        self.ir = ir = _optional.llvm_ir()
        self.word, self.int = ir.IntType(64), ir.IntType(32)
        module = ir.Module(name=NAME)
        self.table = ir.GlobalVariable(
            module, ir.ArrayType(self.word, FIRST_STREAM + KNOWN_STREAMS), TABLE
        )
        self.table.initializer = ir.Constant(self.table.value_type, None)
        kind = ir.FunctionType(self.word, [self.word] * 3)
        function = ir.Function(module, kind, NAME)
        self.b = ir.IRBuilder(function.append_basic_block())
        _, self.arguments, self.given = function.args
        self._write()
        self.module = str(module)

    def _write(self) -> None:
        b, ir = self.b, self.ir
        memory = b.alloca(ir.ArrayType(ir.IntType(8), LIMIT))
        memory.align = SLOT
        pointer = b.alloca(self.word)
        self.memory = b.ptrtoint(memory, self.word)
        self.plan = self.call("PyLong_AsUnsignedLongLong", self.load(self.arguments))
        self.first = b.add(self.memory, self.planned(FIRST))
        count = self.planned(COUNT)
        self.refuse_if(
            b.icmp_signed("!=", self.given, b.add(count, self.word(1))), NO_VALUE
        )
        head = b.add(self.word(HEAD * WORD), b.mul(count, self.word(EACH * WORD)))
        parameter = b.add(self.plan, head)
        parameter = b.and_(b.add(parameter, self.word(SLOT - 1)), self.word(-SLOT))
        self.loop(
            b.udiv(self.planned(NBYTES), self.word(WORD)),
            lambda k: self.store(
                self.at(self.memory, k), self.load(self.at(parameter, k))
            ),
        )
        self.loop(count, self._value)
        output = self.planned(OUTPUT)
        with b.if_then(b.icmp_signed(">=", output, self.word(0))):
            written = self.load(self.slot(output))
            self.loop(output, lambda k: self._apart(k, written))
        stream = b.call(self.function(STREAM, self.word, []), [])
        self._known(stream)
        self.store(b.ptrtoint(pointer, self.word), self.memory)
        state = self.call("PyEval_SaveThread")
        kind = [self.word, *[self.int] * 7, *[self.word] * 3]
        blocks, threads = (
            [b.trunc(self.planned(k + axis), self.int) for axis in range(3)]
            for k in (BLOCKS, THREADS)
        )
        error = b.call(
            self.function(LAUNCH, self.int, kind),
            [
                self.planned(FUNCTION),
                *blocks,
                *threads,
                self.int(0),
                stream,
                b.ptrtoint(pointer, self.word),
                self.word(0),
            ],
        )
        self.call("PyEval_RestoreThread", state)
        b.ret(self.call("PyLong_FromLong", b.sext(error, self.word)))

    def _value(self, k: Any) -> None:
        """Convert one value into its slot."""
        b, ir = self.b, self.ir
        value = self.load(self.at(self.arguments, b.add(k, self.word(1))))
        place = self.slot(k)
        after = b.append_basic_block()
        blocks = [b.append_basic_block() for _ in range(BYTES + 1)]
        switch = b.switch(self.described(k, KIND), blocks[ADDRESS])
        for kind, block in enumerate(blocks[1:], 1):
            switch.add_case(self.word(kind), block)
        for kind, block in enumerate(blocks):
            b.position_at_end(block)
            if kind in {DOUBLE, FLOAT}:
                number = b.call(self.function(2, ir.DoubleType(), [self.word]), [value])
                minus_one = ir.Constant(ir.DoubleType(), -1.0)
                self.refuse_if_raised(b.fcmp_ordered("==", number, minus_one))
                if kind == FLOAT:
                    number = b.fptrunc(number, ir.FloatType())
                b.store(number, b.inttoptr(place, number.type.as_pointer()))
            elif kind == BYTES:
                data = self.call("PyBytes_AsString", value)
                self.refuse_if_raised(b.icmp_signed("==", data, self.word(0)))
                for half in (0, WORD):
                    word = self.load(b.add(data, self.word(half)))
                    self.store(b.add(place, self.word(half)), word)
            else:
                signed = kind == SIGNED
                name = "PyLong_AsLongLong" if signed else "PyLong_AsUnsignedLongLong"
                number = self.call(name, value)
                self.refuse_if_raised(b.icmp_signed("==", number, self.word(-1)))
                if kind != ADDRESS:
                    bits = self.described(k, LOW)
                    top = b.shl(number, bits)
                    back = b.ashr(top, bits) if signed else b.lshr(top, bits)
                    self.refuse_if(b.icmp_signed("!=", back, number), NO_VALUE)
                self.store(place, number)
            b.branch(after)
        b.position_at_end(after)

    def _apart(self, k: Any, written: Any) -> None:
        """Refuse an input whose distance from the output says that they overlap."""
        b = self.b
        distance = b.sub(self.load(self.slot(k)), written)
        within = b.and_(
            b.icmp_signed(">", distance, self.described(k, LOW)),
            b.icmp_signed("<", distance, self.described(k, HIGH)),
        )
        address = b.icmp_signed("==", self.described(k, KIND), self.word(ADDRESS))
        here = b.and_(
            b.icmp_signed("==", distance, self.word(0)),
            b.icmp_signed("!=", self.described(k, SAME), self.word(0)),
        )
        self.refuse_if(b.and_(b.and_(address, within), b.not_(here)), OVERLAP)

    def _known(self, stream: Any) -> None:
        b = self.b
        found = b.alloca(self.word)
        b.store(self.word(0), found)

        def look(k: Any) -> None:
            same = b.icmp_signed(
                "==", self.tabled(b.add(k, self.word(FIRST_STREAM))), stream
            )
            b.store(b.select(same, self.word(1), b.load(found)), found)

        self.loop(self.tabled(self.word(STREAMS)), look)
        self.refuse_if(b.icmp_signed("==", b.load(found), self.word(0)), NEW_STREAM)

    # Words, calls and branches.

    def load(self, address: Any) -> Any:
        return self.b.load(self.b.inttoptr(address, self.word.as_pointer()))

    def store(self, address: Any, value: Any) -> None:
        self.b.store(value, self.b.inttoptr(address, self.word.as_pointer()))

    def at(self, base: Any, k: Any) -> Any:
        return self.b.add(base, self.b.mul(k, self.word(WORD)))

    def slot(self, k: Any) -> Any:
        return self.b.add(self.first, self.b.mul(k, self.word(SLOT)))

    def planned(self, k: int) -> Any:
        return self.load(self.b.add(self.plan, self.word(k * WORD)))

    def described(self, k: Any, word: int) -> Any:
        """Load one of the words of a value's description."""
        at = self.b.add(self.b.mul(k, self.word(EACH)), self.word(HEAD + word))
        return self.load(self.at(self.plan, at))

    def tabled(self, k: Any) -> Any:
        return self.load(self.at(self.b.ptrtoint(self.table, self.word), k))

    def function(self, k: int, result: Any, taken: list[Any]) -> Any:
        kind = self.ir.FunctionType(result, taken).as_pointer()
        return self.b.inttoptr(self.tabled(self.word(k)), kind)

    def call(self, name: str, *values: Any) -> Any:
        """Call a function of CPython; all that it takes and gives are words."""
        kind = [self.word] * len(values)
        function = self.function(FUNCTIONS.index(name), self.word, kind)
        return self.b.call(function, values)

    def refuse_if(self, condition: Any, reason: int) -> None:
        with self.b.if_then(condition, likely=False):
            self.b.ret(self.call("PyLong_FromLong", self.word(reason)))

    def refuse_if_raised(self, suspect: Any) -> None:
        with self.b.if_then(suspect, likely=False):
            raised = self.call("PyErr_Occurred")
            with self.b.if_then(self.b.icmp_signed("!=", raised, self.word(0))):
                self.call("PyErr_Clear")
                self.b.ret(self.call("PyLong_FromLong", self.word(NO_VALUE)))

    def loop(self, count: Any, body: Callable[[Any], None]) -> None:
        b = self.b
        before = b.block
        head, inside, after = (b.append_basic_block() for _ in range(3))
        b.branch(head)
        b.position_at_end(head)
        k = b.phi(self.word)
        k.add_incoming(self.word(0), before)
        b.cbranch(b.icmp_signed("<", k, count), inside, after)
        b.position_at_end(inside)
        body(k)
        k.add_incoming(b.add(k, self.word(1)), b.block)
        b.branch(head)
        b.position_at_end(after)
