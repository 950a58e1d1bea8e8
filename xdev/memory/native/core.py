"""The class hit: free lists by stream and class, as plain functions on one array.

``w`` is an array of int64 in the order of :mod:`~xdev.memory.native.layout`. The
functions are plain Python and are tested as such; compiled, they are the hot path of
CuPy's, NumPy's and PyTorch's allocations. They need the lock that their callers hold;
they call nothing but each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdev.memory.native.layout import (
    ADDRESS,
    BASE,
    BIN_FIRST,
    BIN_LIST,
    BIN_NBYTES,
    BIN_SLOTS,
    BIN_STREAM,
    BINS,
    BLOCKS,
    CLASS,
    COUNTERS,
    EIGHTHS,
    FREE,
    GIVEN,
    HOME,
    IDLE,
    INHERITED,
    KEY,
    LARGEST,
    LIVE,
    MOST_BINS,
    NBYTES,
    NEXT,
    NUMBER,
    ODD,
    OPEN,
    PEAK,
    QUANTUM,
    SHUT,
    SIZES,
    SLOTS,
    STATE,
    TAKEN,
    USED,
    VACANT,
)

if TYPE_CHECKING:
    from collections.abc import MutableSequence

    Words = MutableSequence[int] | memoryview[int]


def granted(w: Words, nbytes: int) -> int:
    """Return the class of a request, as the pool's policy rounds it [B]."""
    quantum = w[QUANTUM]
    size = (max(nbytes, 1) + quantum - 1) // quantum * quantum
    if w[EIGHTHS]:
        step = quantum
        while step * 16 < size:
            step *= 2
        size = (size + step - 1) // step * step
    return size


def slot_of(w: Words, address: int) -> int:
    """Return where an address is in the table, or the empty slot that ends the search.

    There always is one: the table has more slots than there are block numbers.
    """
    slot = (address >> 6 ^ address >> 21) & (SLOTS - 1)
    while w[KEY + slot] != 0 and w[KEY + slot] != address:
        slot = (slot + 1) & (SLOTS - 1)
    return slot


def bin_of(w: Words, stream: int, size: int) -> int:
    """Return the slot of a stream's bin for a class, or the empty one to put it in."""
    place = (size >> 6 ^ size >> 17 ^ stream >> 4 ^ stream >> 13) & (BIN_SLOTS - 1)
    while w[BIN_NBYTES + place] != 0 and (
        w[BIN_NBYTES + place] != size or w[BIN_STREAM + place] != stream
    ):
        place = (place + 1) & (BIN_SLOTS - 1)
    return place


def take(w: Words, nbytes: int, stream: int) -> int:
    """Hand out a free block of the very class; return its address, or 0."""
    if w[OPEN] == 0 or w[SHUT] != 0 or nbytes < 0 or nbytes > LARGEST:
        return 0
    place = bin_of(w, stream, granted(w, nbytes))
    block = w[BIN_FIRST + place] - 1
    if block < 0:
        return 0
    w[BIN_FIRST + place] = w[NEXT + block]
    w[STATE + block] = LIVE
    w[IDLE] -= w[NBYTES + block]
    count(w, TAKEN, block, 1)
    w[PEAK] = max(w[PEAK], w[BASE] - w[IDLE])
    return w[ADDRESS + block]


def give(w: Words, address: int) -> int:
    """Take a block back; return whether the address is one of the core's."""
    slot = slot_of(w, address)
    if w[KEY + slot] == 0:
        return 0
    block = w[NUMBER + slot]
    if w[STATE + block] == INHERITED:
        remove(w, slot)
    elif w[STATE + block] == LIVE:
        count(w, GIVEN, block, 1)
        shelve(w, block)
    return 1


def count(w: Words, counter: int, block: int, by: int) -> None:
    """Add to a counter of blocks, and to that of their bytes which follows it."""
    at = counter + w[CLASS + block]
    w[at] += by
    w[at + SIZES] += by * w[NBYTES + block]


def shelve(w: Words, block: int) -> None:
    """Put a block into its bin, or with the odd ones."""
    w[STATE + block] = FREE
    w[IDLE] += w[NBYTES + block]
    head = ODD if w[HOME + block] == 0 else BIN_FIRST + w[HOME + block] - 1
    w[NEXT + block] = w[head]
    w[head] = block + 1


