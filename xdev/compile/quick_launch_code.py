"""The machine code of quick launches, written for LLVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdev import _machine_code
from xdev._disk_cache import DiskCache
from xdev.compile import machine_words, quick_call, quick_call_code
from xdev.compile.machine_words import DATA, HEADER, OBJECTS, TYPE, WORD
from xdev.compile.quick_call import MOST_OPERANDS
from xdev.compile.quick_call_code import NOT_KNOWN, RAISED

if TYPE_CHECKING:
    from xdev.compile.cupy_arrays import Layout

NAME = "xdev_quick_launch"
TABLE = "xdev_quick_launch_table"
_cache = DiskCache("native")

# The process's table: addresses of functions and objects.
KEEP, DROP = range(2)  # as in API
API = ("Py_IncRef", "Py_DecRef")
ARRAY, OUT, NONE, MAKE, RAW, QUICKER, KNOWN, WORDS = range(2, 10)
# An object's table: how many inputs and rows; then the rows. A row has the dtype of
# each input, or a number's type, then the dtypes of the output and of a result that is
# to be made, the bytes of one of its elements, the number of elements, and the launch.
NIN, COUNT, HEAD = range(3)
WRITTEN, FRESH, ITEM, SIZE, PLAN, ROW = range(6)  # behind the inputs' keys


def binary(layout: Layout) -> bytes:
    """Return the object file, compiled where no process here has done so."""
    ours = machine_words.__file__, quick_call.__file__, quick_call_code.__file__
    key = f"{_machine_code.key(*ours, __file__)}-{OBJECTS}-{layout}"
    found = _cache.load(key)
    if found is None:
        module, table = machine_words.module(NAME, TABLE, WORDS)
        _Writer(module, table, layout).write()
        found = _machine_code.emit([str(module)], long=False)
        _cache.save(key, found, "calls of ufuncs on CuPy arrays")
    return found


class _Writer(machine_words.Writer):
    """Writes ``function(self, args, nargs, kwnames)``, words all."""

    def __init__(self, module: Any, table: Any, layout: Layout) -> None:
        super().__init__(module, table, NAME, 4)
        self.layout = layout
        self.own, self.args, self.nargs, self.names = self.function.args

    def write(self) -> None:
        b = self.b
        unknown, lost = (self.function.append_basic_block() for _ in range(2))
        self.way_out = unknown
        self.keys = self.words(MOST_OPERANDS + 1)
        self.values = self.words(MOST_OPERANDS + 1)
        known = self.load(self.own, HEADER + 2 * WORD)  # the second of its slots
        self.leave_unless(b.not_(self.same(known, 0)))
        known = self.load(known, DATA)
        nin = self.load(known, NIN * WORD)
        self.leave_unless_only(self.names, OUT)
        total = self.count_named(self.nargs, self.names)
        given = b.icmp_signed(">", total, nin)
        self.leave_unless(b.icmp_signed("<=", nin, self.nargs))
        self.leave_unless(b.icmp_signed("<=", total, b.add(nin, self.word(1))))
        self.first = self._first_array(nin)
        self.loop(total, self._read)
        row, place = self._row(known, nin, given), self.variable()
        b.store(row, place)
        out = self.variable()
        with b.if_else(given) as (written, made):
            with written:
                b.store(self.load(self.at(self.args, nin)), out)
                self.call(KEEP, b.load(out))
            with made:
                dtype = self.load(row, FRESH * WORD)
                b.store(self._made(dtype, self.load(row, ITEM * WORD)), out)
                self.store(self.at(self.values, nin), self._address(b.load(out)))
                # Python ran meanwhile, and may have put others into the rows.
                self.way_out = lost
                again = self._row(known, nin, given)
                self.leave_unless(self.same(self.load(again, FRESH * WORD), dtype))
                b.store(again, place)
        code = self.call(RAW, self.load(b.load(place), PLAN * WORD), self.values)
        with b.if_then(self.same(code, 0), likely=True):
            b.ret(b.load(out))
        b.branch(lost)
        b.position_at_end(lost)
        self.call(DROP, b.load(out))
        b.branch(unknown)
        b.position_at_end(unknown)
        b.ret(self.word(NOT_KNOWN))

    def _read(self, k: Any) -> None:
        """Note an array's dtype and address, if it is laid out as the first one.

        Of anything else, its type and itself: there are rows of numbers alone.
        """
        b, layout = self.b, self.layout
        x = self.load(self.at(self.args, k))
        key, value = self.at(self.keys, k), self.at(self.values, k)
        with b.if_else(self.is_a(x, ARRAY), likely=True) as (array, other):
            with array:
                place = b.add(x, self.word(layout.contiguous))
                flag = b.load(b.inttoptr(place, self.int.as_pointer()))
                self.leave_unless(b.icmp_signed("!=", flag, self.int(0)))
                extents, nbytes = self._shape(x)
                likes, size = self._shape(self.first)
                self.leave_unless(self.same(nbytes, size))
                dimensions = b.udiv(nbytes, self.word(WORD))
                self.leave_unless(self.alike(extents, likes, dimensions))
                self.store(key, self.load(x, layout.dtype))
                self.store(value, self._address(x))
            with other:
                self.store(key, self.load(x, TYPE))
                self.store(value, x)

    def _first_array(self, nin: Any) -> Any:
        """Return the first of the inputs that is an array, or leave."""
        b, zero = self.b, self.word(0)
        place = self.variable()
        b.store(zero, place)

        def look(k: Any) -> None:
            x = self.load(self.at(self.args, k))
            first = b.and_(self.same(b.load(place), zero), self.is_a(x, ARRAY))
            b.store(b.select(first, x, b.load(place)), place)

        self.loop(nin, look)
        self.leave_unless(b.not_(self.same(b.load(place), zero)))
        return b.load(place)

    def _row(self, table: Any, nin: Any, given: Any) -> Any:
        """Return where the row's last words are, or leave."""
        b = self.b
        inputs = b.mul(nin, self.word(WORD))
        step = b.add(inputs, self.word(ROW * WORD))
        first = b.add(table, self.word(HEAD * WORD))
        size = self.load(self.first, self.layout.size)
        written = self.load(self.at(self.keys, nin))

        def fits(row: Any) -> Any:
            last = b.add(row, inputs)
            same = self.same(size, self.load(last, SIZE * WORD))
            fresh = b.not_(self.same(self.load(last, FRESH * WORD), 0))
            served = self.same(written, self.load(last, WRITTEN * WORD))
            same = b.and_(same, b.select(given, served, fresh))
            return b.and_(same, self.alike(self.keys, row, nin))

        count = self.load(table, COUNT * WORD)
        return b.add(self.search(first, count, step, fits), inputs)

    def _made(self, dtype: Any, itemsize: Any) -> Any:
        """Return a new array like the first, or end with the error that was raised."""
        b, place = self.b, self.variable()
        known = self.known(KNOWN)
        b.store(self.word(0), place)
        with b.if_then(b.not_(self.same(known, 0)), likely=True):
            b.store(self.call(QUICKER, known, self.first, dtype, itemsize), place)
        with b.if_then(self.same(b.load(place), 0), likely=False):
            extents = b.add(self.first, self.word(self.layout.shape))
            kind, none = self.known(ARRAY), self.known(NONE)
            made = self.call(MAKE, kind, extents, dtype, none)
            with b.if_then(self.same(made, 0), likely=False):
                b.ret(self.word(RAISED))
            b.store(made, place)
        return b.load(place)

    def _address(self, x: Any) -> Any:
        return self.load(self.load(x, self.layout.data), self.layout.address)

    def _shape(self, x: Any) -> tuple[Any, Any]:
        """Return where the extents are, and how many bytes they take."""
        begin = self.load(x, self.layout.shape)
        return begin, self.b.sub(self.load(x, self.layout.shape + WORD), begin)
