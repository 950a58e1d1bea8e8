"""What other libraries call: C functions around the core, as plain functions.

Arguments and results are int64 but for CUDA's device numbers; addresses are integers.
``core`` is the address of a core's words; ``devices`` and ``table`` are described at
their indices, those of ``devices`` in :mod:`~xdev.memory.native.layout`. Nothing here
is called with the core's lock held, and the lock is never held while something else is
called.
"""

from __future__ import annotations

from xdev.memory.native.core import (
    adopt,
    drain,
    give,
    mark,
    size_of,
    state_of,
    stock_up,
    take,
)
from xdev.memory.native.layout import (
    ADDED,
    CORES_AT,
    INTERRUPT,
    INTERRUPTED,
    MISS,
    RECORD_AT,
    REFUSAL_AT,
    STATE_OF_ANSWER,
    STREAM_AT,
    UNANSWERED,
)
from xdev.memory.native.operations import (
    WORD,
    call,
    exchange,
    load,
    lock,
    new_answer,
    torch_word,
    unlock,
    view,
    words,
)

# Of `devices`.
STREAM, REFUSAL, CORES = WORD * STREAM_AT, WORD * REFUSAL_AT, WORD * CORES_AT
RECORD = WORD * RECORD_AT
# `table`: the core; whether new arrays are served, and from which size on; the
# context and the functions of the allocator that was there; C's memset, memmove and
# madvise, the last 0 where there is none.
CORE, SERVES, LEAST = 0, WORD, 2 * WORD
CONTEXT = 3 * WORD
MALLOC_AT, CALLOC_AT, REALLOC_AT, FREE_AT = (WORD * at for at in range(4, 8))
FILL_AT, COPY_AT, ADVISE_AT = (WORD * at for at in range(8, 11))
TABLE_WORDS = 11

FREE_AT_ONCE = -1  # in the place of an answer
REFUSED, NOT_SERVED = 0, -1  # what a miss answers in place of an address
FRESH = 1  # added to the address of memory that the system has filled with zeros
PAGE = 4096  # [B]
LAZY = 32 << 20  # from here on the system makes the zeros, where they are touched [B]
DONT_NEED = 4  # MADV_DONTNEED
ALIGNED = 63  # the bits that are 0 in the address of every block


def core_take(core: int, nbytes: int, stream: int) -> int:
    """Return a free block of the very class, or 0."""
    lock(core)
    found = take(words(core), nbytes, stream)
    unlock(core)
    return found


def core_give(core: int, address: int) -> int:
    """Take a block back; return whether the address is one of the core's."""
    lock(core)
    known = give(words(core), address)
    unlock(core)
    return known


def core_adopt(
    core: int, address: int, nbytes: int, stream: int, size: int, answer: int
) -> int:
    """Add a block; return its number, or -1.

    It is in use, and its address goes to an ``answer``, if any (0), in the same step,
    so that nothing comes between. Or it is ``FREE_AT_ONCE``.
    """
    lock(core)
    block = adopt(words(core), address, nbytes, stream, size)
    if block >= 0 and answer == FREE_AT_ONCE:
        stock_up(words(core), address)
    elif block >= 0 and answer != 0:
        exchange(answer, address)
    unlock(core)
    return block


def core_state(core: int, address: int) -> int:
    """Return the state of a block, 0 where the core has none at the address."""
    lock(core)
    state = state_of(words(core), address)
    unlock(core)
    return state


def core_mark(core: int, address: int) -> None:
    """Have a block come back by way of Python."""
    lock(core)
    mark(words(core), address)
    unlock(core)


def core_drain(core: int, out: int, room: int) -> int:
    """Remove up to ``room`` free blocks; write their addresses; return how many."""
    lock(core)
    count = drain(words(core), view(out, room), room)
    unlock(core)
    return count


def served(core: int, nbytes: int, stream: int) -> int:
    """Return a block's address, or what a miss answers."""
    found = core_take(core, nbytes, stream)
    miss = load(core + WORD * MISS)
    if found != 0 or miss == 0:
        return found if found != 0 else NOT_SERVED
    return asked(miss, load(core + WORD * INTERRUPT), nbytes, stream)


def asked(function: int, interrupt: int, first: int, second: int) -> int:
    """Return what Python answers to two numbers, 0 where it raises.

    Where it raised before it did anything, it is asked again.
    """
    answer = new_answer()
    call(function, first, second, answer, 0)
    if load(answer + WORD * STATE_OF_ANSWER) == UNANSWERED:
        call(function, first, second, answer, 1)
    if load(answer + WORD * STATE_OF_ANSWER) == INTERRUPTED:
        call(interrupt, 0, 0, 0, 0)  # who called us goes on, and is interrupted next
    found = load(answer)
    return found + load(answer + WORD * ADDED) if found > 0 else found


