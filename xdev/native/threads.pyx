# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: infer_types=True, freethreading_compatible=True
"""The compiled tier: threads that share loops and staged copies, without Python.

A *job* is one call's work for several *lanes*. The caller is lane 0 and begins at once;
every lane, before it begins, wakes up to `FAN` others, and at the end waits for those
of them that began: nobody waits for a thread that is still asleep. A *worker* is a
thread that serves whichever job claims it. Workers start at first use, in a forked
child again, and never end: asleep, they take no part in Python.

On a free-threaded Python: what threads share are single words, read and written by
atomic operations; workers start under a lock. A job's other words are written before a
worker sees it. What is called here is described in `xdev.compile.threads.PythonTeam`.
"""

from libc.stdint cimport intptr_t
from libc.string cimport memcpy, memset
from posix.unistd cimport getpid
cimport numpy as cnp

import os
import threading

cdef extern from * nogil:
    """
    #include <fenv.h>
    #ifndef __x86_64__
    #define __builtin_ia32_pause()
    #endif
    """
    void pause "__builtin_ia32_pause"()
    intptr_t load "__atomic_load_n"(intptr_t*, int)
    intptr_t swap "__atomic_exchange_n"(intptr_t*, intptr_t, int)
    intptr_t add "__atomic_fetch_add"(intptr_t*, intptr_t, int)
    intptr_t merge "__atomic_fetch_or"(intptr_t*, intptr_t, int)
    int ORDERED "__ATOMIC_SEQ_CST"
    void* new_lock "PyThread_allocate_lock"()
    int acquire "PyThread_acquire_lock"(void*, int)
    void release "PyThread_release_lock"(void*)
    int feclearexcept(int)
    int fetestexcept(int)

cdef enum:
    FAN = 4  # lanes that a lane wakes
    MOST = 1024  # workers
    ERRORS = 0x1F  # of floating point, as `xdev.compile.formulas.ALL`
    OPERANDS = 64  # of a ufunc: NumPy's own limit

cdef extern from "numpy/ufuncobject.h":
    ctypedef struct PyUFuncObject:
        int nargs, ntypes
        void** functions
        void** data
        char* types

ctypedef void (*Piece)(intptr_t, intptr_t, void*, intptr_t) noexcept nogil
ctypedef void (*Loop)(char**, intptr_t*, intptr_t*, void*) noexcept nogil

# Each to the end of a cache line; two threads write to none.
cdef struct Mailbox:  # in which one thread leaves a word that is not 0 for another
    intptr_t value, asleep
    void* lock  # of who sleeps there, made then; held until it is to wake
    char room[40]

cdef struct Worker:
    intptr_t claimed, lane
    char room[48]
    Mailbox work, done  # a job; any word, when its lane has ended

cdef struct Lane:
    Worker* worker
    intptr_t next  # the first piece of its share that nobody took
    char room[48]

cdef struct Job:
    Lane* lanes
    intptr_t count, workers  # of lanes; how many threads may be claimed
    intptr_t spins  # looks for what comes next before a thread sleeps
    intptr_t ended  # whether a lane found no work
    intptr_t process  # whose the other lanes are: a forked child does not wait for them
    void* context
    Piece piece  # does some of a range
    intptr_t start, stop, size, pieces

cdef Worker workers[MOST]  # for ever: a thread looks there until the process is gone
cdef intptr_t started = 0
_lock = threading.RLock()  # guards it; a finalizer may come back here


cdef void post(Mailbox* mailbox, intptr_t value) noexcept nogil:
    """Put a value into a mailbox, and wake who waits there."""
    swap(&mailbox.value, value, ORDERED)
    if swap(&mailbox.asleep, 0, ORDERED):
        release(mailbox.lock)


cdef intptr_t wait_for(Mailbox* mailbox, intptr_t spins) noexcept nogil:
    """Take the next value of a mailbox; look for it so many times before sleeping."""
    cdef intptr_t value = 0
    while not value:
        for _ in range(spins):
            if load(&mailbox.value, ORDERED):
                break
            pause()
        value = swap(&mailbox.value, 0, ORDERED)
        if not value:
            if not mailbox.lock:
                mailbox.lock = new_lock()
                acquire(mailbox.lock, 1)
            swap(&mailbox.asleep, 1, ORDERED)
            value = swap(&mailbox.value, 0, ORDERED)  # it may have come just before
            if not value or not swap(&mailbox.asleep, 0, ORDERED):
                acquire(mailbox.lock, 1)
    return value


