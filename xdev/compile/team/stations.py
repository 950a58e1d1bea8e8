"""How threads help each other, as plain functions on words, to be compiled.

A *job* is one call's work for several *lanes*: whoever calls is lane 0 and begins at
once; every lane, before it begins, wakes up to ``FAN`` others, and at the end waits for
those of them that began: nobody waits for a thread that is still asleep. A *station*
is a thread that serves whichever job claims it; two jobs never share one. All is in
words of int64, at the indices below; addresses are integers.

What one thread hands to another goes through a *gate*: three things at ``VALUE``,
``ASLEEP`` and ``SEMAPHORE``. Who waits there looks for a while and then sleeps on a
semaphore of the C library; neither takes a lock of the interpreter.
"""

from __future__ import annotations

from xdev.compile.team.operations import glance
from xdev.memory.native.operations import WORD, call, exchange, load

LINE = 8  # words of a cache line
FAN = 4  # lanes that a lane wakes

# The first words of a job, its head; those after them are its body's.
BODY = 0  # a C function: body(job, lane) does work until none is left
LANES = 1  # how many lanes at most
LINES = 2  # where each lane has words of its own, LINE of them
STATIONS, STATION_COUNT = 3, 4  # where they are, and how many
TURNS = 5  # looks for a station's end before its lane sleeps
POST, SLEEP = 6, 7  # sem_post, sem_wait
ENDED = 8  # whether a lane found no work
HEAD = 9

HELPER = 0  # of a lane's words: the station that runs it, 0 for none

# The words of a gate, and those of a station.
VALUE, ASLEEP, SEMAPHORE = 0, 1, 2
CLAIMED, LANE = 0, 1
WORK, DONE = 8, 16  # gates: there is a job; one more than the error it ended with
STATION_WORDS = 24

STATUS = 0xFFFFFFFF  # the bits of an int that a C function returned
QUIT = -1  # in place of a job: the thread is to end


def word(base: int, index: int) -> int:
    """Return a word of a job or a station."""
    return load(base + WORD * index)


def line(job: int, lane: int) -> int:
    """Return where a lane's own words are."""
    return word(job, LINES) + WORD * LINE * lane


def lead(job: int, lane: int) -> int:
    """Run a lane and those that it wakes; return the first error, or 0."""
    for k in range(FAN):
        wake(job, FAN * lane + 1 + k)
    error = call(word(job, BODY), job, lane, 0, 0)
    exchange(job + WORD * ENDED, 1)
    for k in range(FAN):
        other = dismiss(job, FAN * lane + 1 + k)
        if error == 0:
            error = other
    return error


def wake(job: int, lane: int) -> int:
    """Have a free station run a lane, if there is work for it; return it, or 0."""
    if lane >= word(job, LANES) or glance(job + WORD * ENDED) != 0:
        return 0
    count = word(job, STATION_COUNT)
    for k in range(count):
        # A lane's own station first: its caches may have what it used last time.
        number = (lane - 1 + k) % count
        station = word(job, STATIONS) + WORD * STATION_WORDS * number
        claimed = station + WORD * CLAIMED
        if glance(claimed) == 0 and exchange(claimed, 1) == 0:
            exchange(line(job, lane) + WORD * HELPER, station)
            exchange(station + WORD * LANE, lane)
            hand(station + WORD * WORK, job, word(job, POST))
            return station
    return 0


def dismiss(job: int, lane: int) -> int:
    """Wait for a lane's station, unless it did not begin; return its error."""
    station = 0
    if lane < word(job, LANES):
        station = word(line(job, lane), HELPER)
    if station == 0:
        return 0
    done = 1
    if exchange(station + WORD * WORK, 0) == 0:
        done = take(station + WORD * DONE, word(job, TURNS), word(job, SLEEP))
    exchange(station + WORD * CLAIMED, 0)
    return done - 1


def serve(station: int, turns: int, post: int, sleep: int) -> int:
    """Run lanes of one job after the other, until told to quit."""
    job = take(station + WORD * WORK, turns, sleep)
    while job != QUIT:
        error = lead(job, word(station, LANE))
        hand(station + WORD * DONE, 1 + error, post)
        job = take(station + WORD * WORK, turns, sleep)
    return 0


def hand(gate: int, value: int, post: int) -> None:
    """Give a value that is not 0 to whoever waits at a gate, and wake it."""
    exchange(gate, value)
    if exchange(gate + WORD * ASLEEP, 0) != 0:
        call(post, gate + WORD * SEMAPHORE, 0, 0, 0)


def take(gate: int, turns: int, sleep: int) -> int:
    """Wait at a gate for a value; look so many times for it before sleeping."""
    value = 0
    while value == 0:
        for _ in range(turns):
            if glance(gate) != 0:
                break
        value = exchange(gate, 0)
        if value == 0:
            exchange(gate + WORD * ASLEEP, 1)
            value = exchange(gate, 0)  # it may have come before who gave it saw that
            if value == 0 or exchange(gate + WORD * ASLEEP, 0) == 0:
                while call(sleep, gate + WORD * SEMAPHORE, 0, 0, 0) & STATUS != 0:
                    pass  # a signal woke it
    return value
