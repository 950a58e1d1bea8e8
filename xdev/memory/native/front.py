"""The front of a stock: a core of class hits, and the chunks that it keeps.

A chunk that a C client asked for is *held* by the front: to the heap it is in use, and
in the core it is in use or free. The core hands free ones out again without Python.
The heap has the free ones back when it needs memory (:meth:`Front.drain`), so the front
keeps nothing from anybody. Counting: the ledger counts a chunk when it enters the front
and when it leaves, the core counts what happens between.

The core's array is never let go: other libraries may call into it until the process is
gone.
"""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev._machine_code import immortal
from xdev.errors import OutOfMemoryError
from xdev.memory.native import entries, layout
from xdev.memory.native.machine import machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from xdev.memory.blocks import Chunk

ROOM = 4096  # how many blocks one call drains
LINE = 64  # what the words are aligned to [B]


@final
class Front:
    """One core.

    Its methods are called with the stock's lock held, but for :meth:`give`.

    Parameters
    ----------
    quantum : int
        What sizes are rounded up to [B].
    eighths : bool
        Whether classes are eight per doubling.

    Attributes
    ----------
    core : int
        The address of the core's words.
    words : memoryview
        The words, by the indices of :mod:`~xdev.memory.native.layout`.
    """

    def __init__(self, quantum: int, *, eighths: bool) -> None:
        self.words = immortal(_zeros(layout.WORDS))
        self.core = np.frombuffer(self.words, np.int64).ctypes.data
        self.words[layout.QUANTUM] = quantum
        self.words[layout.EIGHTHS] = eighths
        self.words[layout.YIELD] = _address_in_c("sched_yield")
        self.words[layout.INTERRUPT] = INTERRUPT
        self._chunks: dict[int, Chunk] = {}  # by address; some may be no longer held
        self._out = np.empty(ROOM, np.int64)
        code = machine()
        self._adopt = code.function("core_adopt")
        self._state = code.function("core_state")
        self._mark = code.function("core_mark")
        self._drain = code.function("core_drain")
        self._give = code.function("core_give")

    def open(self, *, hands_out: bool) -> None:
        """Let the core hand out free blocks, or have it take blocks back only."""
        self.words[layout.OPEN] = hands_out

    def shut(self, *, shut: bool) -> None:
        """Have the core take blocks back only, or not, whether it is open or not."""
        self.words[layout.SHUT] = shut

    def full(self) -> bool:
        """Say whether the core knows as many blocks as it can."""
        words = self.words
        return not words[layout.VACANT] and words[layout.USED] == layout.BLOCKS

    def hold(self, chunk: Chunk, size: int, *, free: bool, answer: int = 0) -> bool:
        """Keep a chunk that is in use; say whether there was room for it.

        It is the core's in one step, so that nobody else has it whatever is raised.

        Parameters
        ----------
        chunk : Chunk
            Of the stock.
        size : int
            Its class; a chunk of another size is held, but no hit [B].
        free : bool
            Whether to let the core hand it out first, in place of its holder.
        answer : int
            Where its address goes, to who asked for it.
        """
        address, nbytes = chunk.address, chunk.nbytes
        marked = chunk.uses is not None or nbytes != size
        class_ = 0 if marked else size
        if (free and marked) or nbytes > layout.LARGEST:
            return False
        order = chunk.stream, class_, entries.FREE_AT_ONCE if free else answer
        give, request = chunk.give, chunk.request
        self._chunks[address] = chunk
        chunk.give, chunk.request = self.give, None  # it may serve any of its class
        if self._adopt(self.core, address, nbytes, *order) < 0:
            chunk.give, chunk.request = give, request
            del self._chunks[address]
            return False
        return True

    def give(self, chunk: Chunk) -> None:
        """Take a chunk back that the front holds."""
        self._give(self.core, chunk.address)

    def mark(self, chunk: Chunk) -> None:
        """Have a chunk in use come back by way of the heap."""
        if chunk.give == self.give:
            self._mark(self.core, chunk.address)

    def drain(self) -> list[Chunk]:
        """Let go of the free chunks and return them."""
        found: list[Chunk] = []
        if not self.words[layout.IDLE]:
            return found
        count = ROOM
        while count == ROOM:
            count = self._drain(self.core, self._out.ctypes.data, ROOM)
            found += map(self._chunks.pop, self._out[:count].tolist())
        return found

    def forget(self) -> None:
        """Forget the chunks that the core does not have."""
        known = self.held()
        for address in list(self._chunks):
            if address not in known:
                self._chunks.pop(address, None)

    def holds(self, chunk: Chunk) -> bool:
        """Say whether a chunk is one of those kept."""
        return self._chunks.get(chunk.address) is chunk

    def held(self) -> dict[int, int]:
        """Return the states of the chunks that the core has, by address."""
        known = [(at, self._state(self.core, at)) for at in list(self._chunks)]
        return {address: state for address, state in known if state}

    def idle(self) -> Iterable[Chunk]:
        """Return the free chunks, which stay."""
        held = self.held().items()
        return [self._chunks[at] for at, state in held if state == layout.FREE]

    def inherit(self) -> None:
        """In a forked child: what is held is the parent's."""
        from xdev.memory.native import core

        core.inherit(self.words)
        self.words[layout.LOCK] = 0  # a thread that is not here may have held it
        self._chunks.clear()

    def serve(self, miss: Callable[[int, int, int], object]) -> None:
        """Have a miss of C clients served by Python, while there is an interpreter.

        Parameters
        ----------
        miss : callable
            Of bytes, stream and the address of an answer, as
            :func:`answering` takes it.
        """
        self.words[layout.MISS] = answering(miss)

    def retire(self) -> None:
        """Serve hits only from now on; a miss is not served."""
        self.words[layout.MISS] = 0


