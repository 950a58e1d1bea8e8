"""The machine code of a kernel launch, written for LLVM."""

from __future__ import annotations

from typing import Any

from xdev.compile import machine_words
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
    WORDS,
)
from xdev.compile.machine_words import WORD


def text() -> str:
    """Return the function in LLVM's language."""
    module, table = machine_words.module(NAME, TABLE, WORDS)
    _Start(module, table, NAME, 3).write()
    return str(module)


class _Start(machine_words.Writer):
    """Writes ``start(plan, *values)``, as CPython calls it."""

    def write(self) -> None:
        b = self.b
        _, arguments, given = self.function.args
        first = self.load(arguments)
        self.plan = self.python("PyLong_AsUnsignedLongLong", first)
        count = self.planned(COUNT)
        self.refuse_if(b.not_(self.same(given, b.add(count, self.word(1)))), NO_VALUE)
        self.begin()
        values = b.add(arguments, self.word(WORD))
        self.loop(count, lambda k: self._value(k, self.load(self.at(values, k))))
        self.launch()

    def begin(self) -> None:
        """Copy the plan's parameter."""
        b = self.b
        self.memory = self.words(LIMIT // WORD, SLOT)
        self.first = b.add(self.memory, self.planned(FIRST))
        described = b.mul(self.planned(COUNT), self.word(EACH * WORD))
        head = b.add(self.word(HEAD * WORD), described)
        parameter = b.add(self.plan, head)
        parameter = b.and_(b.add(parameter, self.word(SLOT - 1)), self.word(-SLOT))
        self.loop(
            b.udiv(self.planned(NBYTES), self.word(WORD)),
            lambda k: self.store(
                self.at(self.memory, k), self.load(self.at(parameter, k))
            ),
        )

    def launch(self) -> None:
        """Call the driver, if the values that are in their slots allow it."""
        b = self.b
        output = self.planned(OUTPUT)
        with b.if_then(b.icmp_signed(">=", output, self.word(0))):
            written = self.load(self.slot(output))
            self.loop(output, lambda k: self._apart(k, written))
        stream = self.call(STREAM)
        self._known(stream)
        pointer = self.words(1)
        self.store(pointer, self.memory)
        function = self.planned(FUNCTION)  # another thread may drop the plan later
        blocks, threads = (
            [b.trunc(self.planned(k + axis), self.int) for axis in range(3)]
            for k in (BLOCKS, THREADS)
        )
        state = self.python("PyEval_SaveThread")
        kind = [self.word, *[self.int] * 7, *[self.word] * 3]
        error = b.call(
            self.called(LAUNCH, self.int, kind),
            [
                function,
                *blocks,
                *threads,
                self.int(0),
                stream,
                pointer,
                self.word(0),
            ],
        )
        self.python("PyEval_RestoreThread", state)
        self.end(b.sext(error, self.word))

    def end(self, code: Any) -> None:
        """Return what happened as an int."""
        self.b.ret(self.python("PyLong_FromLong", code))

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
        found = self.variable()
        b.store(self.word(0), found)

        def look(k: Any) -> None:
            same = b.icmp_signed(
                "==", self.known(b.add(k, self.word(FIRST_STREAM))), stream
            )
            b.store(b.select(same, self.word(1), b.load(found)), found)

        self.loop(self.known(STREAMS), look)
        self.refuse_if(b.icmp_signed("==", b.load(found), self.word(0)), NEW_STREAM)

    def slot(self, k: Any) -> Any:
        """Return the address of a value's slot."""
        return self.b.add(self.first, self.b.mul(k, self.word(SLOT)))

    def planned(self, k: int) -> Any:
        """Load a word of the plan."""
        return self.load(self.plan, k * WORD)

    def described(self, k: Any, word: int) -> Any:
        """Load one of the words of a value's description."""
        at = self.b.add(self.b.mul(k, self.word(EACH)), self.word(HEAD + word))
        return self.load(self.at(self.plan, at))

    def python(self, name: str, *values: Any) -> Any:
        """Call a function of CPython; all that it takes and gives are words."""
        return self.call(FUNCTIONS.index(name), *values)

    def refuse_if(self, condition: Any, reason: int) -> None:
        """Return a reason, or go on."""
        with self.b.if_then(condition, likely=False):
            self.end(self.word(reason))

    def _value(self, k: Any, value: Any) -> None:
        """Convert one value into its slot."""
        b, ir = self.b, self.ir
        place = self.slot(k)
        as_double = FUNCTIONS.index("PyFloat_AsDouble")
        as_double = self.called(as_double, ir.DoubleType(), [self.word])
        after = b.append_basic_block()
        blocks = [b.append_basic_block() for _ in range(BYTES + 1)]
        switch = b.switch(self.described(k, KIND), blocks[ADDRESS])
        for kind, block in enumerate(blocks[1:], 1):
            switch.add_case(self.word(kind), block)
        for kind, block in enumerate(blocks):
            b.position_at_end(block)
            if kind in {DOUBLE, FLOAT}:
                number = b.call(as_double, [value])
                minus_one = ir.Constant(ir.DoubleType(), -1.0)
                self.refuse_if_raised(b.fcmp_ordered("==", number, minus_one))
                if kind == FLOAT:
                    number = b.fptrunc(number, ir.FloatType())
                b.store(number, b.inttoptr(place, number.type.as_pointer()))
            elif kind == BYTES:
                data = self.python("PyBytes_AsString", value)
                self.refuse_if_raised(b.icmp_signed("==", data, self.word(0)))
                for half in (0, WORD):
                    word = self.load(b.add(data, self.word(half)))
                    self.store(b.add(place, self.word(half)), word)
            elif kind == ADDRESS:
                self.store(place, self.integer(value, signed=False))
            else:
                signed = kind == SIGNED
                number = self.integer(value, signed=signed)
                bits = self.described(k, LOW)
                top = b.shl(number, bits)
                back = b.ashr(top, bits) if signed else b.lshr(top, bits)
                self.refuse_if(b.icmp_signed("!=", back, number), NO_VALUE)
                self.store(place, number)
            b.branch(after)
        b.position_at_end(after)

    def integer(self, value: Any, *, signed: bool) -> Any:
        """Return an int of Python's as a word."""
        kind = "PyLong_AsLongLong" if signed else "PyLong_AsUnsignedLongLong"
        number = self.python(kind, value)
        self.refuse_if_raised(self.same(number, -1))
        return number

    def refuse_if_raised(self, suspect: Any) -> None:
        """Take back an error of CPython's, if a result says that there may be one."""
        with self.b.if_then(suspect, likely=False):
            raised = self.python("PyErr_Occurred")
            with self.b.if_then(self.b.not_(self.same(raised, 0))):
                self.python("PyErr_Clear")
                self.end(self.word(NO_VALUE))
