"""What threads' words need of the machine, beyond the pool's needs.

Done here by ctypes, which is the reference; compiled code has its own
(:func:`intrinsics`), under the same names.
"""

from __future__ import annotations

import ctypes
import platform
from typing import Any

from xdev import _optional
from xdev.memory.native.operations import load

# LLVM's names for what tells a processor that it only waits, and its argument.
PAUSES = {"x86_64": ("llvm.x86.sse2.pause", None), "aarch64": ("llvm.aarch64.hint", 1)}


def add(address: int, value: int) -> int:
    """Add to a word and return what it was, in one step."""
    place = ctypes.c_int64.from_address(address)
    before = place.value
    place.value += value
    return before


def glance(address: int) -> int:
    """Return the word at an address, which another thread is about to change."""
    return load(address)


def intrinsics() -> dict[str, Any]:
    """Return the operations, for compiled code."""
    numba, ir = _optional.numba(), _optional.llvm_ir()
    int64, word = numba.types.int64, ir.IntType(64)

    def emit_add(_: Any, builder: Any, __: Any, values: Any) -> Any:
        place = builder.inttoptr(values[0], word.as_pointer())
        return builder.atomic_rmw("add", place, values[1], "acq_rel")

    def emit_glance(_: Any, builder: Any, __: Any, values: Any) -> Any:
        name, number = PAUSES.get(platform.machine(), (None, None))
        if name is not None:
            given = [] if number is None else [ir.IntType(32)(number)]
            kind = ir.FunctionType(ir.VoidType(), [x.type for x in given])
            pause = builder.module.globals.get(name)
            builder.call(pause or ir.Function(builder.module, kind, name), given)
        place = builder.inttoptr(values[0], word.as_pointer())
        return builder.load_atomic(place, "acquire", 8)

    @numba.extending.intrinsic  # type: ignore[untyped-decorator]
    def add(_: Any, address: Any, value: Any) -> Any:  # noqa: ARG001 - by their types
        return int64(int64, int64), emit_add

    @numba.extending.intrinsic  # type: ignore[untyped-decorator]
    def glance(_: Any, address: Any) -> Any:  # noqa: ARG001 - by its type
        return int64(int64), emit_glance

    return {each.__name__: each for each in (add, glance)}
