"""The machine code of quick functions, written for LLVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdev import _machine_code
from xdev._disk_cache import DiskCache
from xdev.compile import machine_words
from xdev.compile.machine_words import (
    DATA,
    DTYPE,
    FIRST_ITEM,
    ITEMS,
    LENGTH,
    NDIM,
    OBJECTS,
    SHAPE,
    TYPE,
    WORD,
)

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "xdev_quick_function"
VECTORCALL = f"{NAME}_{{}}".format  # of a row
HAND_ON = f"{NAME}_hands_on_{{}}".format  # likewise
TABLE = "xdev_quick_function_table"
_cache = DiskCache("native")

# The process's table: addresses of functions and objects, types of numbers.
MATCHES, CLEAR = range(2)  # as in API
API = ("PyErr_ExceptionMatches", "PyErr_Clear")
NONE, NAMES, OUT, TYPE_ERROR, VALUE_ERROR, RUNTIME_ERROR = range(2, 8)
ARRAY, FLOAT64, FLOAT32, LIST, TUPLE, OTHER = range(8, 14)
PYTHON_COUNT, HOST_COUNT, HOSTS = range(14, 17)
MOST_HOSTS, MOST_ROWS, MOST_INPUTS = 32, 80, 2
ROWS = HOSTS + MOST_HOSTS
# A function's row: what computes NumPy's arrays, those of the other type, and all
# else, each an object and the address of what calls it; whether only reals are
# computed by NumPy's; how many inputs there are; the address of CPython's vectorcall.
NUMPYS, OTHERS, GENERAL, REALS, INPUTS, PYTHON, ROW = 0, 2, 4, 6, 7, 8, 9
# The row of a function that hands arrays of the other type on: what takes them; how
# many of its arguments by place are arrays, 0 if the first is a list or tuple of them,
# and how many there are, both MANY if it takes any number of arrays; the names of those
# by name, a tuple, and how many there are; those of them that are handed on where a
# call gives no name; CPython's vectorcall; whether that is to do what raised a
# RuntimeError; then of each by name its default, and its name if a caller may give it.
MANY = -1
MOST_HANDING, MOST_PLACES, MOST_NAMED = 90, 8, 3
HANDING = ROWS + MOST_ROWS * ROW
TARGET, ARRAYS, PLACES, KEYWORDS, NAMED, UNNAMED, INSTEAD, AGAIN = 0, *range(2, 9)
DEFAULTS = AGAIN + 1
GIVEN = DEFAULTS + MOST_NAMED
HANDING_ROW = GIVEN + MOST_NAMED
WORDS = HANDING + MOST_HANDING * HANDING_ROW
OFFSET = -(1 << 63)  # PY_VECTORCALL_ARGUMENTS_OFFSET


def kept() -> bytes | None:
    """Return the object file if it is on disk."""
    return _cache.load(_key())


def binary() -> bytes:
    """Return the object file, compiled where no process here has done so."""
    found = kept()
    if found is None:
        module, table = machine_words.module(NAME, TABLE, WORDS)
        _Function(module, table, NAME, 3).write()
        _Vectorcall(module, table, f"{NAME}_called", 5).write()
        _HandOn(module, table, f"{NAME}_hands_on", 5).write()
        found = _machine_code.emit([str(module)], long=False)
        _cache.save(_key(), found, "calls of functions")
    return found


def _key() -> str:
    return f"{_machine_code.key(machine_words.__file__, __file__)}-{OBJECTS}"


class _Writer(machine_words.Writer):
    """Writes the body of a function."""

    def _compute(self, row: Any, args: Any, inputs: Any, out: Any) -> None:
        """Return what a row's function is of so many arguments.

        ``out`` is None, or is the argument after these.
        """
        b = self.b
        self.way_out = self.function.append_basic_block()
        given = b.not_(self.same(out, self.known(NONE)))
        with b.if_then(given):
            self.loop(
                inputs, lambda k: self._of_one_shape(self.load(self.at(args, k)), out)
            )
        last = self.load(self.at(args, b.sub(inputs, self.word(1))))
        words = self._target(row, self.load(args), last)
        # By its name: NumPy takes no third argument of maximum and minimum for it.
        names = b.select(given, self.known(NAMES), self.word(0))
        result = self._called(words, args, inputs, names)
        with b.if_then(self.same(result, 0), likely=False):
            self._forget(self.way_out, TYPE_ERROR, VALUE_ERROR)
        b.ret(result)
        b.position_at_end(self.way_out)
        copy = self.words(MOST_INPUTS + 1)  # None may be behind no argument
        self.loop(
            inputs, lambda k: self.store(self.at(copy, k), self.load(self.at(args, k)))
        )
        self.store(self.at(copy, inputs), out)
        general = b.add(row, self.word(GENERAL * WORD))
        count = b.add(inputs, self.word(1))
        b.ret(self._called(general, copy, count, self.word(0)))

    def _forget(self, way: Any, *kinds: int) -> None:
        """Go another way if what was raised is of one of these kinds."""
        b = self.b
        for kind in kinds:
            same = b.trunc(self.call(MATCHES, self.known(kind)), self.int)
            with b.if_then(b.icmp_signed("!=", same, self.int(0))):
                self.call(CLEAR)
                b.branch(way)

    def _of_one_shape(self, x: Any, out: Any) -> None:
        """Leave unless both are NumPy's arrays, of one shape."""
        for array in (x, out):
            self.leave_unless(self.is_a(array, ARRAY))
        count = self._ndim(x)
        self.leave_unless(self.same(count, self._ndim(out)))
        extents = self.load(x, SHAPE), self.load(out, SHAPE)
        self.leave_unless(self.alike(*extents, count))

    def _ndim(self, x: Any) -> Any:
        return self.b.and_(self.load(x, NDIM), self.word(0xFFFFFFFF))

    def _called(self, words: Any, args: Any, count: Any, names: Any) -> Any:
        """Call what two words of a row say, by PEP 590."""
        callee = self.load(words)
        return self._vectorcall(self.load(words, WORD), callee, args, count, names)

    def _vectorcall(self, function: Any, *words: Any) -> Any:
        """Call the function at an address by PEP 590."""
        kind = self.ir.FunctionType(self.word, [self.word] * 4).as_pointer()
        return self.b.call(self.b.inttoptr(function, kind), words)

    def _row(self, first: int, step: int) -> tuple[Any, Any]:
        """Return the address of the row that is told last, and how many by place."""
        b = self.b
        *_, flagged, _, k = self.function.args
        start = b.add(b.ptrtoint(self.table, self.word), self.word(first * WORD))
        nargs = b.and_(flagged, self.word((1 << 63) - 1))
        return b.add(start, b.mul(k, self.word(step * WORD))), nargs

    def _write_python(self, row: Any, k: int) -> None:
        """Leave to the vectorcall that is in a word of the row, as the call came."""
        own = self.load(row, k * WORD)
        self.b.ret(self._vectorcall(own, *self.function.args[:4]))

    def _write_rows(self, name: Callable[[int], str], count: int) -> None:
        """Write the vectorcalls of rows, which call this function with their number."""
        self.function.linkage = "internal"
        self.function.attributes.add("noinline")
        kind = self.ir.FunctionType(self.word, [self.word] * 4)
        for k in range(count):
            made = self.ir.Function(self.function.module, kind, name(k))
            b = self.ir.IRBuilder(made.append_basic_block())
            b.ret(b.call(self.function, [*made.args, self.word(k)], tail=True))

    def _target(self, row: Any, first: Any, last: Any) -> Any:
        """Return where the words are of what computes such arguments, or leave."""
        b = self.b
        kinds = self.load(first, TYPE), self.load(last, TYPE)
        found = self.variable()
        theirs, ours = (
            [self.same(kind, self.known(k)) for kind in kinds] for k in (OTHER, ARRAY)
        )
        with b.if_else(b.or_(*ours)) as (numpys, others):
            with numpys:
                self._beside(kinds, ours, HOST_COUNT)
                with b.if_then(b.not_(self.same(self.load(row, REALS * WORD), 0))):
                    dtype = self.load(first, DTYPE)
                    one, other = (self.known(k) for k in (FLOAT64, FLOAT32))
                    real = b.or_(self.same(dtype, one), self.same(dtype, other))
                    self.leave_unless(real)
                b.store(b.add(row, self.word(NUMPYS * WORD)), found)
            with others:
                self.leave_unless(b.or_(*theirs))
                self._beside(kinds, theirs, PYTHON_COUNT)
                b.store(b.add(row, self.word(OTHERS * WORD)), found)
        return b.load(found)

    def _beside(self, kinds: Any, arrays: Any, count: int) -> None:
        """Leave unless what is no array of these is one of so many kinds of numbers."""
        b = self.b
        number = b.select(arrays[0], kinds[1], kinds[0])
        look, compare, found = (b.append_basic_block() for _ in range(3))
        before = b.block
        b.cbranch(b.and_(*arrays), found, look)
        b.position_at_end(look)
        k = b.phi(self.word)
        k.add_incoming(self.word(0), before)
        b.cbranch(b.icmp_signed("<", k, self.known(count)), compare, self.way_out)
        b.position_at_end(compare)
        k.add_incoming(b.add(k, self.word(1)), compare)
        kind = self.known(b.add(k, self.word(HOSTS)))
        b.cbranch(self.same(kind, number), found, look)
        b.position_at_end(found)


