"""The core as machine code: compiled by Numba once, kept on disk, loaded without it.

Loading takes a millisecond; only the first process on a machine compiles
(:mod:`~xdev.memory.native.building`). The code is the plain functions of
:mod:`~xdev.memory.native.core`, :mod:`~xdev.memory.native.entries` and
:mod:`~xdev.memory.native.objects`, on the intrinsics.
"""

from __future__ import annotations

import ctypes
from typing import Any, final

from xdev import _machine_code
from xdev._disk_cache import DiskCache
from xdev._forks import module_lock
from xdev._machine_code import immortal
from xdev.memory.native.layout import TORCH_WORD

PARTS = (
    *("layout", "core", "operations", "entries", "objects"),
    *("intrinsics", "building"),
)
# Of each entry: how many arguments, and which of them is a device number (int32).
ENTRIES: dict[str, tuple[int, int | None]] = {
    "core_take": (3, None),
    "core_give": (2, None),
    "core_adopt": (6, None),
    "core_state": (2, None),
    "core_mark": (2, None),
    "core_drain": (3, None),
    "cupy_malloc": (3, 2),
    "cupy_free": (3, 2),
    "cupy_allocate": (2, None),
    "numpy_malloc": (2, None),
    "numpy_calloc": (3, None),
    "numpy_free": (3, None),
    "numpy_realloc": (3, None),
    "torch_malloc": (3, 1),
    "torch_free": (4, 2),
    "torch_record": (2, None),
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
        place = _machine_code.load(binary)
        self.addresses = {entry: place(symbol(entry)) for entry in ENTRIES}
        #: Where the address of PyTorch's ``devices`` is to be written.
        self.torch_word = place(TORCH_WORD)

    def function(self, entry: str) -> Any:
        """Return an entry as Python calls it; the interpreter's lock stays held."""
        count, _ = ENTRIES[entry]
        prototype = ctypes.PYFUNCTYPE(*[ctypes.c_int64] * (count + 1))
        return prototype(self.addresses[entry])


def machine() -> Machine:
    """Return the loaded code, compiled first where no process here has done so."""
    with _lock:
        if not _loaded:
            key = _key()
            binary = _cache.load(key)
            if binary is None:
                from xdev.memory.native import building

                binary = _machine_code.emit(building.texts())
                _cache.save(key, binary, "memory pool")
            _loaded.append(immortal(Machine(binary)))
        return _loaded[0]


def symbol(entry: str) -> str:
    """Return an entry's name in the object file."""
    return f"xdev_{entry}"


def _key() -> str:
    """Name what the code depends on: its text, its compilers and the processor."""
    folder = __file__.rpartition("/")[0]
    return _machine_code.key(__file__, *(f"{folder}/{part}.py" for part in PARTS))