cdef void start_lane(Job* job, intptr_t lane) noexcept nogil:
    """Have a free worker run a lane, if there is work for it."""
    cdef Worker* worker
    for k in range(job.workers):
        if lane >= job.count or load(&job.ended, ORDERED):
            return
        # A lane's own worker first: its caches may have what it used last time.
        worker = &workers[(lane - 1 + k) % job.workers]
        if not (load(&worker.claimed, ORDERED) or swap(&worker.claimed, 1, ORDERED)):
            job.lanes[lane].worker = worker
            worker.lane = lane
            post(&worker.work, <intptr_t>job)
            return


cdef void join_lane(Job* job, intptr_t lane) noexcept nogil:
    """Wait for a lane's worker, unless it did not begin."""
    cdef Worker* worker = job.lanes[lane].worker if lane < job.count else NULL
    if worker and job.process == getpid():
        if not swap(&worker.work.value, 0, ORDERED):
            wait_for(&worker.done, job.spins)
        swap(&worker.claimed, 0, ORDERED)


cdef void run_lane(Job* job, intptr_t lane) noexcept nogil:
    """Run a lane and those that it wakes."""
    for k in range(FAN):
        start_lane(job, FAN * lane + 1 + k)
    run_pieces(job, lane)
    swap(&job.ended, 1, ORDERED)
    for k in range(FAN):
        join_lane(job, FAN * lane + 1 + k)


cdef void run_pieces(Job* job, intptr_t lane) noexcept nogil:
    """Do pieces until none is left, those of the lane's own share first.

    So it meets the same data again in a loop of calls.
    """
    cdef intptr_t owner, first, end, piece, start
    for k in range(job.count):
        owner = (lane + k) % job.count
        first = job.pieces * owner // job.count
        end = job.pieces * (owner + 1) // job.count
        piece = first + load(&job.lanes[owner].next, ORDERED)
        while piece < end:
            piece = first + add(&job.lanes[owner].next, 1, ORDERED)
            if piece < end:
                start = job.start + job.size * piece
                job.piece(start, min(start + job.size, job.stop), job.context, lane)


def serve(intptr_t number):
    """Run lanes of one job after the other, as a worker."""
    cdef Worker* worker = &workers[number]
    cdef Job* job
    cdef intptr_t spins = 0, process = getpid()
    with nogil:
        while True:
            job = <Job*>wait_for(&worker.work, spins)
            spins = job.spins  # once the lane is done, the job is its caller's again
            run_lane(job, worker.lane)
            if getpid() != process:  # a task forked: this worker may be another thread's
                break
            post(&worker.done, 1)


def start_workers(intptr_t wanted):
    """Return how many workers there are, at most `wanted`; start those that are not."""
    global started
    with _lock:
        while started < min(wanted, MOST):
            number, started = started, started + 1
            name = f"xdev-{started}"
            try:
                threading.Thread(None, serve, name, (number,), daemon=True).start()
            except RuntimeError:  # no more threads here, or Python shuts down
                break  # to others it is one that is always asleep
    return min(started, wanted)


def reset_after_fork():
    """Begin anew in a forked child, which has no threads."""
    global started, _lock
    started, _lock = 0, threading.RLock()
    memset(workers, 0, sizeof(workers))


os.register_at_fork(after_in_child=reset_after_fork)


cdef parallel_for(Piece piece, void* context, tuple shares):
    """Call a function on the pieces of a range."""
    cdef Job job
    job.piece, job.context, job.ended, job.process = piece, context, 0, getpid()
    job.start, job.stop, job.size, job.count, job.spins = shares
    job.pieces = (job.stop - job.start + job.size - 1) // job.size
    job.workers = start_workers(job.count - 1)
    room = bytearray(job.count * sizeof(Lane))  # of zeros
    job.lanes = <Lane*><char*>room
    with nogil:
        run_lane(&job, 0)


def share(intptr_t function, intptr_t context, tuple shares):
    parallel_for(<Piece>function, <void*>context, shares)


cdef void call_task(
    intptr_t start, intptr_t stop, void* context, intptr_t _
) noexcept nogil:
    with gil:
        calls = <list>context
        try:
            if len(calls) == 1:
                calls[0](start, stop)
        except BaseException as error:
            calls.append(error)