class _Function(_Writer):
    """Writes ``function(self, args, nargs)``, words all; ``out`` comes last."""

    def write(self) -> None:
        own, args, count = self.function.args
        inputs = self.b.sub(count, self.word(1))
        out = self.load(self.at(args, inputs))
        self._compute(self.load(own, DATA), args, inputs, out)


class _Vectorcall(_Writer):
    """Writes ``vectorcall(function, args, nargsf, kwnames)`` of each row.

    They call one function, which takes the row's number too.
    """

    def write(self) -> None:
        b = self.b
        _, args, _, names, _ = self.function.args
        python = self.way_out = self.function.append_basic_block()
        row, nargs = self._row(ROWS, ROW)
        inputs = self.load(row, INPUTS * WORD)
        self.leave_unless_only(names, OUT)
        total = self.count_named(nargs, names)
        self.leave_unless(b.icmp_signed(">=", nargs, inputs))
        self.leave_unless(b.icmp_signed("<=", total, b.add(inputs, self.word(1))))
        out = self.variable()
        b.store(self.known(NONE), out)
        with b.if_then(b.icmp_signed(">", total, inputs)):
            b.store(self.load(self.at(args, inputs)), out)
        self._compute(row, args, inputs, b.load(out))
        b.position_at_end(python)
        self._write_python(row, PYTHON)
        self._write_rows(VECTORCALL, MOST_ROWS)


