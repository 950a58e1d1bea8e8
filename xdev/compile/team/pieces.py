"""A range shared by lanes, and ranges of a ufunc's elements: plain functions.

Every lane has a share of its own, so that in a loop of calls it meets the same data
again; a lane that is done takes pieces of the others' shares.
"""

from __future__ import annotations

from xdev.compile.team.operations import add, glance
from xdev.compile.team.stations import HEAD, HELPER, LANES, line, word
from xdev.memory.native.operations import WORD, call, view

# The words of a job behind its head.
FUNCTION, CONTEXT = HEAD, HEAD + 1  # function(start, stop, context, lane) does a piece
START, STOP, SIZE, COUNT = HEAD + 2, HEAD + 3, HEAD + 4, HEAD + 5  # and how many pieces
JOB_WORDS = HEAD + 6
# The words of a lane.
NEXT = HELPER + 1  # the first piece of its share that nobody took

# A ufunc's context: its inner loop; how many operands, and outer dimensions; C's
# feclearexcept and fetestexcept; where each lane has a room, and how many words that
# has. Then the extents, the operands' addresses, and for each dimension their strides;
# the innermost is last.
LOOP, OPERANDS, OUTER, CLEAR, TEST, ROOMS, ROOM_WORDS, SHAPE = range(8)
# A room: the exceptions that the lane met, and what it calls the inner loop with.
RAISED, EXTENT, POINTERS = 0, 1, 2
EXCEPTIONS = 0x1F  # of floating point, all of x86-64's and AArch64's


def share(job: int, lane: int) -> int:
    """Do pieces until none is left, those of the lane's own share first."""
    lanes, count = word(job, LANES), word(job, COUNT)
    for k in range(lanes):
        owner = (lane + k) % lanes
        cursor = line(job, owner) + WORD * NEXT
        first, end = count * owner // lanes, count * (owner + 1) // lanes
        piece = first + glance(cursor)
        if piece < end:
            piece = first + add(cursor, 1)
        while piece < end:
            start = word(job, START) + word(job, SIZE) * piece
            stop = min(start + word(job, SIZE), word(job, STOP))
            call(word(job, FUNCTION), start, stop, word(job, CONTEXT), lane)
            piece = first + add(cursor, 1)
    return 0


def elements(start: int, stop: int, context: int, lane: int) -> int:
    """Run a ufunc's inner loop on a range of the result's elements, row by row."""
    operands, outer = word(context, OPERANDS), word(context, OUTER)
    shape = context + WORD * SHAPE
    places = shape + WORD * (outer + 1)
    steps = places + WORD * operands
    inner = steps + WORD * operands * outer
    extent = word(shape, outer)
    at = word(context, ROOMS) + WORD * word(context, ROOM_WORDS) * lane
    room = view(at, POINTERS + operands)
    call(word(context, CLEAR), EXCEPTIONS, 0, 0, 0)
    while start < stop:
        row, begin = start // extent, start % extent
        count = min(extent - begin, stop - start)
        room[EXTENT] = count
        for k in range(operands):
            place, left = word(places, k) + begin * word(inner, k), row
            for axis in range(outer - 1, -1, -1):
                index = left % word(shape, axis)
                place += index * word(steps, operands * axis + k)
                left //= word(shape, axis)
            room[POINTERS + k] = place
        pointers, dimensions = at + WORD * POINTERS, at + WORD * EXTENT
        call(word(context, LOOP), pointers, dimensions, inner, 0)
        start += count
    room[RAISED] |= call(word(context, TEST), EXCEPTIONS, 0, 0, 0) & EXCEPTIONS
    return 0