def run(task, tuple shares):
    calls = [task]  # and what it raised
    parallel_for(call_task, <void*>calls, shares)
    if len(calls) > 1:
        raise calls[1]


# -- a ufunc's elements ---------------------------------------------------------------


cdef struct Elements:
    Loop loop
    intptr_t* words  # of its operands
    intptr_t raised  # floating point's errors


cdef void call_loop(
    intptr_t start, intptr_t stop, void* context, intptr_t _
) noexcept nogil:
    """Run an inner loop on a range of the result's elements, row by row."""
    cdef Elements* call = <Elements*>context
    cdef intptr_t operands = call.words[0], outer = call.words[1]
    cdef intptr_t* shape = call.words + 2
    cdef intptr_t* origin = shape + outer + 1
    cdef intptr_t* steps = origin + operands
    cdef intptr_t row, index, number
    cdef char* places[OPERANDS]
    feclearexcept(ERRORS)
    while start < stop:
        row, number = start, min(shape[outer] - start % shape[outer], stop - start)
        memcpy(places, origin, operands * sizeof(char*))
        for axis in range(outer, -1, -1):
            row, index = row // shape[axis], row % shape[axis]
            for k in range(operands):
                places[k] += index * steps[operands * axis + k]
        call.loop(places, &number, steps + operands * outer, NULL)
        start += number
    merge(&call.raised, fetestexcept(ERRORS), ORDERED)


def loop_of(ufunc, int number):
    """Return the inner loop of one data type alone, which takes nothing else, or 0."""
    cdef PyUFuncObject* known = <PyUFuncObject*><void*>ufunc
    for k in range(known.ntypes):
        types = {known.types[known.nargs * k + i] for i in range(known.nargs)}
        if types == {number} and not (known.data and known.data[k]):
            return <intptr_t>known.functions[k]
    return 0


def elements(intptr_t loop, bytes words, tuple shares):
    cdef Elements call = Elements(<Loop>loop, <intptr_t*><char*>words, 0)
    parallel_for(call_loop, &call, shares)
    return call.raised


# -- staged copies --------------------------------------------------------------------

cdef struct Slot:  # and in a lane's first, how many pieces the lane took
    intptr_t event, start, size, turns  # the driver's; what is in it of the array

cdef struct Copy:  # the words that `xdev.transfer.pinned` writes
    int (*enter)(intptr_t) noexcept nogil
    int (*wait)(intptr_t) noexcept nogil
    int (*record)(intptr_t, intptr_t) noexcept nogil
    int (*queue)(intptr_t, intptr_t, intptr_t, intptr_t) noexcept nogil
    intptr_t up, host, device, ring, nbytes, chunk, slots, stream, context, pieces
    intptr_t error, failed  # the driver's, and where the piece starts
    Slot all_slots[1]


cdef void copy_piece(
    intptr_t piece, intptr_t _, void* context, intptr_t lane
) noexcept nogil:
    """Copy a piece by the lane's next slot, or only empty one, after the last piece."""
    cdef Copy* copy = <Copy*>context
    cdef Slot* slot = copy.all_slots + lane * copy.slots
    cdef intptr_t number = piece - copy.pieces, error, here, there
    if load(&copy.error, ORDERED):
        return
    if piece < copy.pieces:
        number = lane * copy.slots + slot.turns % copy.slots
        slot.turns += 1
    slot, here = copy.all_slots + number, copy.ring + copy.chunk * number
    error = copy.enter(copy.context)
    if slot.size and not error:
        error = copy.wait(slot.event)
        if not (copy.up or error):
            memcpy(<void*>(copy.host + slot.start), <void*>here, slot.size)
    if piece < copy.pieces and not error:
        slot.start = copy.chunk * piece
        slot.size = min(copy.chunk, copy.nbytes - slot.start)
        there = copy.device + slot.start
        if copy.up:
            memcpy(<void*>here, <void*>(copy.host + slot.start), slot.size)
            here, there = there, here
        error = copy.queue(here, there, slot.size, copy.stream)
        error = error or copy.record(slot.event, copy.stream)
    if error:
        swap(&copy.failed, slot.start, ORDERED)
        swap(&copy.error, error, ORDERED)


COPY_PIECE = <intptr_t>copy_piece


def address(cnp.ndarray x):  # x.ctypes.data takes 1 us
    return <intptr_t>cnp.PyArray_DATA(x)