class _HandOn(_Writer):
    """Writes the same for the functions that hand arrays of the other type on."""

    def write(self) -> None:
        b = self.b
        _, args, _, names, _ = self.function.args
        python = self.way_out = self.function.append_basic_block()
        row, nargs = self._row(HANDING, HANDING_ROW)
        places = self.load(row, PLACES * WORD)
        many = b.icmp_unsigned("<", b.sub(nargs, self.word(1)), self.word(MOST_PLACES))
        some = b.and_(self.same(places, MANY), many)
        self.leave_unless(b.or_(self.same(nargs, places), some))
        first, count = self._arrays(row, args, nargs)
        self.loop(
            count,
            lambda k: self.leave_unless(self.is_a(self.load(self.at(first, k)), OTHER)),
        )
        # What is called may use the word before them.
        handed = b.add(self.words(1 + MOST_PLACES + MOST_NAMED), self.word(WORD))
        self.loop(
            nargs, lambda k: self.store(self.at(handed, k), self.load(self.at(args, k)))
        )
        self._name(row, names, self.at(args, nargs), self.at(handed, nargs))
        flagged = b.or_(nargs, self.word(OFFSET))
        target = b.add(row, self.word(TARGET * WORD))
        keywords = b.select(
            self.same(names, 0),
            self.load(row, UNNAMED * WORD),
            self.load(row, KEYWORDS * WORD),
        )
        # Before the call: another thread may aim the row anew while it runs.
        again = b.not_(self.same(self.load(row, AGAIN * WORD), 0))
        result = self._called(target, handed, flagged, keywords)
        with b.if_then(b.and_(self.same(result, 0), again), likely=False):
            self._forget(python, RUNTIME_ERROR)
        b.ret(result)
        b.position_at_end(python)
        self._write_python(row, INSTEAD)
        self._write_rows(HAND_ON, MOST_HANDING)

    def _arrays(self, row: Any, args: Any, nargs: Any) -> tuple[Any, Any]:
        """Return where what must be arrays is, and how many there are, or leave."""
        b = self.b
        first, count = self.variable(), self.variable()
        b.store(args, first)
        known = self.load(row, ARRAYS * WORD)
        b.store(b.select(self.same(known, MANY), nargs, known), count)
        with b.if_then(self.same(b.load(count), 0)):
            x = self.load(args)
            listed = self.is_a(x, LIST)
            self.leave_unless(b.or_(listed, self.is_a(x, TUPLE)))
            b.store(self.load(x, LENGTH), count)
            self.leave_unless(b.not_(self.same(b.load(count), 0)))
            # A list has the address of what a tuple has in itself.
            inside = b.add(x, self.word(FIRST_ITEM))
            b.store(b.select(listed, self.load(x, ITEMS), inside), first)
        return b.load(first), b.load(count)

    def _name(self, row: Any, names: Any, values: Any, places: Any) -> None:
        """Put arguments given by name, and the defaults of others, into their places.

        Leave if a name is none of those that may be given, or is there twice.
        """
        b = self.b
        count = self.load(row, NAMED * WORD)
        defaults, given = (b.add(row, self.word(k * WORD)) for k in (DEFAULTS, GIVEN))
        self.loop(count, lambda k: self.store(self.at(places, k), self.word(0)))

        def put(k: Any) -> None:
            name = self.load(self.at(b.add(names, self.word(FIRST_ITEM)), k))
            found = self.search(
                *(given, count, self.word(WORD)),
                lambda place: self.same(self.load(place), name),
            )
            place = b.add(places, b.sub(found, given))
            self.leave_unless(self.same(self.load(place), 0))
            self.store(place, self.load(self.at(values, k)))

        def fill(k: Any) -> None:
            value = self.load(self.at(places, k))
            default = self.load(self.at(defaults, k))
            value = b.select(self.same(value, 0), default, value)
            self.store(self.at(places, k), value)

        with b.if_then(b.not_(self.same(names, 0))):
            self.loop(self.load(names, LENGTH), put)
        self.loop(count, fill)