@final
class Devices:
    """The fronts of the CUDA devices, as a library's C functions find them.

    It is the array of words that is called ``devices`` in the entries.

    Parameters
    ----------
    count : int
        How many devices there are.
    stream : int
        The address of a C function that returns the current stream's handle, for a
        library that does not tell it.
    """

    def __init__(self, count: int, stream: int = 0) -> None:
        words = (ctypes.c_int64 * (layout.CORES_AT + count))(count, stream)
        self._words = immortal(words)  # what the library holds outlives the bridge
        self.address = ctypes.addressof(words)

    def open(self, index: int, front: Front) -> None:
        """Serve a device from its front."""
        self._words[layout.CORES_AT + index] = front.core

    def record(self, function: int) -> None:
        """Tell of streams that use blocks by a function that :func:`answering` made."""
        words: Any = function, INTERRUPT
        self._words[layout.RECORD_AT : layout.RECORD_AT + 2] = words

    def throw(self, function: int, *texts: bytes) -> None:
        """Report failures by a C++ function of the library.

        Its texts: where it is from, of a refusal, of a block that is not served.
        """
        buffers = [ctypes.create_string_buffer(each) for each in texts]
        addresses = [ctypes.addressof(immortal(each)) for each in buffers]
        self._words[layout.REFUSAL_AT : layout.REFUSAL_AT + 4] = [function, *addresses]


def answering(act: Callable[[int, int, int], object]) -> int:
    """Return the address of a C function that answers by Python, for ever.

    Parameters
    ----------
    act : callable
        Of two numbers, and the address of an answer
        (:data:`~xdev.memory.native.layout.ANSWER`), which it may fill in.

    Notes
    -----
    What ``act`` raises leaves the answer as it is: 0, unless it was filled in. An
    OutOfMemoryError is told by that. KeyboardInterrupt comes again once C has gone on.
    Any other goes to :func:`sys.unraisablehook`.
    """
    main = threading.main_thread().ident

    def answer(first: int, second: int, place: int, again: int) -> None:
        try:
            words = (ctypes.c_int64 * layout.ANSWER).from_address(place)
            # Asked again: what was raised at the first line above could be told nobody.
            interrupted = again and threading.get_ident() == main
            state = layout.INTERRUPTED if interrupted else layout.ANSWERED
            words[layout.STATE_OF_ANSWER] = state
            act(first, second, place)
        except OutOfMemoryError:
            return
        except KeyboardInterrupt:
            if threading.get_ident() != main:
                raise
            words[layout.STATE_OF_ANSWER] = layout.INTERRUPTED

    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4)
    return ctypes.cast(immortal(kind(answer)), ctypes.c_void_p).value or 0


def _zeros(count: int) -> memoryview[int]:
    """Return so many words, which take memory where they are written to only.

    NumPy would ask the system for huge pages, and the module ``mmap`` takes a third of
    a millisecond to load.
    """
    allocate = ctypes.CDLL(None).calloc
    allocate.argtypes, allocate.restype = [ctypes.c_size_t] * 2, ctypes.c_void_p
    address = allocate(count + LINE // 8, 8)
    if not address:
        raise MemoryError
    words = (ctypes.c_int64 * count).from_address(address + -address % LINE)
    return memoryview(words).cast("B").cast("q")


def _address_in_c(name: str) -> int:
    """Return the address of a function of the process, 0 where there is none."""
    found: Any = getattr(ctypes.CDLL(None), name, None)
    return 0 if found is None else ctypes.cast(found, ctypes.c_void_p).value or 0


INTERRUPT = _address_in_c("PyErr_SetInterrupt")
