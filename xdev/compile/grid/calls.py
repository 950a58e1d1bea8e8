"""A kernel's call from its arguments to the loop, as plain functions, to be compiled.

A large call's data fill the caches, and what Python runs on the way of the next one is
cold: 60 µs. So calls that are known are machine code throughout: Python's vectorcall
(PEP 590) is a function of words. A *row* is such a call: the arguments' types and
layouts, and the loop's memory but for addresses and numbers. All is in words of int64,
at the indices below. What has no row goes to Python before anything was written.
"""

from __future__ import annotations

from xdev.compile.grid import SLOT
from xdev.compile.grid.called import HEAD as HEAD_OF_TABLE
from xdev.compile.machine_words import (
    ALIGNED,
    DATA,
    DTYPE,
    FLAGS,
    HEADER,
    IN_C_ORDER,
    NDIM,
    SHAPE,
    STRIDES,
    TYPE,
    WRITEABLE,
)
from xdev.compile.team.operations import narrow, store
from xdev.compile.team.pieces import COUNT, NEXT, SIZE, START
from xdev.compile.team.stations import (
    ENDED,
    HELPER,
    LANES,
    STATION_COUNT,
    STATIONS,
    lead,
    line,
    word,
)
from xdev.memory.native.operations import WORD, call, load

TABLE = HEADER + WORD  # where a kernel's object has the array of its table
PLACES = (1 << 63) - 1  # the bits of a vectorcall's count that count
LOW = 0xFFFFFFFF  # those of an int in a word
MATTERS = IN_C_ORDER | ALIGNED | WRITEABLE  # of an array's flags

# A table: the process's words, how many rows there are, and their addresses.
PROCESS, ROW_COUNT, FIRST_ROW = 0, 1, HEAD_OF_TABLE

# The process's words: objects; the address of `again`; functions of Python and of C;
# and where the stations' address and their number are.
NONE, TRUE, ARRAY, AGAIN = 0, 1, 2, 3
PYTHON, REFER, INTEGER, LEAVE, ENTER, CLOCK = 4, 5, 6, 7, 8, 9
HELPERS = 10
PROCESS_WORDS = 11

# A row: whether a call uses it; the nanoseconds of the last one, all threads' together;
# the loop and its points; the threads; the limits in nanoseconds that
# xdev.ufunc.kernels.cpu tells of, and its parts of the points; then where the slots,
# the layouts and the job are, two words for what C functions return, and of each
# argument the words below.
BUSY, COST, RUN, MEMORY, POINTS, THREADS = 0, 1, 2, 3, 4, 5
LONG, TELLING, OWN, PIECE, FEW, PART, MORE, PIECES = 6, 7, 8, 9, 10, 11, 12, 13
SLOTS, LAYOUTS, JOB, ROOM, GIVEN, SPECS = 14, 15, 16, 17, 19, 20

# Of an argument: the dtype of an array, or a number's type; an array's axes, or what is
# done with a number; an array's flags that matter, or the words of a number.
KIND, AXES, DETAIL = 0, 1, 2
SPEC_WORDS = 3
# What is done with numbers, in place of axes.
COPIED, NARROWED, COUNTED, TRUTH = -1, -2, -3, -4

MONOTONIC, SECOND = 1, 10**9  # of C's clock_gettime
FOR_EVER = 10**18  # nanoseconds, which a word holds
INFINITE, INFINITE_SINGLE = 0x7FF << 52, 0xFF << 23  # the exponents of such floats


def put(base: int, index: int, value: int) -> None:
    """Store a word."""
    store(base + WORD * index, value)


def again(own: int, args: int, flagged: int, names: int) -> int:
    """Call a kernel: by a row, if one fits, else by Python; return None or 0."""
    table = load(load(own + TABLE) + DATA)
    process = word(table, PROCESS)
    if names == 0:
        row = find(table, args, flagged & PLACES)
        if row != 0 and done(process, row, args) != 0:
            none = word(process, NONE)
            call(word(process, REFER), none, 0, 0, 0)
            return none
    put(own + HEADER, 0, 0)  # Python's __call__, meanwhile
    result = call(word(process, PYTHON), own, args, flagged, names)
    put(own + HEADER, 0, word(process, AGAIN))
    return result


def find(table: int, args: int, given: int) -> int:
    """Return the latest row that fits the arguments, or 0."""
    array = word(word(table, PROCESS), ARRAY)
    for k in range(word(table, ROW_COUNT) - 1, -1, -1):
        row = word(table, FIRST_ROW + k)
        if word(row, GIVEN) == given and fits(row, args, array) != 0:
            return row
    return 0


def fits(row: int, args: int, array: int) -> int:
    """Say whether arguments have a row's types and layouts."""
    layout = word(row, LAYOUTS)
    for k in range(word(row, GIVEN)):
        x, spec = word(args, k), row + WORD * (SPECS + SPEC_WORDS * k)
        axes = word(spec, AXES)
        if axes < 0:
            if load(x + TYPE) != word(spec, KIND):
                return 0
            continue
        # A freed array has a dtype of its own, which no row has.
        if (
            load(x + TYPE) != array
            or load(x + DTYPE) != word(spec, KIND)
            or load(x + NDIM) & LOW != axes
            or load(x + FLAGS) & MATTERS != word(spec, DETAIL)
        ):
            return 0
        for axis in range(axes):
            if word(load(x + SHAPE), axis) != word(layout, axis) or word(
                load(x + STRIDES), axis
            ) != word(layout, axes + axis):
                return 0
        layout += WORD * 2 * axes
    return 1


