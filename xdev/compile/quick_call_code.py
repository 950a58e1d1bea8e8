"""The machine code of quick calls: a vectorcall of Python's, written for LLVM.

It is kept on disk; no process needs Numba for it.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from xdev import _machine_code
from xdev._disk_cache import DiskCache
from xdev.compile import machine_words, quick_call
from xdev.compile.machine_words import (
    ALIGNED,
    BASE,
    DATA,
    DTYPE,
    FLAGS,
    HEADER,
    IN_C_ORDER,
    ITEMS,
    LENGTH,
    NDIM,
    OBJECTS,
    SHAPE,
    TYPE,
    WORD,
    WRITEABLE,
)
from xdev.compile.quick_call import MOST_OPERANDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NAME = "xdev_quick_call"
TABLE = "xdev_quick_call_table"
_cache = DiskCache("native")

# The process's table: addresses of functions and objects.
CALL, MATCHES, CLEAR, GET, NUMBER, VALUE, TAKE, DROP, REFER = range(9)  # as in API
API = (
    "PyObject_Vectorcall",
    "PyErr_ExceptionMatches",
    "PyErr_Clear",
    "PyObject_GetAttr",
    "PyLong_FromSsize_t",
    "PyLong_AsSsize_t",
    "Py_IncRef",
    "Py_DecRef",
    "PyWeakref_NewRef",
)
NEW_ARRAY, SET_BASE = 9, 10  # as in NUMPY_API, which has their places there
NUMPY_API = 94, 282  # PyArray_NewFromDescr, PyArray_SetBaseObject
PYTHON, ARRAY, OUT = 11, 12, 13
REFUSALS = 14, 15, 16  # kinds of errors before anything began
MAKE, SHAPE_NAME = 17, 18
LEASE, KEPT = 19, 20  # what a spare stands on, and their list
AT_ARRAY, AT_CHUNK, AT_REUSES = 21, 22, 23  # where a lease and its chunk have these
# The address of what is asked before Python, once there is CUDA (quick_launch.py).
LAUNCH, WORDS = 24, 25
NOT_KNOWN, RAISED = 0, 1  # what it returns but for results
# An object's table: how many inputs, arguments and rows; then the rows. A row has the
# key of each input, the ufunc, the dtype of its one output, and its two limits.
NIN, MOST, ROWS, HEAD = range(4)
ROW = 4
FEW = 1, 2, 3  # so many inputs are compared without loops


def binary() -> bytes:
    """Return the method's object file, compiled where no process here has done so."""
    files = machine_words.__file__, quick_call.__file__, __file__
    key = f"{_machine_code.key(*files)}-{OBJECTS}"
    found = _cache.load(key)
    if found is None:
        found = _machine_code.emit([_Writer().module], long=False)
        _cache.save(key, found, "calls of ufuncs")
    return found


