"""Waiting awake for a moment: until a word in memory changes, without Python's lock.

To be woken takes a thread 20 µs and more; what another thread is about to finish, or a
loop is about to ask for, comes sooner.
"""

from __future__ import annotations

import ctypes
import hashlib
import platform
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdev import _machine_code, _optional
from xdev._disk_cache import DiskCache

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "xdev_spin"
# LLVM's names for what tells a processor that it only waits, and its argument.
PAUSES = {"x86_64": ("llvm.x86.sse2.pause", None), "aarch64": ("llvm.aarch64.hint", 1)}
_cache = DiskCache("native")
_FOR_EVER: list[object] = []  # threads may be in the code when the program ends


@cache
def spin() -> Callable[[int, int, int], int]:
    """Return ``wait(address, value, turns)``, which lets go of the interpreter's lock.

    It returns when the word at the address is not the value any more, or after so many
    looks.
    """
    parts = Path(__file__).read_bytes(), _machine_code.processor().encode()
    key = hashlib.sha256(b"".join(parts)).hexdigest()
    binary = _cache.load(key)
    if binary is None:
        binary = _machine_code.emit([_text()])
        _cache.save(key, binary, "waiting threads")
    engine = _machine_code.load(binary)
    _FOR_EVER.append(engine)
    word = ctypes.c_int64
    prototype = ctypes.CFUNCTYPE(word, word, word, word)
    function: Any = prototype(engine.get_function_address(NAME))
    return function  # type: ignore[no-any-return]


def _text() -> str:
    """Return the function in LLVM's language."""
    ir = _optional.llvm_ir()
    word = ir.IntType(64)
    module = ir.Module(name=NAME)
    function = ir.Function(module, ir.FunctionType(word, [word] * 3), NAME)
    address, value, turns = function.args
    first, look, wait, end = (function.append_basic_block() for _ in range(4))
    b = ir.IRBuilder(first)
    place = b.inttoptr(address, word.as_pointer())
    b.branch(look)
    b.position_at_end(look)
    turn = b.phi(word)
    turn.add_incoming(word(0), first)
    now = b.load_atomic(place, "acquire", 8)
    same = b.icmp_signed("==", now, value)
    more = b.icmp_signed("<", turn, turns)
    b.cbranch(b.and_(same, more), wait, end)
    b.position_at_end(wait)
    name, number = PAUSES.get(platform.machine(), (None, None))
    if name is not None:
        given = [] if number is None else [ir.IntType(32)(number)]
        kind = ir.FunctionType(ir.VoidType(), [x.type for x in given])
        b.call(ir.Function(module, kind, name), given)
    turn.add_incoming(b.add(turn, word(1)), wait)
    b.branch(look)
    b.position_at_end(end)
    b.ret(now)
    return str(module)
