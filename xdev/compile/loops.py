"""Compiled loops of the CPU: on disk, in memory, and as ufuncs of NumPy.

LLVM loads what is on disk: a process needs no Numba for it.
"""

from __future__ import annotations

import ctypes
import struct
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional
from xdev._forks import immortal
from xdev.compile import digests

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DYNAMIC = b"numba.dynamic.globals"  # addresses in code: of large arrays, of gaps
OFFSETS = b"_GLOBAL_OFFSET_TABLE_"  # which whoever loads a file makes
SYMBOL = struct.Struct("<IBBHQQ")  # of ELF: where its name is, ..., its section, ...


def load_or_compile(
    digest: str | None,
    parts: object,
    name: str,
    make: Callable[[], tuple[bytes, str]],
    unchanged: Callable[[], bool] = lambda: True,
) -> int:
    """Return the address of a C function, compiled where no process has done so.

    Parameters are those of :func:`xdev.compile.digests.load_or_compile`; ``make``
    returns the object file and the function's name.
    """
    parts = parts, digest and _processor()
    return _loaded(
        *digests.load_or_compile("loops", digest, parts, name, make, unchanged, _usable)
    )


def _usable(binary: bytes) -> bool:
    """Say whether this process has all that an object file calls, as others may.

    Loading one that calls another would end the process.
    """
    if DYNAMIC in binary:
        return False
    if _complete(binary):
        return True
    # Numba brings functions of its own; those of the C library are always there.
    _optional.numba().core.registry.cpu_target.target_context.refresh()
    return _complete(binary)


def _complete(binary: bytes) -> bool:
    llvm = _llvm()
    file = llvm.ObjectFileRef.from_data(binary)
    content = {section.name(): section.data() for section in file.sections()}
    names = content.get(b".strtab", b"")
    return all(
        llvm.address_of_symbol(names[start : names.index(0, start)].decode())
        for start, _, _, section, *_ in SYMBOL.iter_unpack(content.get(b".symtab", b""))
        if start and not section and not names.startswith(OFFSETS, start)
    )


def _loaded(binary: bytes, symbol: str) -> int:
    engine = immortal(_engine(_llvm()))
    engine.add_object_file(_llvm().ObjectFileRef.from_data(binary))
    engine.finalize_object()
    address: int = engine.get_function_address(symbol)
    return address


@cache
def _processor() -> str:
    """Return what LLVM knows of the processor that code depends on."""
    llvm = _llvm()
    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


@cache
def _llvm() -> Any:
    llvm = _optional.llvm()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    _engine(llvm)  # from the first on, it finds the process's own symbols
    return llvm


def _engine(llvm: Any) -> Any:
    target = llvm.Target.from_default_triple().create_target_machine()
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)


# Real NumPy ufuncs of loops, made through NumPy's C API.

# Functions' places in NumPy's table.
FROM_FUNC_AND_DATA = 1
REGISTER_LOOP_FOR_TYPE = 2
USER = 256  # the first number of dtypes that others bring
IDENTITIES = {0: 0, 1: 1, None: -1, "reorderable": -2}  # as NumPy numbers them


def register(
    loop: int,
    inputs: Sequence[np.dtype[Any]],
    outputs: Sequence[np.dtype[Any]],
    *,
    name: str,
    doc: str,
    identity: int | str | None,
) -> np.ufunc:
    """Make a NumPy ufunc of one inner loop; the loop lives for ever.

    Parameters
    ----------
    loop : int
        The address of a function of NumPy's inner loop signature.
    inputs, outputs : sequence of numpy.dtype
        What the loop reads and writes.
    name, doc : str
        The ufunc's.
    identity : 0, 1, None or "reorderable"
        What a reduction of nothing is; None: reductions take one axis at a time.
    """
    loops = (ctypes.c_void_p * 1)(loop)
    data = (ctypes.c_void_p * 1)(None)
    numbers = [dtype.num for dtype in (*inputs, *outputs)]
    # A dtype that NumPy has not from itself has a larger number, and its own call.
    user = next((number for number in numbers if number >= USER), None)
    types = bytes(numbers) if user is None else b""
    texts = name.encode(), doc.encode()
    # What the ufunc points into: NumPy copies none of it.
    immortal((loops, data, types, texts))
    counts = int(user is None), len(inputs), len(outputs), IDENTITIES[identity]
    make = _function(
        FROM_FUNC_AND_DATA,
        ctypes.py_object,
        *[ctypes.c_void_p] * 2,
        ctypes.c_char_p,
        *[ctypes.c_int] * 4,
        *[ctypes.c_char_p] * 2,
        ctypes.c_int,
    )
    ufunc: np.ufunc = make(loops, data, types, *counts, *texts, 0)
    if user is not None:
        add = _function(
            REGISTER_LOOP_FOR_TYPE,
            ctypes.c_int,
            ctypes.py_object,
            ctypes.c_int,
            ctypes.c_void_p,
            ctypes.POINTER(ctypes.c_int),
            ctypes.c_void_p,
        )
        add(ufunc, user, loop, (ctypes.c_int * len(numbers))(*numbers), None)
    return ufunc


@cache
def _function(place: int, result: Any, *arguments: Any) -> Any:
    """Return a function of NumPy's table, by its place there, which never changes."""
    capsule = np._core._multiarray_umath._UFUNC_API  # type: ignore[attr-defined] # noqa: SLF001
    kinds = ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p
    content = ctypes.PYFUNCTYPE(*kinds)(("PyCapsule_GetPointer", ctypes.pythonapi))
    table = (ctypes.c_void_p * (place + 1)).from_address(content(capsule, None) or 0)
    return ctypes.PYFUNCTYPE(result, *arguments)(table[place] or 0)
