"""CuPy's objects without Python: pointers to free blocks, and arrays on them.

They do what CuPy's own functions do for a new array. There a number becomes an object,
a part of a tuple, and a number again, a dozen times over.

Only compiled: they call functions of Python's, which need the interpreter's lock. What
they take for granted of CuPy's objects is looked at before they are used, in
:mod:`~xdev.memory.native.cupy`, which fills in what is ``known``.
"""

from __future__ import annotations

from xdev.memory.native.entries import core_give, core_of, cupy_malloc
from xdev.memory.native.operations import WORD, call, load, view

# What is known: CuPy's functions for the current device and allocator; the function
# that frees, and the code of our allocators; the type of C functions; CuPy's types, and
# what makes their objects of an empty tuple; C++'s assignment of vectors, 0 where
# arrays are not understood; functions of Python's.
DEVICE_NOW, ALLOCATOR_NOW, FREED_BY, OUR_CODE, FUNCTION_TYPE = range(5)
MEMORY_TYPE, POINTER_TYPE, ARRAY_TYPE = range(5, 8)
NEW_MEMORY, NEW_POINTER, NEW_ARRAY, EMPTY, ASSIGN = range(8, 13)
AS_SIZE, FORGET, CALL_ONE, KEEP, DROP = range(13, 18)
FACTS = 18

# Where an object has its type, and from where on its own fields. A C function has its
# definition first, in which is its code, and what it is bound to; NumPy's array has its
# address first. A tuple has its items elsewhere from Python 3.14 on; what reads them is
# not used there.
TYPE_OF, FIELDS_OF = WORD, 2 * WORD
CODE_OF, BOUND_TO, ITEM, NEXT_ITEM = WORD, 3 * WORD, 3 * WORD, 4 * WORD
# An array's fields, but for the first two and the last.
ARRAY_SIZE, EXTENTS, STRIDES, ORDERS, REACHED, DTYPE, POINTER = 2, 3, 6, 9, 10, 11, 12
ARRAY_FIELDS = 14
IN_C, IN_FORTRAN = 1, 1 << 32  # of ORDERS
REACH = 1 << 31  # so many bytes 32 bits reach
LOW = (1 << 32) - 1  # the bits of a word that an int of C's has


def new_pointer(known: int, devices: int, nbytes: int) -> int:
    """Return a ``MemoryPointer`` to a free block, or 0.

    Its memory is a ``CFunctionAllocatorMemory``, which gives the block back.
    """
    if nbytes <= 0:  # negative: it is no size, and Python was told so
        return 0
    facts = view(known, FACTS)
    device = call(facts[DEVICE_NOW], 0, 0, 0, 0) & LOW
    address = cupy_malloc(devices, nbytes, device)
    if address == 0:
        return 0
    memory = call(facts[NEW_MEMORY], facts[MEMORY_TYPE], facts[EMPTY], 0, 0)
    if memory == 0:
        core_give(core_of(devices, device), address)
        return 0
    fields = view(memory + FIELDS_OF, 5)
    fields[0], fields[1], fields[2] = address, nbytes, device
    fields[3], fields[4] = devices, facts[FREED_BY]
    pointer = call(facts[NEW_POINTER], facts[POINTER_TYPE], facts[EMPTY], 0, 0)
    if pointer == 0:
        call(facts[DROP], memory, 0, 0, 0)
        return 0
    fields = view(pointer + FIELDS_OF, 4)
    nothing = fields[3]
    fields[1], fields[2], fields[3] = address, device, memory
    call(facts[DROP], nothing, 0, 0, 0)
    return pointer


def cupy_allocate(bound: int, nbytes: int) -> int:
    """Serve CuPy: a C function of Python's that takes one argument.

    It is bound to a tuple: words, which are ``known`` and ``devices``, and a function
    that serves the rest.
    """
    words = load(load(bound + ITEM) + FIELDS_OF)
    facts = view(load(words), FACTS)
    size = call(facts[AS_SIZE], nbytes, 0, 0, 0)
    made = new_pointer(load(words), load(words + WORD), size)
    if made != 0:
        return made
    call(facts[FORGET], 0, 0, 0, 0)
    return call(facts[CALL_ONE], load(bound + NEXT_ITEM), nbytes, 0, 0)


def pointer_of_ours(known: int, nbytes: int) -> int:
    """Return a pointer by CuPy's current allocator if that is one of ours, or 0."""
    facts = view(known, FACTS)
    allocator = call(facts[ALLOCATOR_NOW], 0, 0, 0, 0)
    if allocator == 0:
        return 0
    made = 0
    if load(allocator + TYPE_OF) == facts[FUNCTION_TYPE]:
        definition = load(allocator + FIELDS_OF)
        if load(definition + CODE_OF) == facts[OUR_CODE]:
            words = load(load(load(allocator + BOUND_TO) + ITEM) + FIELDS_OF)
            made = new_pointer(known, load(words + WORD), nbytes)
    call(facts[DROP], allocator, 0, 0, 0)
    return made


def array_at(known: int, pointer: int, like: int, dtype: int, itemsize: int) -> int:
    """Return an array at a pointer, in C order, with the extents of another; or 0."""
    facts, other = view(known, FACTS), view(like + FIELDS_OF, ARRAY_FIELDS)
    made = call(facts[NEW_ARRAY], facts[ARRAY_TYPE], facts[EMPTY], 0, 0)
    if made == 0:
        return 0
    place, extents = made + FIELDS_OF, like + FIELDS_OF + WORD * EXTENTS
    call(facts[ASSIGN], place + WORD * EXTENTS, extents, 0, 0)
    call(facts[ASSIGN], place + WORD * STRIDES, extents, 0, 0)
    fields = view(place, ARRAY_FIELDS)
    count = (fields[STRIDES + 1] - fields[STRIDES]) // WORD
    strides, step, wide = view(fields[STRIDES], count), itemsize, 0
    for k in range(count - 1, -1, -1):
        extent = strides[k]
        strides[k] = step
        step *= extent
        wide += extent != 1
    fields[ARRAY_SIZE] = other[ARRAY_SIZE]
    fields[ORDERS] = IN_C | IN_FORTRAN if wide <= 1 else IN_C
    fields[REACHED] = step <= REACH
    call(facts[KEEP], dtype, 0, 0, 0)
    call(facts[DROP], fields[DTYPE], 0, 0, 0)  # None, as in the next line
    call(facts[DROP], fields[POINTER], 0, 0, 0)
    fields[DTYPE], fields[POINTER] = dtype, pointer
    return made


def cupy_array(known: int, like: int, dtype: int, itemsize: int) -> int:
    """Return a new array as CuPy makes it, or 0.

    Its memory comes from CuPy's current allocator, which has to be one of ours.

    Parameters
    ----------
    like : int
        An array in C order; the new one has its extents.
    dtype, itemsize : int
        What its elements are, and the bytes of one.
    """
    facts = view(known, FACTS)
    if facts[ASSIGN] == 0:
        return 0
    size = load(like + FIELDS_OF + WORD * ARRAY_SIZE)
    pointer, made = pointer_of_ours(known, size * itemsize), 0
    if pointer != 0:
        made = array_at(known, pointer, like, dtype, itemsize)
        if made == 0:
            call(facts[DROP], pointer, 0, 0, 0)
    if made == 0:
        call(facts[FORGET], 0, 0, 0, 0)
    return made