def done(process: int, row: int, args: int) -> int:
    """Run a row, if nobody does and the threads are there; say whether it was done."""
    if word(row, BUSY) != 0 or fill(process, row, args) == 0:
        return 0
    if is_long(row) != 0:
        lanes = divide(row, 0, word(row, COST))
        # Python starts those that are missing, as in a forked child.
        if word(word(process, HELPERS), 1) < lanes - 1:
            return 0
    put(row, BUSY, 1)
    state = call(word(process, LEAVE), 0, 0, 0, 0)  # other threads run meanwhile
    compute(process, row)
    call(word(process, ENTER), state, 0, 0, 0)
    put(row, BUSY, 0)
    return 1


def fill(process: int, row: int, args: int) -> int:
    """Write addresses and numbers into the loop's memory; 0: a number does not fit."""
    for k in range(word(row, GIVEN)):
        x, spec = word(args, k), row + WORD * (SPECS + SPEC_WORDS * k)
        slot = word(row, SLOTS) + WORD * SLOT * k
        way = word(spec, AXES)
        if way >= 0:
            put(slot, 0, load(x + DATA))
        elif way == COPIED:
            for part in range(word(spec, DETAIL)):
                put(slot, part, load(x + HEADER + WORD * part))
        elif way == NARROWED:
            wide = load(x + HEADER)
            bits = narrow(wide)
            infinite = bits & INFINITE_SINGLE == INFINITE_SINGLE
            if infinite and wide & INFINITE != INFINITE:
                return 0  # of which NumPy warns
            put(slot, 0, bits)
        elif way == TRUTH:
            put(slot, 0, 1 if x == word(process, TRUE) else 0)
        else:
            room = row + WORD * ROOM
            put(slot, 0, call(word(process, INTEGER), x, room, 0, 0))
            if load(room) & LOW != 0:  # it overflowed
                return 0
    return 1


def is_long(row: int) -> int:
    """Say whether threads are to share a row's points, by the time of the last call."""
    several = word(row, THREADS) > 1 and word(row, POINTS) > 1
    return 1 if several and word(row, COST) >= word(row, LONG) else 0


def compute(process: int, row: int) -> None:
    """Compute all points, in threads where there is enough to do."""
    points, first, cost = word(row, POINTS), 0, word(row, COST)
    if word(row, THREADS) == 1 or points <= 1:
        run(row, 0, points)
        return
    if cost < word(row, LONG):  # by the guess: is it so this time too?
        few = max(min(points // word(row, PART), word(row, FEW)), 1)
        asking = True
        while asking:
            start = now(process, row)
            run(row, first, first + few)
            spent = now(process, row) - start
            first += few
            cost = scaled(spent, points - first, few)
            asking = spent < word(row, TELLING) and cost >= word(row, LONG)
            few = min(word(row, MORE) * few, points - first)
        if cost < word(row, LONG):
            run(row, first, points)
            return
    help_with(process, row, first, divide(row, first, cost))


def run(row: int, start: int, stop: int) -> None:
    """Compute a range of points."""
    call(word(row, RUN), start, stop, word(row, MEMORY), 0)


def divide(row: int, first: int, cost: int) -> int:
    """Cut the points from one on into pieces; return how many threads are useful."""
    job, threads = word(row, JOB), word(row, THREADS)
    rest = word(row, POINTS) - first
    grain = scaled(word(row, PIECE), rest, max(cost, 1)) + 1
    size = -(-rest // (word(row, PIECES) * threads * grain)) * grain
    put(job, START, first)
    put(job, SIZE, size)
    put(job, COUNT, -(-rest // size))
    return min(threads, word(job, COUNT))


def help_with(process: int, row: int, first: int, lanes: int) -> None:
    """Have threads share the points from one on; note what they took."""
    job, helpers = word(row, JOB), word(process, HELPERS)
    put(job, LANES, lanes)
    put(job, STATIONS, word(helpers, 0))
    put(job, STATION_COUNT, min(word(helpers, 1), lanes - 1))
    put(job, ENDED, 0)
    for lane in range(lanes):
        put(line(job, lane), HELPER, 0)
        put(line(job, lane), NEXT, 0)
    start = now(process, row)
    lead(job, 0)
    spent = max(now(process, row) - start - word(row, OWN), 0)
    points, threads = word(row, POINTS), word(row, THREADS)
    put(row, COST, scaled(spent * threads, points, points - first))


def now(process: int, row: int) -> int:
    """Return the time in nanoseconds."""
    room = row + WORD * ROOM
    call(word(process, CLOCK), MONOTONIC, room, 0, 0)
    return word(room, 0) * SECOND + word(room, 1)


def scaled(nanoseconds: int, count: int, taken: int) -> int:
    """Return what a count takes, from what so many took."""
    return int(min(nanoseconds * (count / taken), FOR_EVER))