class _Writer(machine_words.Writer):
    """Writes ``vectorcall(self, args, nargsf, kwnames)``, words all."""

    def __init__(self) -> None:
        module, table = machine_words.module(NAME, TABLE, WORDS)
        super().__init__(module, table, NAME, 4)
        self.way_out = self.function.append_basic_block()
        self.own, self.args, flagged, self.names = self.function.args
        self.nargs = self.b.and_(flagged, self.word((1 << 63) - 1))
        self._quick()
        self.b.position_at_end(self.way_out)
        self._python()
        self.module = str(module)

    def _quick(self) -> None:
        """Look for the row of the operands, and call its ufunc if they are few."""
        b = self.b
        self.keys = self.words(MOST_OPERANDS)
        known = self.load(self.own, HEADER + WORD)
        self.leave_unless(b.not_(self.same(known, 0)))
        known = self.load(known, DATA)
        nin, most = self.load(known, NIN * WORD), self.load(known, MOST * WORD)
        self.leave_unless_only(self.names, OUT)
        total = self.count_named(self.nargs, self.names)
        self.leave_unless(b.icmp_signed("<=", nin, self.nargs))
        self.leave_unless(b.icmp_signed("<=", total, most))
        self.most = most
        rest = self._found(known, nin)
        ufunc, dtype, few, many = (self.load(rest, k * WORD) for k in range(ROW))
        with b.if_then(b.icmp_signed(">", total, nin)):
            # What is written to has the result's shape: the inputs need no look.
            out = self.argument(nin)
            self.leave_unless(self.is_a(out, ARRAY))
            size, _ = self._size(out, out)
            self.leave_unless(b.icmp_signed("<", size, many))
            self._end(self.call(CALL, ufunc, self.args, self.nargs, self.names))
        bound, like = self._bound(nin, many)
        with b.if_then(b.icmp_signed(">=", bound, few)):
            self._into_new(ufunc, dtype, bound, like)
        self._end(self.call(CALL, ufunc, self.args, self.nargs, self.names))

    def _into_new(self, ufunc: Any, dtype: Any, size: Any, like: Any) -> None:
        """Compute into an array of the pool: of arrays in C order, all of one shape."""
        b = self.b
        self.leave_unless(b.icmp_signed("<", self.nargs, self.word(MOST_OPERANDS)))
        self.leave_unless(b.icmp_signed("<", self.nargs, self.most))
        self.leave_unless(b.not_(self.same(like, 0)))
        made = self._made(dtype, size, like)
        with b.if_then(self.same(made, 0), likely=False):
            b.ret(made)
        copied = self.keys  # they have done their duty
        self.loop(
            self.nargs, lambda k: self.store(self.at(copied, k), self.argument(k))
        )
        self.store(self.at(copied, self.nargs), made)
        count = b.add(self.nargs, self.word(1))
        result = self.call(CALL, ufunc, copied, count, self.word(0))
        self.call(DROP, made)
        self._end(result)

    def _made(self, dtype: Any, size: Any, like: Any) -> Any:
        """Return a new array: a view of a spare that is free, else Python's; 0: none.

        What spares are is told in :mod:`xdev.memory.spares`.
        """
        b = self.b
        made, outside = self.variable(), self.way_out
        self.way_out, done = b.append_basic_block(), b.append_basic_block()
        kept = self.known(KEPT)
        count, first = self.load(kept, LENGTH), self.load(kept, ITEMS)
        place = self.search(
            first, count, self.word(WORD), lambda at: self._is_free(at, dtype, like)
        )
        b.store(self._view(self.load(place), dtype, like), made)
        b.branch(done)
        b.position_at_end(self.way_out)
        b.store(self._by_python(dtype, size, like), made)
        b.branch(done)
        b.position_at_end(done)
        self.way_out = outside
        return b.load(made)

    def _by_python(self, dtype: Any, size: Any, like: Any) -> Any:
        """Return a new array of the Python function that makes them; 0: an error."""
        shape = self.call(GET, like, self.known(SHAPE_NAME))
        number = self.call(NUMBER, size)
        three = self.words(3)
        for k, x in enumerate((shape, dtype, number)):
            self.store(self.at(three, self.word(k)), x)
        made = self.call(CALL, self.known(MAKE), three, self.word(3), self.word(0))
        self.call(DROP, shape)
        self.call(DROP, number)
        return made

    def _is_free(self, place: Any, dtype: Any, like: Any) -> Any:
        """Say whether nothing uses a spare, and it is of this dtype and shape."""
        b, free = self.b, self.variable()
        b.store(self.word(0), free)
        spare = self.load(place)
        # The low half of the word counts, in every Python; the list's is the one.
        unused = self.same(b.and_(self.load(spare), self.word(0xFFFFFFFF)), 1)
        fits = b.and_(unused, self.same(self.load(spare, DTYPE), dtype))
        # It stands on its lease, unless somebody called its __setstate__.
        base = self.load(spare, BASE)
        leased = self.is_a(b.select(self.same(base, 0), spare, base), LEASE)
        with b.if_then(b.and_(fits, leased)):
            _, alike = self._size(spare, like)
            b.store(b.zext(alike, self.word), free)
        return self.same(b.load(free), 1)

    def _view(self, spare: Any, dtype: Any, like: Any) -> Any:
        """Return a view of a spare, which its lease takes for its array; 0: an error.

        No Python runs before the spare has the view's reference. A collection may run
        then, in the making of the weak reference, and the list may change.
        """
        b, zero = self.b, self.word(0)
        flags = self.word(IN_C_ORDER | ALIGNED | WRITEABLE)
        self.call(TAKE, dtype)  # for the view
        plan = self.known(ARRAY), dtype, *self._shape(like), zero
        view = self.call(NEW_ARRAY, *plan, self.load(spare, DATA), flags, zero)
        with b.if_then(self.same(view, 0), likely=False):
            b.ret(view)
        self.call(TAKE, spare)  # likewise
        self.call(SET_BASE, view, spare)
        lease = self.load(spare, BASE)
        chunk = self.load(b.add(lease, self.known(AT_CHUNK)))
        reuses = b.add(chunk, self.known(AT_REUSES))
        again = b.add(self.call(VALUE, self.load(reuses)), self.word(1))
        self._put(reuses, self.call(NUMBER, again), view)
        array = b.add(lease, self.known(AT_ARRAY))
        self._put(array, self.call(REFER, view, zero), view)
        return view

    def _put(self, slot: Any, x: Any, view: Any) -> None:
        """Put a new object into an object's slot; without it give up the view."""
        b = self.b
        with b.if_then(self.same(x, 0), likely=False):
            self.call(DROP, view)
            b.ret(x)
        old = self.load(slot)
        self.store(slot, x)
        self.call(DROP, old)

    def _end(self, result: Any) -> None:
        """Return what NumPy returned; Python words what it refuses."""
        b = self.b
        with b.if_then(self.same(result, 0), likely=False):
            # What was refused did not begin.
            int32 = self.ir.IntType(32)
            matches = [self.call(MATCHES, self.known(kind)) for kind in REFUSALS]
            any_of_them = b.trunc(reduce(b.or_, matches), int32)
            with b.if_then(b.icmp_signed("!=", any_of_them, int32(0))):
                self.call(CLEAR)
                b.branch(self.way_out)
        b.ret(result)

    def _python(self) -> None:
        """Hand the arguments to the Python function, after the object itself."""
        b = self.b
        with b.if_then(b.not_(self.same(self.known(LAUNCH), 0))):
            result = self.call(LAUNCH, self.own, self.args, self.nargs, self.names)
            with b.if_then(b.not_(self.same(result, NOT_KNOWN))):
                b.ret(b.select(self.same(result, RAISED), self.word(0), result))
        count = self.count_named(b.add(self.nargs, self.word(1)), self.names)
        copy = b.ptrtoint(b.alloca(self.word, count), self.word)
        self.store(copy, self.own)
        rest = b.sub(count, self.word(1))
        own = b.add(copy, self.word(WORD))
        self.loop(rest, lambda k: self.store(self.at(own, k), self.argument(k)))
        given = b.add(self.nargs, self.word(1))
        b.ret(self.call(CALL, self.known(PYTHON), copy, given, self.names))

    def _found(self, table: Any, nin: Any) -> Any:
        """Return the address behind the operands' keys in their row, or leave."""
        b, place = self.b, self.variable()
        found = b.append_basic_block()

        def look(count: Any, alike: Callable[[Any], Any]) -> None:
            step = b.mul(b.add(count, self.word(ROW)), self.word(WORD))
            first = b.add(table, self.word(HEAD * WORD))
            row = self.search(first, self.load(table, ROWS * WORD), step, alike)
            b.store(self.at(row, count), place)
            b.branch(found)

        for count in FEW:
            with b.if_then(self.same(nin, count)):
                keys = [self._key(self.word(k)) for k in range(count)]
                look(self.word(count), partial(self._has, keys))
        self.loop(nin, lambda k: self.store(self.at(self.keys, k), self._key(k)))
        look(nin, lambda row: self.alike(self.keys, row, nin))
        b.position_at_end(found)
        return b.load(place)

    def _has(self, keys: Sequence[Any], row: Any) -> Any:
        """Say whether a row begins with these keys."""
        pairs = ((key, self.load(row, k * WORD)) for k, key in enumerate(keys))
        return reduce(self.b.and_, [self.same(*pair) for pair in pairs])

    def _key(self, k: Any) -> Any:
        """Return the key of an input: a plain array's dtype, else the type."""
        b, key, x = self.b, self.variable(), self.argument(k)
        b.store(self.load(x, TYPE), key)
        with b.if_then(self.is_a(x, ARRAY)):
            b.store(self.load(x, DTYPE), key)
        return b.load(key)

    def _bound(self, nin: Any, many: Any) -> tuple[Any, Any]:
        """Return how many elements the result may have, or leave if they are many.

        It is told by the inputs. Of arrays whose shapes differ the sizes are
        multiplied, without broadcasting.
        The second is an array if all are in C order and have its shape, else 0.
        """
        b = self.b
        zero, one = self.word(0), self.word(1)
        first, bound, plain = (self.variable() for _ in range(3))
        for place, value in (first, zero), (bound, one), (plain, one):
            b.store(value, place)

        def operand(k: Any) -> None:
            x = self.argument(k)
            with b.if_then(self.is_a(x, ARRAY)):
                fresh = self.same(b.load(first), 0)
                like = b.select(fresh, x, b.load(first))
                b.store(like, first)
                size, alike = self._size(x, like)
                counts = b.or_(fresh, b.not_(alike))
                factor = b.select(counts, size, one)
                b.store(b.mul(b.load(bound), factor), bound)
                for each in (size, b.load(bound)):  # before a product can be too large
                    self.leave_unless(b.icmp_signed("<", each, many))
                in_order = b.and_(self.load(x, FLAGS), self.word(IN_C_ORDER))
                kept = b.select(alike, b.and_(b.load(plain), in_order), zero)
                b.store(kept, plain)

        self.loop(nin, operand)
        like = b.select(self.same(b.load(plain), 1), b.load(first), zero)
        return b.load(bound), like

    def _size(self, x: Any, like: Any) -> tuple[Any, Any]:
        """Return an array's size, and whether its shape is another's."""
        b = self.b
        ndim, shape = self._shape(x)
        other, extents = self._shape(like)
        size, differs = self.variable(), self.variable()
        b.store(self.word(1), size)
        b.store(b.xor(ndim, other), differs)

        def axis(k: Any) -> None:
            n = self.load(self.at(shape, k))
            b.store(b.mul(b.load(size), n), size)
            with b.if_then(b.icmp_signed("<", k, other)):
                bits = b.xor(n, self.load(self.at(extents, k)))
                b.store(b.or_(b.load(differs), bits), differs)

        self.loop(ndim, axis)
        return b.load(size), self.same(b.load(differs), 0)

    def _shape(self, x: Any) -> tuple[Any, Any]:
        """Return the number of an array's axes, and the address of its extents."""
        ndim = self.b.and_(self.load(x, NDIM), self.word(0xFFFFFFFF))
        return ndim, self.load(x, SHAPE)

    def argument(self, k: Any) -> Any:
        return self.load(self.at(self.args, k))
