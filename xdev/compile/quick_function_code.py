"""The machine code of quick functions, written for LLVM."""

from __future__ import annotations

from typing import Any

from xdev import _machine_code
from xdev._disk_cache import DiskCache
from xdev.compile import machine_words
from xdev.compile.machine_words import HEADER, TYPE, WORD
from xdev.compile.quick_call_code import DTYPE

NAME = "xdev_quick_function"
TABLE = "xdev_quick_function_table"
_cache = DiskCache("native")

# The process's table: addresses of functions, objects, types of numbers; then the rows.
CALL, PLAIN, MATCHES, CLEAR = range(4)  # as in API
API = (
    "PyObject_Vectorcall",
    "_PyFunction_Vectorcall",
    "PyErr_ExceptionMatches",
    "PyErr_Clear",
)
ARRAY, FLOAT64, FLOAT32, TYPE_ERROR, VALUE_ERROR, OTHER = range(4, 10)
PYTHON_COUNT, HOST_COUNT, HOSTS = range(10, 13)
MOST_HOSTS = 32
ROWS = HOSTS + MOST_HOSTS
# A row: a function, how many arguments it takes, whether only reals are computed by
# NumPy's, and what computes arrays of NumPy's, and of the other type. Its place among
# the rows is next to what the function's address says.
FUNCTION, COUNT, REALS, TARGETS, _, ROW = range(6)
PLACES = 512
MOST = PLACES // 2
WORDS = ROWS + PLACES * ROW


def binary() -> bytes:
    """Return the object file, compiled where no process here has done so."""
    key = f"{_machine_code.key(machine_words.__file__, __file__)}-{HEADER}"
    found = _cache.load(key)
    if found is None:
        module, table = machine_words.module(NAME, TABLE, WORDS)
        _Writer(module, table, NAME, 4).write()
        found = _machine_code.emit([str(module)])
        _cache.save(key, found, "calls of functions")
    return found


class _Writer(machine_words.Writer):
    """Writes ``vectorcall(function, args, nargsf, kwnames)``, words all."""

    def write(self) -> None:
        b = self.b
        function, args, flagged, names = self.function.args
        self.way_out = self.function.append_basic_block()
        self.leave_unless(self.same(names, 0))
        count = b.and_(flagged, self.word((1 << 63) - 1))
        row = self._row(function)
        self.leave_unless(self.same(self.load(row, COUNT * WORD), count))
        first = self.load(args)
        last = self.load(self.at(args, b.sub(count, self.word(1))))
        target = self._target(row, first, last)
        self.leave_unless(b.not_(self.same(target, 0)))
        result = self.call(CALL, target, args, count, self.word(0))
        with b.if_then(self.same(result, 0), likely=False):
            kinds = self.known(TYPE_ERROR), self.known(VALUE_ERROR)
            one, other = (b.trunc(self.call(MATCHES, k), self.int) for k in kinds)
            with b.if_then(b.icmp_signed("!=", b.or_(one, other), self.int(0))):
                self.call(CLEAR)
                b.branch(self.way_out)
        b.ret(result)
        b.position_at_end(self.way_out)
        b.ret(self.call(PLAIN, function, args, flagged, names))

    def _row(self, function: Any) -> Any:
        """Return the address of the function's row, or leave."""
        b = self.b
        place = b.alloca(self.word)
        b.store(b.lshr(function, self.word(4)), place)
        look, later, found = (b.append_basic_block() for _ in range(3))
        b.branch(look)
        b.position_at_end(look)
        at = b.and_(b.load(place), self.word(PLACES - 1))
        table = b.ptrtoint(self.table, self.word)
        row = b.add(table, self.word(ROWS * WORD))
        row = b.add(row, b.mul(at, self.word(ROW * WORD)))
        key = self.load(row, FUNCTION * WORD)
        b.cbranch(self.same(key, function), found, later)
        b.position_at_end(later)
        b.store(b.add(at, self.word(1)), place)
        b.cbranch(self.same(key, 0), self.way_out, look)
        b.position_at_end(found)
        return row

    def _target(self, row: Any, first: Any, last: Any) -> Any:
        """Return what computes arguments that begin and end so, or leave."""
        b = self.b
        kinds = self.load(first, TYPE), self.load(last, TYPE)
        found = b.alloca(self.word)
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
                b.store(self.load(row, TARGETS * WORD), found)
            with others:
                self.leave_unless(b.or_(*theirs))
                self._beside(kinds, theirs, PYTHON_COUNT)
                b.store(self.load(row, (TARGETS + 1) * WORD), found)
        return b.load(found)

    def _beside(self, kinds: Any, arrays: Any, count: int) -> None:
        """Leave unless what is no array of these is one of so many kinds of numbers."""
        b = self.b
        number = b.select(arrays[0], kinds[1], kinds[0])
        fits = b.alloca(self.word)
        b.store(b.zext(b.and_(*arrays), self.word), fits)
        with b.if_then(self.same(b.load(fits), 0)):

            def compare(k: Any) -> None:
                kind = self.known(b.add(k, self.word(HOSTS)))
                same = b.zext(self.same(kind, number), self.word)
                b.store(b.or_(b.load(fits), same), fits)

            self.loop(self.known(count), compare)
        self.leave_unless(b.not_(self.same(b.load(fits), 0)))
