"""The core as machine code: compiled by Numba once, kept on disk, loaded by LLVM.

Loading takes some ten milliseconds and no Numba; only the first process on a machine
compiles. The code is the plain functions of :mod:`~xdev.memory.native.core` and
:mod:`~xdev.memory.native.entries`, on the intrinsics.
"""

from __future__ import annotations

import ctypes
import hashlib
import inspect
import sys
from importlib.metadata import version
from types import FunctionType
from typing import Any, final

from xdev import _machine_code, _optional
from xdev._disk_cache import DiskCache
from xdev._forks import module_lock
from xdev.memory.native import (
    core,
    entries,
    intrinsics as _intrinsics,
    layout,
    operations,
)
from xdev.memory.native.immortals import immortal
from xdev.memory.native.intrinsics import TORCH_WORD, intrinsics

# Of each entry: how many arguments, and which of them is a device number (int32).
ENTRIES: dict[Any, tuple[int, int | None]] = {
    entries.core_take: (3, None),
    entries.core_give: (2, None),
    entries.core_adopt: (5, None),
    entries.core_stock_up: (2, None),
    entries.core_mark: (2, None),
    entries.core_drain: (3, None),
    entries.cupy_malloc: (3, 2),
    entries.cupy_free: (3, 2),
    entries.numpy_malloc: (2, None),
    entries.numpy_calloc: (3, None),
    entries.numpy_free: (3, None),
    entries.numpy_realloc: (3, None),
    entries.torch_malloc: (3, 1),
    entries.torch_free: (4, 2),
}
_cache = DiskCache("native")
_lock = module_lock()  # guards the one below
_loaded: list[Machine] = []


@final
class Machine:
    """The loaded code.

    Attributes
    ----------
    addresses : dict
        ``{entry's name: address}``.
    """

    def __init__(self, binary: bytes) -> None:
        self._engine = _machine_code.load(binary)
        self.addresses = {
            entry.__name__: int(self._engine.get_function_address(symbol(entry)))
            for entry in ENTRIES
        }
        #: Where the address of PyTorch's ``devices`` is to be written.
        self.torch_word = int(self._engine.get_global_value_address(TORCH_WORD))

    def function(self, entry: Any) -> Any:
        """Return an entry as Python calls it; the interpreter's lock stays held."""
        count, _ = ENTRIES[entry]
        prototype = ctypes.PYFUNCTYPE(*[ctypes.c_int64] * (count + 1))
        return prototype(self.addresses[entry.__name__])


def machine() -> Machine:
    """Return the loaded code, compiled first where no process here has done so."""
    with _lock:
        if not _loaded:
            key = _key()
            binary = _cache.load(key)
            if binary is None:
                binary = _machine_code.emit(_llvm_texts())
                _cache.save(key, binary, "memory pool")
            _loaded.append(immortal(Machine(binary)))
        return _loaded[0]


def symbol(entry: Any) -> str:
    """Return an entry's name in the object file."""
    return f"xdev_{entry.__name__}"


def _key() -> str:
    """Name what the code depends on: its text, its compilers and the processor."""
    parts = [
        *map(inspect.getsource, (layout, core, operations, entries, _intrinsics)),
        inspect.getsource(sys.modules[__name__]),
        inspect.getsource(_machine_code),
        version("numba"),
        version("llvmlite"),
        _machine_code.processor(),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _llvm_texts() -> list[str]:
    """Compile every entry by Numba; return LLVM's text of each."""
    numba = _optional.numba()
    parts = layout, operations, core, entries
    constants = [pair for part in parts for pair in vars(part).items()]
    namespace = {name: value for name, value in constants if isinstance(value, int)}
    namespace |= intrinsics()
    # Inlined, so that nothing is left that could raise.
    njit = numba.njit(error_model="numpy", forceinline=True)
    texts = []
    for part in parts:
        for name, plain in vars(part).items():
            if _is_own(plain, part) and name not in namespace:
                # The same code; its names are those of the compiled namespace.
                fresh = FunctionType(plain.__code__, namespace, name)
                namespace[name] = njit(fresh)
                if plain in ENTRIES:
                    texts.append(_entry_text(numba, plain, fresh))
    return texts


def _is_own(value: Any, module: Any) -> bool:
    return inspect.isfunction(value) and value.__module__ == module.__name__


def _entry_text(numba: Any, entry: Any, fresh: Any) -> str:
    """Compile one entry as a C function; return LLVM's text, with its own name."""
    types = numba.types
    count, device = ENTRIES[entry]
    arguments = [types.int32 if at == device else types.int64 for at in range(count)]
    nothing = entry.__annotations__["return"] == "None"
    result = types.void if nothing else types.int64
    made = numba.cfunc(result(*arguments), error_model="numpy")(fresh)
    text: str = made.inspect_llvm()
    return text.replace(made._wrapper_name, symbol(entry))  # noqa: SLF001
