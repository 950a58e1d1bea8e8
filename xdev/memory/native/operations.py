"""What the entries need of the machine.

The first six are done here by ctypes, which is the reference; compiled code has its
own (:mod:`~xdev.memory.native.intrinsics`), under the same names.
"""

from __future__ import annotations

import ctypes
from typing import Any

from xdev.memory.native.layout import ANSWER, LOCK, WORDS, YIELD

WORD = 8  # [B]
_FUNCTION = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 5)
_torch = ctypes.c_int64(0)
_answers: list[Any] = []


def load(address: int) -> int:
    """Return the word at an address."""
    return ctypes.c_int64.from_address(address).value


def exchange(address: int, value: int) -> int:
    """Store a word and return the one that was there, in one step."""
    place = ctypes.c_int64.from_address(address)
    before, place.value = place.value, value
    return before


def call(function: int, first: int, second: int, third: int, fourth: int) -> int:
    """Call a C function; it may ignore its last arguments."""
    return int(_FUNCTION(function)(first, second, third, fourth))


def torch_word() -> int:
    """Return the address of the word that says where PyTorch's ``devices`` are."""
    return ctypes.addressof(_torch)


def new_answer() -> int:
    """Return the address of an :data:`~xdev.memory.native.layout.ANSWER`, all zeros.

    Compiled, it is on the stack of the entry.
    """
    _answers.append((ctypes.c_int64 * ANSWER)())
    return ctypes.addressof(_answers[-1])


def view(address: int, count: int) -> Any:
    """Return ``count`` words at an address as an array."""
    return (ctypes.c_int64 * count).from_address(address)


def words(core: int) -> Any:
    """Return the words of a core."""
    return view(core, WORDS)


def lock(core: int) -> None:
    """Keep others from the core, once nobody changes it."""
    while exchange(core + WORD * LOCK, 1) != 0:
        give_way = load(core + WORD * YIELD)
        if give_way != 0:
            call(give_way, 0, 0, 0, 0)


def unlock(core: int) -> None:
    """Let others in."""
    exchange(core + WORD * LOCK, 0)
