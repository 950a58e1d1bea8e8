"""Machine code by LLVM, without Numba: optimised, emitted as an object file, loaded."""

from __future__ import annotations

import ctypes
import re
import struct
from functools import cache
from typing import Any

from xdev import _optional
from xdev.errors import XdevError

SECTIONS, SECTION_COUNTS = 0x28, 0x3A  # places in an ELF file's header
SECTION = struct.Struct("<IIQQQQIIQQ")  # name, type, …, place, size, link, …
SYMBOL = struct.Struct("<IBBHQQ")  # name, …, section, …
SYMBOLS = 2  # the type of a section
OFFSETS = "_GLOBAL_OFFSET_TABLE_"  # which whoever loads the file makes
INSTRUCTIONS = ("llvm.", "sqrt")  # names of what becomes an instruction, not a call


def processor() -> str:
    """Return what code depends on here: the compiler, the processor, its features."""
    llvm = _llvm()
    words = llvm.llvm_version_info, llvm.get_host_cpu_name(), _features()
    return repr(words)


def load(binary: bytes) -> Any:
    """Return LLVM's engine with an object file in it; its code lives while it does."""
    llvm = _llvm()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target())
    engine.add_object_file(llvm.ObjectFileRef.from_data(binary))
    engine.finalize_object()
    return engine


def complete(binary: bytes) -> bool:
    """Say whether this process has all functions that an object file calls.

    Loading one that calls another would end the process.
    """
    process = ctypes.CDLL(None)  # with the C library
    return all(
        hasattr(process, name) or _llvm().address_of_symbol(name)
        for name in _undefined(binary)
        if name != OFFSETS
    )


def emit(texts: list[str]) -> bytes:
    """Return the object file of modules in LLVM's language, optimised as a whole.

    Raises
    ------
    XdevError
        The code calls something outside it: such a call would jump to nowhere in a
        process without Numba.
    """
    llvm = _llvm()
    whole = llvm.parse_assembly("")
    for text in texts:
        whole.link_in(llvm.parse_assembly(text))
    _optimize(whole)
    strangers = [f.name for f in whole.functions if f.is_declaration]
    strangers = [name for name in strangers if not name.startswith(INSTRUCTIONS)]
    if strangers:
        message = f"machine code on disk cannot call {', '.join(strangers)} of Numba"
        raise XdevError(message)
    return bytes(_target().emit_object(_unwindable(whole)))


@cache
def _llvm() -> Any:
    llvm = _optional.llvm()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def _undefined(binary: bytes) -> list[str]:
    """Return the symbols that an ELF file of 64 bits names and does not define."""
    (start,) = struct.unpack_from("<Q", binary, SECTIONS)
    size, count = struct.unpack_from("<HH", binary, SECTION_COUNTS)
    sections = [SECTION.unpack_from(binary, start + k * size) for k in range(count)]
    found = []
    for _, kind, _, _, place, length, texts, *_ in sections:
        if kind == SYMBOLS:
            base = sections[texts][4]
            for name, _, _, section, _, _ in SYMBOL.iter_unpack(
                binary[place : place + length]
            ):
                if name and not section:
                    end = binary.index(0, base + name)
                    found.append(binary[base + name : end].decode())
    return found


def _features() -> str:
    text: str = _llvm().get_host_cpu_features().flatten()
    return text


def _target() -> Any:
    llvm = _llvm()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=_features(),
        opt=3,
        reloc="pic",
        codemodel="jitdefault",
    )


def _unwindable(module: Any) -> Any:
    """Give every function the tables by which a stack is unwound.

    A daemon thread that comes back from Python to an interpreter that has ended is
    ended by unwinding its stack, on which our function may be.
    """
    text = re.sub(r"^(define .*) \{$", r"\1 uwtable {", str(module), flags=re.MULTILINE)
    return _llvm().parse_assembly(text)


def _optimize(module: Any) -> None:
    """Optimise what is linked: with all calls inlined, nothing can raise any more."""
    llvm = _llvm()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    builder = llvm.create_pass_builder(_target(), options)
    builder.getModulePassManager().run(module, builder)
