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
    stock_up,
    take,
)
from xdev.memory.native.layout import CORES_AT, MISS, REFUSAL_AT, STREAM_AT, TOKEN
from xdev.memory.native.operations import (
    WORD,
    call,
    load,
    lock,
    torch_word,
    unlock,
    view,
    words,
)

# Of `devices`.
STREAM, REFUSAL, CORES = WORD * STREAM_AT, WORD * REFUSAL_AT, WORD * CORES_AT
# `table`: the core; whether new arrays are served, and from which size on; the
# context and the functions of the allocator that was there; C's memset, memmove,
# madvise and malloc_usable_size, the last two 0 where there are none.
CORE, SERVES, LEAST = 0, WORD, 2 * WORD
CONTEXT = 3 * WORD
MALLOC_AT, CALLOC_AT, REALLOC_AT, FREE_AT = (WORD * at for at in range(4, 8))
FILL_AT, COPY_AT, ADVISE_AT, USABLE_AT = (WORD * at for at in range(8, 12))
TABLE_WORDS = 12

REFUSED, NOT_SERVED = 0, -1  # what a miss returns in place of an address
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


def core_adopt(core: int, address: int, nbytes: int, stream: int, size: int) -> int:
    """Add a block in use; return its number, or -1."""
    lock(core)
    block = adopt(words(core), address, nbytes, stream, size)
    unlock(core)
    return block


def core_stock_up(core: int, address: int) -> None:
    """Make a block that was just adopted free."""
    lock(core)
    stock_up(words(core), address)
    unlock(core)


def core_mark(core: int, address: int) -> None:
    """Have a block come back by way of Python."""
    lock(core)
    mark(words(core), address)
    unlock(core)


def core_drain(core: int, out: int, room: int) -> int:
    """Remove up to ``room`` free blocks; write their numbers; return how many."""
    lock(core)
    count = drain(words(core), view(out, room), room)
    unlock(core)
    return count


def served(core: int, nbytes: int, stream: int) -> int:
    """Return a block's address, or what a miss returns."""
    found = core_take(core, nbytes, stream)
    miss = load(core + WORD * MISS)
    if found != 0 or miss == 0:
        return found if found != 0 else NOT_SERVED
    return call(miss, load(core + WORD * TOKEN), nbytes, stream, 0)


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


def numpy_grow(table: int, address: int, nbytes: int) -> int:
    """Move what is not the core's into it where it grows large; else resize it there.

    The allocator that was there is told a size at which it keeps nothing for later.
    """
    context, usable, room = load(table + CONTEXT), load(table + USABLE_AT), nbytes
    if usable != 0 and load(table + SERVES) != 0 and nbytes >= load(table + LEAST):
        room = call(usable, address, 0, 0, 0)
    if room >= nbytes:
        return call(load(table + REALLOC_AT), context, address, nbytes, 0)
    found = served(load(table + CORE), nbytes, 0)
    if found == NOT_SERVED:
        return call(load(table + REALLOC_AT), context, address, nbytes, 0)
    moved = found & ~FRESH
    if moved != 0:
        call(load(table + COPY_AT), moved, address, room, 0)
        call(load(table + FREE_AT), context, address, nbytes, 0)
    return moved


def numpy_realloc(table: int, address: int, nbytes: int) -> int:
    """Keep a block that fits and is at least half used; else move."""
    core = load(table + CORE)
    held = 0
    if address != 0 and address & ALIGNED == 0:
        lock(core)
        held = size_of(words(core), address)
        unlock(core)
    if held == 0:
        return numpy_grow(table, address, nbytes)
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