def adopt(w: Words, address: int, nbytes: int, stream: int, size: int) -> int:
    """Add a block in use, of class ``size`` (0: of none); return its number, or -1.

    There may be no room for it.
    """
    if w[VACANT] == 0 and w[USED] == BLOCKS:
        return -1
    home = 0
    if size != 0:
        place = bin_of(w, stream, size)
        if w[BIN_NBYTES + place] == 0:
            if w[BINS] == MOST_BINS:
                renew_bins(w)
                place = bin_of(w, stream, size)
            w[BIN_LIST + w[BINS]] = place
            w[BINS] += 1
            w[BIN_STREAM + place] = stream
            w[BIN_NBYTES + place] = size
            w[BIN_FIRST + place] = 0
        home = place + 1
    if w[VACANT] != 0:
        block = w[VACANT] - 1
        w[VACANT] = w[NEXT + block]
    else:
        block = w[USED]
        w[USED] += 1
    slot = slot_of(w, address)
    w[KEY + slot] = address
    w[NUMBER + slot] = block
    w[ADDRESS + block] = address
    w[NBYTES + block] = nbytes
    w[HOME + block] = home
    w[STATE + block] = LIVE
    w[CLASS + block] = 0
    while 1 << w[CLASS + block] < nbytes:
        w[CLASS + block] += 1
    return block


def stock_up(w: Words, address: int) -> None:
    """Make a block that was just adopted free, as if it had not been in use."""
    block = w[NUMBER + slot_of(w, address)]
    count(w, TAKEN, block, -1)
    shelve(w, block)


def mark(w: Words, address: int) -> None:
    """Let no bin take a block in use: it needs a look when it comes back."""
    slot = slot_of(w, address)
    if w[KEY + slot] != 0:
        w[HOME + w[NUMBER + slot]] = 0


def size_of(w: Words, address: int) -> int:
    """Return the bytes of a block in use; 0 where there is none at the address [B]."""
    slot = slot_of(w, address)
    block = w[NUMBER + slot]
    if w[KEY + slot] == 0 or w[STATE + block] == FREE:
        return 0
    return w[NBYTES + block]


def state_of(w: Words, address: int) -> int:
    """Return the state of a block, 0 where there is none at the address."""
    slot = slot_of(w, address)
    return w[STATE + w[NUMBER + slot]] if w[KEY + slot] != 0 else 0


def drain(w: Words, out: Words, room: int) -> int:
    """Remove up to ``room`` free blocks; write their addresses; return how many."""
    found = 0
    for at in range(w[BINS] + 1):
        head = ODD if at == w[BINS] else BIN_FIRST + w[BIN_LIST + at]
        while w[head] != 0 and found < room:
            block = w[head] - 1
            w[head] = w[NEXT + block]
            w[IDLE] -= w[NBYTES + block]
            w[BASE] -= w[NBYTES + block]
            count(w, GIVEN, block, -1)
            out[found] = w[ADDRESS + block]
            found += 1
            remove(w, slot_of(w, w[ADDRESS + block]))
    return found


def renew_bins(w: Words) -> None:
    """Start with no bins; the blocks that are known are odd from now on."""
    for at in range(w[BINS]):
        place = w[BIN_LIST + at]
        while w[BIN_FIRST + place] != 0:
            block = w[BIN_FIRST + place] - 1
            w[BIN_FIRST + place] = w[NEXT + block]
            w[NEXT + block] = w[ODD]
            w[ODD] = block + 1
        w[BIN_NBYTES + place] = 0
    w[BINS] = 0
    for block in range(w[USED]):
        w[HOME + block] = 0


def remove(w: Words, slot: int) -> None:
    """Take a block out of the table; what its probing passed over moves up."""
    block = w[NUMBER + slot]
    w[STATE + block] = 0
    w[NEXT + block] = w[VACANT]
    w[VACANT] = block + 1
    hole = slot
    probe = (hole + 1) & (SLOTS - 1)
    while w[KEY + probe] != 0:
        address = w[KEY + probe]
        wanted = (address >> 6 ^ address >> 21) & (SLOTS - 1)
        if (probe - wanted) & (SLOTS - 1) >= (probe - hole) & (SLOTS - 1):
            w[KEY + hole] = address
            w[NUMBER + hole] = w[NUMBER + probe]
            hole = probe
        probe = (probe + 1) & (SLOTS - 1)
    w[KEY + hole] = 0


def inherit(w: Words) -> None:
    """In a forked child: all blocks are the parent's, and nothing is free."""
    for block in range(w[USED]):
        if w[STATE + block] != 0:
            w[STATE + block] = INHERITED
    renew_bins(w)
    w[ODD] = 0
    for word in range(BASE, IDLE + 1):
        w[word] = 0
    for word in range(TAKEN, COUNTERS):
        w[word] = 0
