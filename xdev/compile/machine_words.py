"""A function of words, written for LLVM: what the code of launches is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdev import _c_functions, _optional

if TYPE_CHECKING:
    from collections.abc import Callable

WORD, HEADER = _c_functions.WORD, _c_functions.HEADER
DATA = HEADER  # of an array of NumPy's


def module(name: str, table: str, words: int) -> tuple[Any, Any]:
    """Return an empty module, and its table of words, all 0."""
    ir = _optional.llvm_ir()
    made = ir.Module(name=name)
    kind = ir.ArrayType(ir.IntType(64), words)
    variable = ir.GlobalVariable(made, kind, table)
    variable.initializer = ir.Constant(kind, None)
    return made, variable


class Writer:
    """Writes one function, from the first instruction to the last.

    Addresses are words throughout: which pointers LLVM has depends on its version.

    Parameters
    ----------
    module : llvmlite.ir.Module
        Where the function goes.
    table : llvmlite.ir.GlobalVariable
        Words that the process fills in: addresses of functions and objects.
    name : str
        The function's name.
    count : int
        How many words it takes; it returns one.
    """

    def __init__(self, module: Any, table: Any, name: str, count: int) -> None:
        self.ir = ir = _optional.llvm_ir()
        self.word, self.int = ir.IntType(64), ir.IntType(32)
        self.table = table
        kind = ir.FunctionType(self.word, [self.word] * count)
        self.function = ir.Function(module, kind, name)
        self.b = ir.IRBuilder(self.function.append_basic_block())

    def load(self, address: Any, offset: int = 0) -> Any:
        """Load the word so many bytes behind an address."""
        b = self.b
        place = b.add(address, self.word(offset))
        return b.load(b.inttoptr(place, self.word.as_pointer()))

    def store(self, address: Any, value: Any) -> None:
        """Store a word."""
        self.b.store(value, self.b.inttoptr(address, self.word.as_pointer()))

    def at(self, base: Any, k: Any) -> Any:
        """Return the address of word ``k``."""
        return self.b.add(base, self.b.mul(k, self.word(WORD)))

    def words(self, count: int, align: int = WORD) -> Any:
        """Return the address of so many words on the stack."""
        with self.b.goto_entry_block():
            made = self.b.alloca(self.ir.ArrayType(self.word, count))
            made.align = align
            return self.b.ptrtoint(made, self.word)

    def variable(self) -> Any:
        """Return a word that may change, which LLVM keeps in a register."""
        with self.b.goto_entry_block():  # elsewhere it would be memory
            return self.b.alloca(self.word)

    def known(self, k: Any) -> Any:
        """Load a word of the process's table."""
        k = self.word(k) if isinstance(k, int) else k
        return self.load(self.at(self.b.ptrtoint(self.table, self.word), k))

    def same(self, value: Any, other: Any) -> Any:
        """Compare words; the other may be a number."""
        other = self.word(other) if isinstance(other, int) else other
        return self.b.icmp_signed("==", value, other)

    def called(self, k: int, result: Any, taken: list[Any]) -> Any:
        """Return the function at the address in the table's word ``k``."""
        kind = self.ir.FunctionType(result, taken).as_pointer()
        return self.b.inttoptr(self.known(k), kind)

    def call(self, k: int, *values: Any) -> Any:
        """Call that function, whose arguments and result are words."""
        function = self.called(k, self.word, [self.word] * len(values))
        return self.b.call(function, values)

    def loop(self, count: Any, body: Callable[[Any], None]) -> None:
        """Write a body for each ``k`` below a count."""
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
