"""The lanes as machine code: compiled by Numba once, kept on disk, loaded by LLVM."""

from __future__ import annotations

import ctypes
import hashlib
import inspect
import os
import sys
import threading
from functools import cache
from importlib.metadata import version
from types import FunctionType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _machine_code, _optional
from xdev._disk_cache import DiskCache
from xdev._forks import module_lock
from xdev.memory.native import intrinsics as _intrinsics, operations
from xdev.memory.native.immortals import immortal
from xdev.memory.native.intrinsics import intrinsics
from xdev.transfer import lanes

if TYPE_CHECKING:
    from collections.abc import Callable

#: How many words each takes.
ENTRIES: dict[Callable[..., int], int] = {lanes.lead: 2, lanes.serve: 3}
_cache = DiskCache("native")
_lock = module_lock()  # guards the loading, and the stations' number


@final
class Machine:
    """The loaded code.

    Attributes
    ----------
    lead, serve : callable
        Of :mod:`~xdev.transfer.lanes`; other threads run meanwhile.
    """

    def __init__(self, binary: bytes) -> None:
        self._engine = immortal(_machine_code.load(binary))
        self.lead, self.serve = self._function(lanes.lead), self._function(lanes.serve)

    def _function(self, entry: Callable[..., int]) -> Callable[..., int]:
        prototype = ctypes.CFUNCTYPE(*[ctypes.c_int64] * (ENTRIES[entry] + 1))
        return prototype(self._engine.get_function_address(_symbol(entry)))


def machine() -> Machine:
    """Return the loaded code, compiled first where no process here has done so."""
    with _lock:
        return _machine()


@cache
def _machine() -> Machine:
    key = _key()
    binary = _cache.load(key)
    if binary is None:
        binary = _machine_code.emit(_llvm_texts())
        _cache.save(key, binary, "staged copies")
    return Machine(binary)


def _key() -> str:
    """Name what the code depends on: its text, its compilers and the processor."""
    parts = [
        *map(inspect.getsource, (lanes, operations, _intrinsics, _machine_code)),
        inspect.getsource(sys.modules[__name__]),
        version("numba"),
        version("llvmlite"),
        _machine_code.processor(),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _llvm_texts() -> list[str]:
    """Compile the entries by Numba; return LLVM's text of each."""
    numba = _optional.numba()
    words = {name: value for name, value in vars(lanes).items() if type(value) is int}
    namespace = words | intrinsics() | {"add": _atomic_add()}
    int64 = numba.types.int64
    plain: list[FunctionType] = [
        each
        for name, each in vars(lanes).items()
        if inspect.isfunction(each) and name not in namespace
    ]
    texts = []
    for each in plain:
        # The same code; its names are those of the compiled namespace.
        fresh = FunctionType(each.__code__, namespace, each.__name__)
        # Inlined, so that nothing is left that could raise.
        namespace[each.__name__] = numba.njit(error_model="numpy", forceinline=True)(
            fresh
        )
    for entry, count in ENTRIES.items():
        fresh = FunctionType(entry.__code__, namespace)
        made = numba.cfunc(int64(*[int64] * count), error_model="numpy")(fresh)
        text: str = made.inspect_llvm()
        texts.append(text.replace(made._wrapper_name, _symbol(entry)))  # noqa: SLF001
    return texts


def _symbol(entry: Callable[..., int]) -> str:
    """Return an entry's name in the object file."""
    return f"xdev_lanes_{entry.__name__}"


def _atomic_add() -> Any:
    numba, ir = _optional.numba(), _optional.llvm_ir()
    int64, pointer = numba.types.int64, ir.IntType(64).as_pointer()

    def emit(_: Any, builder: Any, __: Any, values: Any) -> Any:
        place = builder.inttoptr(values[0], pointer)
        return builder.atomic_rmw("add", place, values[1], "acq_rel")

    @numba.extending.intrinsic  # type: ignore[untyped-decorator]
    def add(_: Any, address: Any, value: Any) -> Any:  # noqa: ARG001 - by their types
        return int64(int64, int64), emit

    return add


@final
class Stations:
    """Threads that help with copies: asleep, they take no part in Python.

    Attributes
    ----------
    address : int
        Of their words.
    count : int
        How many there are.
    """

    def __init__(self) -> None:
        self.count = 0
        # For ever: a thread looks there until the process is gone.
        self._words = immortal(np.zeros((MOST_STATIONS, lanes.STATION_WORDS), np.int64))
        self.address = int(self._words.ctypes.data)

    def have(self, wanted: int) -> int:
        """Return how many there are, at most ``wanted``; start those that are not."""
        if self.count < wanted:
            with _lock:
                while self.count < min(wanted, MOST_STATIONS) and self._start():
                    self.count += 1
        return min(self.count, wanted)

    def _start(self) -> bool:
        words = self._words[self.count]
        for semaphore in (lanes.WORK, lanes.DONE):
            c_library().sem_init(ctypes.c_void_p(words[semaphore:].ctypes.data), 0, 0)
        arguments = words.ctypes.data, c_address("sem_wait"), c_address("sem_post")
        thread = threading.Thread(
            target=_machine().serve,
            args=arguments,
            name=f"xdev-copy-{self.count + 1}",
            daemon=True,  # it never ends
        )
        try:
            thread.start()
        except RuntimeError:  # no more threads here, or Python shuts down
            return False
        return True


MOST_STATIONS = 64


@cache
def stations() -> Stations:
    """Return the process's."""
    return Stations()


@cache
def c_library() -> Any:
    """Return the process's own symbols, the C library among them."""
    return ctypes.CDLL(None)


@cache
def c_address(name: str) -> int:
    """Return the address of a function of the C library."""
    return address_of(getattr(c_library(), name))


def address_of(function: Any) -> int:
    """Return the address of a function of ``ctypes``."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


os.register_at_fork(after_in_child=stations.cache_clear)  # a child has no threads