def core_of(devices: int, device: int) -> int:
    """Return the core of a device, or 0."""
    if device < 0 or device >= load(devices):
        return 0
    return load(devices + CORES + WORD * device)


def cupy_malloc(devices: int, nbytes: int, device: int) -> int:
    """Serve CuPy's ``CFunctionAllocator``; 0 sends it to Python."""
    core = core_of(devices, device)
    if core == 0:
        return 0
    return core_take(core, nbytes, call(load(devices + STREAM), 0, 0, 0, 0))


def cupy_free(devices: int, address: int, device: int) -> None:
    """Take CuPy's block back."""
    core_give(core_of(devices, device), address)


def numpy_malloc(table: int, nbytes: int) -> int:
    """Serve NumPy's arrays of some size; the rest goes where it went before."""
    if load(table + SERVES) != 0 and nbytes >= load(table + LEAST):
        found = served(load(table + CORE), nbytes, 0)
        if found != NOT_SERVED:
            return found & ~FRESH
    return call(load(table + MALLOC_AT), load(table + CONTEXT), nbytes, 0, 0)


def clear(table: int, address: int, nbytes: int) -> None:
    """Fill a block with zeros; whole pages of a large one are given up for fresh ones.

    So an array of zeros of which little is touched takes little memory, whoever had
    its block before.
    """
    fill, advise = load(table + FILL_AT), load(table + ADVISE_AT)
    first, last = (address + PAGE - 1) & -PAGE, (address + nbytes) & -PAGE
    if nbytes < LAZY or advise == 0 or call(advise, first, last - first, DONT_NEED, 0):
        call(fill, address, 0, nbytes, 0)
    else:
        call(fill, address, 0, first - address, 0)
        call(fill, last, 0, address + nbytes - last, 0)


def numpy_calloc(table: int, count: int, nbytes: int) -> int:
    """Serve zeros; what the system has just filled is not filled again."""
    total = count * nbytes
    if load(table + SERVES) != 0 and total >= load(table + LEAST):
        found = served(load(table + CORE), total, 0)
        if found > 0 and found & FRESH == 0:
            clear(table, found, total)
        if found != NOT_SERVED:
            return found & ~FRESH
    return call(load(table + CALLOC_AT), load(table + CONTEXT), count, nbytes, 0)


def numpy_free(table: int, address: int, nbytes: int) -> None:
    """Take an array's memory back; what is not the core's goes where it came from."""
    core = load(table + CORE)
    if address == 0 or address & ALIGNED != 0 or core_give(core, address) == 0:
        call(load(table + FREE_AT), load(table + CONTEXT), address, nbytes, 0)


def numpy_realloc(table: int, address: int, nbytes: int) -> int:
    """Keep a block that fits and is at least half used; else move.

    What is not the core's stays with the allocator that was there: only that one knows
    how large it is.
    """
    core = load(table + CORE)
    held = 0
    if address != 0 and address & ALIGNED == 0:
        lock(core)
        held = size_of(words(core), address)
        unlock(core)
    if held == 0:
        context = load(table + CONTEXT)
        return call(load(table + REALLOC_AT), context, address, nbytes, 0)
    if held // 2 <= nbytes <= held:
        return address
    moved = numpy_malloc(table, nbytes)
    if moved != 0:
        call(load(table + COPY_AT), moved, address, min(held, nbytes), 0)
        numpy_free(table, address, held)
    return moved


def torch_malloc(nbytes: int, device: int, stream: int) -> int:
    """Serve PyTorch's ``CUDAPluggableAllocator``, which must be told of a refusal."""
    devices = load(torch_word())
    core = core_of(devices, device)
    found = served(core, nbytes, stream) if core != 0 else NOT_SERVED
    if found > 0:
        return found & ~FRESH
    throw, where = load(devices + REFUSAL), load(devices + REFUSAL + WORD)
    text = load(devices + REFUSAL + (2 if found == REFUSED else 3) * WORD)
    return call(throw, where, where, 0, text) if throw != 0 else REFUSED


def torch_free(address: int, nbytes: int, device: int, stream: int) -> None:  # noqa: ARG001 - PyTorch passes them
    """Take PyTorch's block back."""
    core = core_of(load(torch_word()), device)
    if core != 0:
        core_give(core, address)


def torch_record(address: int, stream: int) -> None:
    """Keep PyTorch's block, once given back, until a stream is done with it."""
    devices = load(torch_word())
    record = load(devices + RECORD)
    if record != 0:
        asked(record, load(devices + RECORD + WORD), address, stream)
