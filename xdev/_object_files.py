"""Object files of machine code, put where they run: without LLVM, which takes 25 ms.

Read is what LLVM writes on x86-64 for code that may lie anywhere: ELF files, in which
all references are of 64 bits. Code stays where it is for the rest of the process.
"""

from __future__ import annotations

import ctypes
import os
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from collections.abc import Callable

MACHINE, SECTIONS, SECTION_COUNTS = 0x12, 0x28, 0x3A  # places in a file's header
X86_64 = 62
SYMBOL = struct.Struct("<IBBHQQ")
REFERENCE = struct.Struct("<QIIq")
WORD = struct.Struct("<Q")
MASK = 2**64 - 1

# Types of sections, and their flags.
CODE, SYMBOLS, REFERENCES, ZEROS, UNWINDING = 1, 2, 4, 8, 0x70000001
WRITABLE, LOADED = 1, 2
# In place of a symbol's section.
UNDEFINED, ABSOLUTE, COMMON = 0, 0xFFF1, 0xFFF2
LOCAL = 0  # a symbol that has no name to others
OFFSETS = "_GLOBAL_OFFSET_TABLE_"  # which whoever loads a file makes
# Kinds of references: what is written at a place.
ADDRESS, DISTANCE, FROM_TABLE, OFFSET_IN_TABLE, TO_TABLE = 1, 24, 25, 27, 29

READ, WRITE, EXECUTE = 1, 2, 4
PRIVATE, ANONYMOUS = 2, 0x20
FAILED = ctypes.c_void_p(-1).value


HEADER = struct.Struct("<IIQQQQIIQQ")


@final
class Section:
    """A section's header, as the file has it."""

    __slots__ = ("alignment", "flags", "info", "kind", "link", "nbytes", "start")

    def __init__(self, binary: bytes, at: int) -> None:
        _, self.kind, self.flags, _, self.start, *rest = HEADER.unpack_from(binary, at)
        self.nbytes, self.link, self.info, self.alignment, _ = rest


@final
class Symbol:
    """A name; of those that are defined, where: a section, and how far into it."""

    __slots__ = ("name", "nbytes", "scope", "section", "value")

    def __init__(self, name: str, info: int, *place: int) -> None:
        self.name, self.scope = name, info >> 4
        self.section, self.value, self.nbytes = place


@final
class ObjectFile:
    """What an object file has.

    Parameters
    ----------
    binary : bytes
        The file, an ELF file of 64 bits.
    """

    def __init__(self, binary: bytes) -> None:
        self.binary = binary
        (self.machine,) = struct.unpack_from("<H", binary, MACHINE)
        (start,) = WORD.unpack_from(binary, SECTIONS)
        size, count = struct.unpack_from("<HH", binary, SECTION_COUNTS)
        self.sections = [Section(binary, start + k * size) for k in range(count)]
        self.symbols = [
            symbol
            for section in self.sections
            if section.kind == SYMBOLS
            for symbol in self._symbols(section)
        ]

    @property
    def undefined(self) -> list[str]:
        """The names of what is elsewhere in the process."""
        return [
            symbol.name
            for symbol in self.symbols
            if symbol.section == UNDEFINED and symbol.name not in {"", OFFSETS}
        ]

    def references(self) -> list[tuple[int, int, int, int, int]]:
        """Return section, place in it, kind, symbol and addend of each."""
        return [
            (section.info, *reference)
            for section in self.sections
            if section.kind == REFERENCES
            for reference in REFERENCE.iter_unpack(self.content(section))
        ]

    def content(self, section: Section) -> bytes:
        """Return a section's bytes."""
        return self.binary[section.start : section.start + section.nbytes]

    def _symbols(self, section: Section) -> list[Symbol]:
        texts = self.sections[section.link].start
        found = []
        for at, info, _, *rest in SYMBOL.iter_unpack(self.content(section)):
            end = self.binary.index(0, texts + at)
            name = self.binary[texts + at : end].decode()
            found.append(Symbol(name, info, *rest))
        return found


