"""A staged copy as plain functions on words, which run without Python once compiled.

They take the steps of :mod:`~xdev.transfer.schedule`, in memory that is packed on both
sides. One C call is a whole copy: the calling thread is lane 0 and begins at once;
every lane, before it begins, wakes up to two others, and at the end waits for those of
them that began. All is in words of int64, at the indices below; addresses are integers.

A *station* is a thread that serves (:func:`serve`) whichever copy claims it. It sleeps
on a semaphore of the C library: waking it takes no lock of the interpreter.
"""

from __future__ import annotations

import ctypes

from xdev.memory.native.operations import WORD, call, exchange, load

# The words of a job: one copy.
NEXT = 0  # the first piece that nobody took
COUNT, CHUNK, NBYTES = 1, 2, 3  # pieces, and the size of each and of all [B]
HOST, THERE = 4, 5  # where the array lies in host memory, and where on the device
STREAM, CONTEXT = 6, 7  # the driver's handles
UP = 8  # whether it goes to the device
LANES, SLOTS = 9, 10  # how many lanes at most, and slots of each
RING = 11  # where the slots are: CHUNK bytes each, those of a lane together
EVENTS = 12  # where the words of the slots' events are
TAKEN = 13  # where the slots' words are that say which piece is in them
STATIONS, STATION_COUNT = 14, 15  # where they are, and how many
FAILED = 16  # the piece at which an error came up, plus one
ENTER, COPY, RECORD, WAIT = 17, 18, 19, 20  # functions of the driver
MOVE, POST, SLEEP = 21, 22, 23  # memcpy, sem_post, sem_wait
JOB_WORDS = 24

# The words of a station.
CLAIMED, JOB, LANE, ERROR = 0, 1, 2, 3
WORK, DONE = 4, 8  # semaphores of 32 bytes: there is a job; the job is done
STATION_WORDS = 12

STATUS = 0xFFFFFFFF  # the bits of an int that a C function returned
QUIT = -1  # in place of a job: the thread is to end


def add(address: int, value: int) -> int:
    """Add to a word and return what it was, in one step."""
    place = ctypes.c_int64.from_address(address)
    before = place.value
    place.value += value
    return before


def word(base: int, index: int) -> int:
    """Return a word of a job or a station."""
    return load(base + WORD * index)


def lead(job: int, lane: int) -> int:
    """Run a lane and those that it wakes; return an error of the driver, or 0."""
    left = wake(job, 2 * lane + 1)
    right = wake(job, 2 * lane + 2)
    error = run(job, lane)
    for station in (left, right):
        other = dismiss(job, station)
        if error == 0:
            error = other
    return error


def wake(job: int, lane: int) -> int:
    """Have a free station run a lane, if there is work for it; return it, or 0."""
    if lane >= word(job, LANES) or word(job, NEXT) >= word(job, COUNT):
        return 0
    for number in range(word(job, STATION_COUNT)):
        station = word(job, STATIONS) + WORD * STATION_WORDS * number
        if exchange(station + WORD * CLAIMED, 1) == 0:
            exchange(station + WORD * LANE, lane)
            exchange(station + WORD * JOB, job)
            call(word(job, POST), station + WORD * WORK, 0, 0, 0)
            return station
    return 0


def dismiss(job: int, station: int) -> int:
    """Wait for a station, unless it did not begin; return its error."""
    if station == 0:
        return 0
    error = 0
    if exchange(station + WORD * JOB, 0) == 0:
        done = station + WORD * DONE
        while call(word(job, SLEEP), done, 0, 0, 0) & STATUS != 0:
            pass  # a signal woke it
        error = word(station, ERROR)
    exchange(station + WORD * CLAIMED, 0)
    return error


def serve(station: int, sleep: int, post: int) -> int:
    """Run lanes of one job after the other, until told to quit."""
    job = 0
    while job != QUIT:
        if job != 0:
            exchange(station + WORD * ERROR, lead(job, word(station, LANE)))
            call(post, station + WORD * DONE, 0, 0, 0)
        call(sleep, station + WORD * WORK, 0, 0, 0)
        # None: it was too late for one, or a signal came.
        job = exchange(station + WORD * JOB, 0)
    return 0


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
