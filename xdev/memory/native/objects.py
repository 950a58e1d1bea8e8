"""CuPy's pointers to free blocks, without Python.

They do what CuPy's own functions do for new memory. There a number becomes an object,
a part of a tuple, and a number again, a dozen times over.

Only compiled: they call functions of Python's, which need the interpreter's lock. What
they take for granted of CuPy's objects is looked at before they are used, in
:mod:`~xdev.memory.native.cupy`, which fills in what is ``known``.
"""

from __future__ import annotations

from xdev.memory.native.entries import core_give, core_of, cupy_malloc
from xdev.memory.native.operations import WORD, call, load, view

# What is known: CuPy's function for the current device; the function that frees;
# CuPy's types, and what makes their objects of an empty tuple; functions of Python's.
DEVICE_NOW, FREED_BY, MEMORY_TYPE, POINTER_TYPE = range(4)
NEW_MEMORY, NEW_POINTER, EMPTY = range(4, 7)
AS_SIZE, FORGET, CALL_ONE, DROP = range(7, 11)
FACTS = 11

# From where on an object has its own fields; NumPy's array has its address first. A
# tuple has its items elsewhere from Python 3.14 on; what reads them is not used there.
FIELDS_OF = 2 * WORD
ITEM, NEXT_ITEM = 3 * WORD, 4 * WORD
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