def load(file: ObjectFile, find: Callable[[str], int]) -> dict[str, int] | None:
    """Put a file's code into memory and return where its names are.

    Parameters
    ----------
    file : ObjectFile
        The file.
    find : callable
        Returns the address of what is elsewhere in the process.

    Returns
    -------
    dict or None
        ``{name: address}``; None where the file is of a kind that is not known here.

    Raises
    ------
    OSError
        The system gives no memory for code.
    """
    loaded = [section for section in file.sections if section.flags & LOADED]
    references = file.references()
    if (
        file.machine != X86_64
        or {section.kind for section in loaded} - {CODE, ZEROS, UNWINDING}
        or {kind for _, _, kind, _, _ in references} - _WRITTEN.keys()
    ):
        return None
    starts, table, fixed, nbytes = _placed(file)
    base = _memory(nbytes)
    addresses = [
        starts[-1 - k] + base
        if symbol.section == COMMON
        else base + table
        if symbol.name == OFFSETS
        else symbol.value
        if symbol.section == ABSOLUTE or not k
        else find(symbol.name)
        if symbol.section == UNDEFINED
        else base + starts.get(symbol.section, 0) + symbol.value
        for k, symbol in enumerate(file.symbols)
    ]
    image = bytearray(nbytes)
    for k, section in enumerate(file.sections):
        if k in starts and section.kind != ZEROS:
            image[starts[k] : starts[k] + section.nbytes] = file.content(section)
    for k, address in enumerate(addresses):
        WORD.pack_into(image, table + 8 * k, address)
    for section_, offset, kind, symbol_, addend in references:
        if section_ in starts:
            at = starts[section_] + offset
            target = addresses[symbol_] + addend
            value = _WRITTEN[kind](target, base + at, base + table, symbol_, addend)
            WORD.pack_into(image, at, value & MASK)
    ctypes.memmove(base, bytes(image), nbytes)
    _protect(base, fixed)
    for k, section in enumerate(file.sections):
        if section.kind == UNWINDING:
            _register(base + starts[k])
    return {
        symbol.name: address
        for symbol, address in zip(file.symbols, addresses, strict=True)
        if symbol.scope != LOCAL and symbol.section != UNDEFINED
    }


# Of a target, the place, the table, the symbol's number and what is added to it.
_WRITTEN: dict[int, Callable[[int, int, int, int, int], int]] = {
    ADDRESS: lambda target, *_: target,
    DISTANCE: lambda target, place, *_: target - place,
    FROM_TABLE: lambda target, _, table, *__: target - table,
    OFFSET_IN_TABLE: lambda _, __, ___, symbol, addend: 8 * symbol + addend,
    TO_TABLE: lambda _, place, table, __, addend: table + addend - place,
}


def _placed(file: ObjectFile) -> tuple[dict[int, int], int, int, int]:
    """Lay out the memory: what stays as it is, what is written, the table of addresses.

    Returns
    -------
    (starts, table, fixed, nbytes)
        Where each section starts, and symbol ``k`` without one (as ``-1 - k``); where
        the table does; the bytes that stay as they are; all bytes.
    """
    starts: dict[int, int] = {}
    end = fixed = 0
    for writable in (0, WRITABLE):
        fixed = end = _aligned(end, os.sysconf("SC_PAGESIZE"))
        for k, section in enumerate(file.sections):
            if section.flags & LOADED and section.flags & WRITABLE == writable:
                starts[k] = _aligned(end, section.alignment)
                # A word of zeros says where the tables for unwinding end.
                end = starts[k] + section.nbytes + WORD.size
    for k, symbol in enumerate(file.symbols):
        if symbol.section == COMMON:
            starts[-1 - k] = _aligned(end, symbol.value)
            end = starts[-1 - k] + symbol.nbytes
    table = _aligned(end, WORD.size)
    return starts, table, fixed, table + WORD.size * len(file.symbols)


def _aligned(place: int, alignment: int) -> int:
    return place + -place % max(alignment, 1)


def _memory(nbytes: int) -> int:
    """Return new memory of the process."""
    process = ctypes.CDLL(None, use_errno=True)
    process.mmap.restype = ctypes.c_void_p
    word = ctypes.c_size_t
    rights, kind = READ | WRITE, PRIVATE | ANONYMOUS
    found = process.mmap(None, word(nbytes), rights, kind, -1, word(0))
    if found == FAILED:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(found)


def _protect(address: int, nbytes: int) -> None:
    """Let memory be read and run, and no more be written."""
    process = ctypes.CDLL(None, use_errno=True)
    place = ctypes.c_void_p(address)
    if process.mprotect(place, ctypes.c_size_t(nbytes), READ | EXECUTE):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _register(address: int) -> None:
    """Tell what unwinds stacks of the tables for code; without it, nobody unwinds."""
    with suppress(OSError):
        library: Any = ctypes.CDLL("libgcc_s.so.1")
        library["__register_frame"](ctypes.c_void_p(address))
