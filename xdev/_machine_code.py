"""Machine code by LLVM, without Numba: optimised, emitted as an object file, loaded.

To load what is on disk needs no LLVM either, where the processor is an x86-64.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from xdev import _object_files, _optional
from xdev._c_functions import immortal
from xdev.errors import XdevError

if TYPE_CHECKING:
    from collections.abc import Callable

INSTRUCTIONS = ("llvm.", "sqrt")  # names of what becomes an instruction, not a call
COMPILERS = ("numba", "llvmlite")
CPU = "/proc/cpuinfo"
ENOUGH = 8192  # bytes of it, in which the first processor is
# What it says that code depends on: of x86-64, of ARM.
TRAITS = (
    *(b"vendor_id", b"cpu family", b"model", b"stepping", b"flags"),
    *(b"CPU implementer", b"CPU architecture", b"CPU variant", b"CPU part"),
    b"Features",
)


@cache
def processor() -> str:
    """Return what code depends on here: the compilers, the processor, its features."""
    versions = [(name, _optional.distributions().get(name)) for name in COMPILERS]
    try:
        with open(CPU, "rb", buffering=0) as file:  # noqa: PTH123 - pathlib loads more
            first, _, _ = file.read(ENOUGH).partition(b"\n\n")
    except OSError:  # there is no /proc: LLVM asks the processor itself
        return repr((versions, _llvm().get_host_cpu_name(), _features()))
    traits = [line for line in first.splitlines() if line.startswith(TRAITS)]
    return repr((versions, traits))


def key(*files: str) -> str:
    """Name code on disk: the text of the files that make it, and what it depends on."""
    found = hashlib.sha256(processor().encode())
    for name in (*files, __file__):
        with open(name, "rb") as file:  # noqa: PTH123 - likewise
            found.update(file.read())
    return found.hexdigest()


def load(binary: bytes) -> Callable[[str], int]:
    """Load an object file for the rest of the process; return what tells addresses."""
    found = _object_files.load(_object_files.ObjectFile(binary), _address)
    if found is not None:
        return found.__getitem__
    llvm = _llvm()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target())
    engine.add_object_file(llvm.ObjectFileRef.from_data(binary))
    engine.finalize_object()
    return immortal(engine).get_global_value_address  # type: ignore[no-any-return]


def emit(texts: list[str], *, long: bool = True) -> bytes:
    """Return the object file of modules in LLVM's language, optimised as a whole.

    Parameters
    ----------
    texts : list of str
        The modules.
    long : bool
        Whether loops are worth SIMD instructions and unrolling. Over the few operands
        of a call these only take longer.

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
    _optimize(whole, long=long)
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


def _address(name: str) -> int:
    """Return where the process has a function, 0 where it has none."""
    process = ctypes.CDLL(None)  # with the C library
    if hasattr(process, name):
        return ctypes.cast(getattr(process, name), ctypes.c_void_p).value or 0
    return int(_llvm().address_of_symbol(name) or 0)  # Numba tells LLVM of its own


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


def _optimize(module: Any, *, long: bool) -> None:
    """Optimise what is linked: with all calls inlined, nothing can raise any more."""
    llvm = _llvm()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.loop_unrolling = long
    builder = llvm.create_pass_builder(_target(), options)
    builder.getModulePassManager().run(module, builder)
