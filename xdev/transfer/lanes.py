"""A staged copy as plain functions on words, which run without Python once compiled.

They take the steps of :mod:`~xdev.transfer.schedule`, in memory that is packed on both
sides. A copy is a job of :mod:`~xdev.compile.team.stations`, and its body is
:func:`run`. All is in words of int64, at the indices below; addresses are integers.
"""

from __future__ import annotations

from xdev.compile.team.operations import add
from xdev.compile.team.stations import HEAD, STATUS, word
from xdev.memory.native.operations import WORD, call, exchange, load

# The words of a job behind its head.
NEXT = HEAD  # the first piece that nobody took
COUNT, CHUNK, NBYTES = HEAD + 1, HEAD + 2, HEAD + 3  # pieces, and the size of each [B]
HOST, THERE = HEAD + 4, HEAD + 5  # where the array lies in host memory, and there
STREAM, CONTEXT = HEAD + 6, HEAD + 7  # the driver's handles
UP = HEAD + 8  # whether it goes to the device
SLOTS = HEAD + 9  # of each lane
RING = HEAD + 10  # where the slots are: CHUNK bytes each, those of a lane together
EVENTS = HEAD + 11  # where the words of the slots' events are
TAKEN = HEAD + 12  # where the slots' words are that say which piece is in them
FAILED = HEAD + 13  # the piece at which an error came up, plus one
ENTER, COPY, RECORD, WAIT = HEAD + 14, HEAD + 15, HEAD + 16, HEAD + 17  # the driver's
MOVE = HEAD + 18  # memcpy
JOB_WORDS = HEAD + 19


def run(job: int, lane: int) -> int:
    """Take pieces until none is left; after an error, none is for the others either."""
    error = call(word(job, ENTER), word(job, CONTEXT), 0, 0, 0) & STATUS
    if error == 0:
        error = upload(job, lane) if word(job, UP) != 0 else download(job, lane)
    if error != 0:
        add(job + WORD * NEXT, word(job, COUNT))
    return error


def upload(job: int, lane: int) -> int:
    """Fill slots and send them; at the end, some are still on the bus."""
    count, slots = word(job, COUNT), word(job, SLOTS)
    number, error = 0, 0
    piece = add(job + WORD * NEXT, 1)
    while piece < count:
        slot = lane * slots + number % slots
        if number >= slots:
            error = wait(job, slot)
        if error == 0:
            move(job, ring(job, slot), word(job, HOST) + at(job, piece), piece)
            there = word(job, THERE) + at(job, piece)
            error = queue(job, there, ring(job, slot), piece, slot)
        if error != 0:
            exchange(job + WORD * FAILED, piece + 1)
            return error
        number += 1
        piece = add(job + WORD * NEXT, 1)
    return 0


def download(job: int, lane: int) -> int:
    """Have slots filled by the device, and empty them in turn."""
    count, slots = word(job, COUNT), word(job, SLOTS)
    number, landed, error = 0, 0, 0
    piece = add(job + WORD * NEXT, 1)
    while piece < count or landed < number:
        if piece < count and number - landed < slots:
            slot = lane * slots + number % slots
            failed = piece
            there = word(job, THERE) + at(job, piece)
            error = queue(job, ring(job, slot), there, piece, slot)
            exchange(word(job, TAKEN) + WORD * slot, piece)
            number += 1
            piece = add(job + WORD * NEXT, 1)
        else:
            slot = lane * slots + landed % slots
            failed = load(word(job, TAKEN) + WORD * slot)
            error = wait(job, slot)
            if error == 0:
                move(job, word(job, HOST) + at(job, failed), ring(job, slot), failed)
            landed += 1
        if error != 0:
            exchange(job + WORD * FAILED, failed + 1)
            return error
    return 0


def at(job: int, piece: int) -> int:
    """Return where a piece starts [B]."""
    return word(job, CHUNK) * piece


def size(job: int, piece: int) -> int:
    """Return how large a piece is [B]."""
    return min(word(job, CHUNK), word(job, NBYTES) - at(job, piece))


def ring(job: int, slot: int) -> int:
    """Return the address of a slot."""
    return word(job, RING) + word(job, CHUNK) * slot


def event(job: int, slot: int) -> int:
    """Return the event of a slot."""
    return load(word(job, EVENTS) + WORD * slot)


def move(job: int, to: int, origin: int, piece: int) -> None:
    """Copy a piece within host memory."""
    call(word(job, MOVE), to, origin, size(job, piece), 0)


def queue(job: int, to: int, origin: int, piece: int, slot: int) -> int:
    """Queue the copy of a piece over the bus, and then the slot's event."""
    stream = word(job, STREAM)
    error = call(word(job, COPY), to, origin, size(job, piece), stream) & STATUS
    if error == 0:
        error = call(word(job, RECORD), event(job, slot), stream, 0, 0) & STATUS
    return error


def wait(job: int, slot: int) -> int:
    """Wait until the slot's last piece is over the bus."""
    return call(word(job, WAIT), event(job, slot), 0, 0, 0) & STATUS
