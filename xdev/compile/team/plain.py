"""Plain functions on words as machine code: compiled by Numba, kept, loaded by LLVM."""

from __future__ import annotations

import ctypes
from types import FunctionType
from typing import TYPE_CHECKING, Any, final

from xdev import _machine_code, _optional
from xdev._disk_cache import DiskCache
from xdev._forks import module_lock
from xdev.compile.team import operations
from xdev.memory.native import intrinsics as pool, operations as memory

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_cache = DiskCache("native")
_lock = module_lock()  # guards the loading of any code


@final
class Code:
    """Functions that take words and return one.

    Nothing is compiled or loaded before the first is asked for.

    Parameters
    ----------
    name : str
        What they do, for people.
    parts : tuple of modules
        Where the functions are, and integers that they use; all may use the earlier
        ones, and the operations of :mod:`~xdev.compile.team.operations` and of
        :mod:`xdev.memory.native.operations`.
    entries : dict
        Those to be called from outside, and how many words each takes.
    """

    def __init__(
        self,
        name: str,
        parts: tuple[ModuleType, ...],
        entries: dict[Callable[..., int], int],
    ) -> None:
        self._name, self._parts, self._entries = name, parts, entries
        self._addresses: dict[Callable[..., int], int] = {}

    def address(self, entry: Callable[..., int]) -> int:
        """Return where an entry's machine code is; it stays there."""
        if not self._addresses:
            with _lock:
                if not self._addresses:
                    place = self._load()
                    found = {one: place(_symbol(one)) for one in self._entries}
                    self._addresses = found
        return self._addresses[entry]

    def function(self, entry: Callable[..., int]) -> Callable[..., int]:
        """Return an entry as Python calls it; other threads run meanwhile."""
        prototype = ctypes.CFUNCTYPE(*[ctypes.c_int64] * (self._entries[entry] + 1))
        return prototype(self.address(entry))

    def _key(self) -> str:
        parts: tuple[Any, ...] = *self._parts, operations, memory, pool
        return _machine_code.key(__file__, *(part.__file__ for part in parts))

    def _load(self) -> Callable[[str], int]:
        """Load the code, compiled first where no process here has done so."""
        key = self._key()
        binary = _cache.load(key)
        if binary is None:
            binary = _machine_code.emit(self._llvm_texts())
            _cache.save(key, binary, self._name)
        return _machine_code.load(binary)

    @_optional.numba_unset()
    def _llvm_texts(self) -> list[str]:
        """Compile the entries by Numba; return LLVM's text of each."""
        numba = _optional.numba()
        int64 = numba.types.int64
        namespace = {"WORD": memory.WORD} | pool.intrinsics() | operations.intrinsics()
        # Inlined, so that nothing is left that could raise.
        bare = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
        njit = numba.njit(error_model="numpy", forceinline=True, **bare)
        fresh: dict[Callable[..., Any], FunctionType] = {}
        for part in self._parts:
            for name, value in vars(part).items():
                if type(value) is int:
                    namespace[name] = value
                elif type(value) is FunctionType and value.__module__ == part.__name__:
                    # The same code; its names are those of the compiled namespace.
                    fresh[value] = FunctionType(value.__code__, namespace, name)
                    namespace[name] = njit(fresh[value])
        texts = []
        for entry, count in self._entries.items():
            signature = int64(*[int64] * count)
            made = numba.cfunc(signature, error_model="numpy")(fresh[entry])
            text: str = made.inspect_llvm()
            texts.append(text.replace(made._wrapper_name, _symbol(entry)))  # noqa: SLF001
        return texts


def _symbol(entry: Callable[..., int]) -> str:
    """Return an entry's name in the object file."""
    return f"xdev_{entry.__module__.replace('.', '_')}_{entry.__name__}"
