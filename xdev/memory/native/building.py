"""The core's machine code, made: its plain functions, compiled by Numba.

Only the first process on a machine needs this.
"""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any

from xdev import _optional
from xdev.memory.native import core, entries, layout, objects, operations
from xdev.memory.native.intrinsics import intrinsics
from xdev.memory.native.machine import ENTRIES, symbol


@_optional.numba_unset()
def texts() -> list[str]:
    """Compile every entry by Numba; return LLVM's text of each."""
    numba = _optional.numba()
    parts = layout, operations, core, entries, objects
    constants = [pair for part in parts for pair in vars(part).items()]
    namespace = {name: value for name, value in constants if isinstance(value, int)}
    namespace |= intrinsics()
    # Inlined, so that nothing is left that could raise.
    njit = numba.njit(error_model="numpy", forceinline=True)
    made = []
    for part in parts:
        for name, plain in vars(part).items():
            if _is_own(plain, part) and name not in namespace:
                # The same code; its names are those of the compiled namespace.
                fresh = FunctionType(plain.__code__, namespace, name)
                namespace[name] = njit(fresh)
                if name in ENTRIES:
                    made.append(_entry_text(numba, plain, fresh))
    return made


def _is_own(value: Any, module: Any) -> bool:
    return inspect.isfunction(value) and value.__module__ == module.__name__


def _entry_text(numba: Any, entry: Any, fresh: Any) -> str:
    """Compile one entry as a C function; return LLVM's text, with its own name."""
    types = numba.types
    count, device = ENTRIES[entry.__name__]
    arguments = [types.int32 if at == device else types.int64 for at in range(count)]
    nothing = entry.__annotations__["return"] == "None"
    result = types.void if nothing else types.int64
    made = numba.cfunc(result(*arguments), error_model="numpy")(fresh)
    text: str = made.inspect_llvm()
    return text.replace(made._wrapper_name, symbol(entry.__name__))  # noqa: SLF001
