"""Inner loops of the CPU on disk: LLVM loads them, and a process needs no Numba."""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from xdev import _optional
from xdev._disk_cache import DiskCache
from xdev._forks import immortal
from xdev.compile import digests

if TYPE_CHECKING:
    from collections.abc import Callable

DYNAMIC = b"numba.dynamic.globals"  # addresses in code: of large arrays, of gaps
OFFSETS = b"_GLOBAL_OFFSET_TABLE_"  # which whoever loads a file makes
SYMBOL = struct.Struct("<IBBHQQ")  # of ELF: where its name is, ..., its section, ...
_cache = DiskCache("loops")


class Loop(NamedTuple):
    """Loaded code, which stays for the rest of the process."""

    address: int


def kept(
    digest: str | None,
    parts: object,
    name: str,
    make: Callable[[], tuple[str, bytes]],
    unchanged: Callable[[], bool] = lambda: True,
) -> Loop:
    """Return a C function, compiled where no process has done so.

    Parameters
    ----------
    digest : str or None
        The Python function's digest; None: it has none, and is compiled in each
        process.
    parts : object
        What else decides the machine code: types, options. Its ``repr`` tells it in
        full.
    name : str
        The Python function's name, for people.
    make : callable
        Returns the C function's name and the object file; it alone loads Numba.
    unchanged : callable
        Says, after that, whether what was compiled still has the digest.
    """
    if digest is None:
        return _loaded(*make())
    key = digests.joined(digest, parts, digests.environment(), _processor())
    entry = _cache.load(key)
    if entry is not None:
        symbol, _, binary = entry.partition(b"\n")
        if _callable(binary):
            return _loaded(symbol.decode(), binary)
    made = make()
    if DYNAMIC not in made[1] and unchanged():
        _cache.save(key, b"\n".join((made[0].encode(), made[1])), name)
    return _loaded(*made)


def code_of(made: Any) -> tuple[str, bytes]:
    """Return the name and the object file of Numba's ``CFunc``."""
    return made.native_name, made._library._get_compiled_object()  # noqa: SLF001


def _callable(binary: bytes) -> bool:
    """Say whether this process has all that an object file calls.

    Loading one that calls another would end the process.
    """
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


def _loaded(symbol: str, binary: bytes) -> Loop:
    engine = immortal(_engine(_llvm()))
    engine.add_object_file(_llvm().ObjectFileRef.from_data(binary))
    engine.finalize_object()
    return Loop(engine.get_function_address(symbol))


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
