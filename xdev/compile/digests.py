"""Names for all that a function computes, and the machine code kept under them.

They are the keys of what is kept of it on disk, compiled code and what was inferred,
with what that depends on besides: compilers, settings, our own code. Where the function
stands and what it is called is left out. A value that no text tells in full, such as an
object of a user's class, leaves the function without a digest.
"""

from __future__ import annotations

import builtins
import hashlib
import linecache
import os
import struct
import sys
from collections import ChainMap
from contextlib import suppress
from dis import get_instructions
from functools import cache
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional
from xdev._disk_cache import DiskCache
from xdev._forks import immortal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The outside names that a function reads, and the globals of its copies.

EVERY = ("__builtins__", "__name__")  # what functions themselves are made by
GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
CELLS = frozenset({"LOAD_DEREF"})
ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
BETWEEN = frozenset({"EXTENDED_ARG", "CACHE"})  # no instructions of their own


def reads(code: CodeType) -> Iterator[tuple[str, bool, tuple[str, ...], int]]:
    """Return what a function's code, and the functions inside it, read from outside.

    Of each: its name, whether it is a cell of a closure, maybe one of the function
    around, the attributes read of it, and the line.
    """
    attributes: tuple[str, ...] = ()
    name, cell, line = "", False, code.co_firstlineno
    for instruction in get_instructions(code):
        operation = instruction.opname
        if operation in BETWEEN:
            continue
        if name and operation in ATTRIBUTES:
            attributes = (*attributes, instruction.argval)
            continue
        if name:
            yield name, cell, attributes, line
        name, cell, attributes = "", operation in CELLS, ()
        if cell or operation in GLOBALS:
            name, place = instruction.argval, instruction.positions
            line = (place and place.lineno) or line
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from reads(constant)


def named_globals(function: Any, code: CodeType | None = None) -> dict[str, Any]:
    """Return the globals of a function that its code names, or another code for it.

    All of a module's would keep every array of the user's alive.
    """
    every = function.__globals__
    names = (*EVERY, *(name for name, *_ in reads(code or function.__code__)))
    return {name: every[name] for name in names if name in every}


def copied(function: Any, change: Callable[[Any], Any]) -> Any:
    """Return a copy of a function whose outside values are changed."""
    namespace = {name: change(x) for name, x in named_globals(function).items()}
    cells = (CellType(change(x.cell_contents)) for x in function.__closure__ or ())
    own = function.__name__, function.__defaults__, tuple(cells) or None
    return FunctionType(function.__code__, namespace, *own)


EXACT = (int, bool, str, bytes, type(None), type(...))  # their repr tells them
NUMBERS = frozenset({"Integer", "Float", "Complex", "Boolean"})  # Numba's types of them
# Of these the version is in every key, and of the standard library's C functions.
LIBRARIES = frozenset({"builtins", "math", "cmath", "operator", "numpy", "numba"})
# They know their names.
NAMED = {BuiltinFunctionType, FunctionType, type, type(np.real)}
REGISTRIES = ("numba.core.typing.templates", "numba.cuda.typing.templates")


def digest(
    function: Callable[..., Any],
    within: Callable[[object], object] = lambda value: value,
) -> str | None:
    """Return a name for what a function computes, None where it has none.

    ``within`` turns a value that the function reads into the plain function that it
    stands for, or returns it.

    Examples
    --------
    >>> def scaled(x, factor=2.0):
    ...     return x * factor
    >>> def other(x, factor=2.0):
    ...     return x * factor
    >>> digest(scaled) == digest(other) == digest(scaled)
    True
    >>> other.__defaults__ = (3.0,)
    >>> digest(scaled) == digest(other)
    False
    """
    digester = _Digester(within)
    try:
        digester.function(function)
    except (_Undigestible, AttributeError, ValueError):  # it reads what is not there
        return None
    return digester.found.hexdigest()


def joined(*parts: object) -> str:
    """Return one key of several values, of which each has its own ``repr``."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


class _Undigestible(Exception):  # noqa: N818 - it never leaves this module
    """A value has no text that tells it in full."""


@final
class _Digester:
    """Takes in values, each after its kind; functions once."""

    def __init__(self, within: Callable[[object], object]) -> None:
        self.found = hashlib.sha256()
        self._within = within
        self._seen: dict[FunctionType, int] = {}
        self._replaced = replaced()

    def function(self, function: Any) -> None:
        """Take in a function with its defaults and all that it reads."""
        if function in self._seen:
            return self._text("seen", self._seen[function])
        self._seen[function] = len(self._seen)
        code: CodeType = function.__code__
        # Without its source, a function's literals would keep the compiler's own types.
        if not linecache.getline(code.co_filename, code.co_firstlineno):
            raise _Undigestible
        self._text("function")
        self.value(function.__defaults__)
        self.value(tuple(sorted((function.__kwdefaults__ or {}).items())))
        self._code(code)
        namespace = ChainMap(function.__globals__, vars(builtins))
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        for name, cell, attributes in dict.fromkeys(x[:3] for x in reads(code)):
            self._text("outside", name, cell, attributes)
            if cell and name in cells:  # or a ValueError: not assigned yet
                self._outside(cells[name].cell_contents, attributes)
            elif not cell and name in namespace:
                self._outside(namespace[name], attributes)
        return None

    def value(self, value: Any) -> None:
        """Take in a value; _Undigestible if no text tells it in full."""
        value = self._within(value)
        kind = type(value)
        if kind in EXACT:
            self._text(kind.__name__, value)
        elif kind in {tuple, frozenset}:
            items = value if kind is tuple else sorted(value, key=repr)
            self._text(kind.__name__, len(value))
            for item in items:
                self.value(item)
        elif kind is CodeType:
            self._code(value)
        elif isinstance(value, np.dtype):
            self._text("dtype", value)
        elif kind in {float, complex} or (
            isinstance(value, np.generic) and not value.dtype.hasobject
        ):  # all NaNs have one text
            number = np.asarray(value)
            self._text(kind.__name__, number.dtype)
            self.found.update(number.tobytes())
        elif id(value) in self._replaced:
            raise _Undigestible
        else:
            self._callable(value)

    def _callable(self, value: Any) -> None:
        """Take in a function: one of a library by its name alone."""
        kind = type(value)
        if kind is np.ufunc and getattr(np, value.__name__, None) is value:
            self._text(str(value))
        elif kind.__module__.startswith("numba.core.types.") and (
            kind.__name__ in NUMBERS
        ):
            self._text("type", str(value))
        elif kind in NAMED and _of_library(value):
            self._text("library", value.__module__, value.__qualname__)
        elif kind is FunctionType:
            self.function(value)
        elif getattr(value, "xdev_digest", None):  # of a device function, when made
            self._text("compiled", value.xdev_digest)
        else:
            raise _Undigestible

    def _outside(self, value: Any, attributes: tuple[str, ...]) -> None:
        """Take in an outside value; of a module, the attribute that the code reads."""
        for name in attributes:
            if isinstance(value, ModuleType):
                value = getattr(value, name)
        self.value(value)

    def _code(self, code: CodeType) -> None:
        """Take in instructions and constants, not line numbers."""
        shape = code.co_argcount, code.co_kwonlyargcount, code.co_flags
        self._text("code", *shape, code.co_code, code.co_names, code.co_varnames)
        self._text(code.co_freevars, code.co_cellvars, code.co_exceptiontable)
        self.value(code.co_consts)

    def _text(self, *words: object) -> None:
        self.found.update(repr(words).encode() + b"\n")


def replaced() -> frozenset[int]:
    """Return the ids of functions that a program has Numba compile as others.

    What Numba and xdev overload so is in every key.
    """
    ids = set()
    for name in REGISTRIES:
        registry = getattr(sys.modules.get(name), "builtin_registry", None)
        for value, kind in getattr(registry, "globals", ()):
            for template in getattr(kind, "templates", ()):
                by = getattr(template, "_overload_func", None)
                # Numba's own without a module are compiled from texts.
                module = getattr(by, "__module__", None)
                if module and not _library(module) and not module.startswith("xdev."):
                    ids.add(id(value))
    return frozenset(ids)


def _library(module: str | None) -> bool:
    """Say whether a module is of a library whose version is in every key."""
    return (module or "").partition(".")[0] in LIBRARIES


def _of_library(value: Any) -> bool:
    """Say whether a library has it under its name, which wrappers bear, too."""
    module = value.__module__ or ""
    if type(value) is BuiltinFunctionType:
        library = _library(module) or module in sys.stdlib_module_names
    elif type(value) is FunctionType:
        library = _library(value.__globals__.get("__name__"))
    else:
        library = _library(module)
    named: Any = sys.modules.get(module)
    for name in value.__qualname__.split("."):
        named = getattr(named, name, None)
    return library and named is value


# What compiled code depends on but the function.

COMPILERS = ("numba", "llvmlite", "numpy")
VARIABLES = ("NUMBA_", "LLVMLITE_", "CUDA_HOME", "CUDA_PATH")
HARMLESS = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS"}  # they leave machine code alone
SOURCES = (".py", ".cu", ".cuh")
ROOMS = (".", "templates", "../ufunc")  # all folders that have some


def environment() -> str:
    """Return what compiled code depends on but the function, settings included."""
    names = {name for name in os.environ if name.startswith(VARIABLES)} - HARMLESS
    settings = [(name, os.environ.get(name)) for name in sorted(names)]
    return joined(_installed(), settings)


@cache
def _installed() -> str:
    """Return the compilers' versions, and our own code's.

    Our files are told apart by time and size, as in Python's own cache.
    """
    versions = [(name, _optional.version(name)) for name in COMPILERS]
    sources = []
    here = os.path.dirname(__file__)  # noqa: PTH120 - pathlib doubles the time
    for room in ROOMS:
        with suppress(OSError):  # they may lie in an archive
            for name in os.listdir(f"{here}/{room}"):  # noqa: PTH208 - likewise
                if name.endswith(SOURCES):
                    status = os.stat(f"{here}/{room}/{name}")  # noqa: PTH116
                    sources.append((name, status.st_size, status.st_mtime_ns))
    return joined(versions, sys.version, sorted(sources))


# What is kept on disk under these names.


def load_or_compile(
    kind: str,
    digest: str | None,
    parts: object,
    name: str,
    make: Callable[[], tuple[bytes, str]],
    unchanged: Callable[[], bool] = lambda: True,
    usable: Callable[[bytes], bool] = lambda _: True,
) -> tuple[bytes, str]:
    """Return machine code and its function's name, made where no process has done so.

    Parameters
    ----------
    kind : str
        Of :class:`~xdev._disk_cache.DiskCache`.
    digest : str or None
        The Python function's digest; None: it is compiled in each process.
    parts : object
        What else decides the machine code: types, layout, options. Its ``repr`` tells
        it in full.
    name : str
        The Python function's name, for people.
    make : callable
        Compiles; it alone loads compilers.
    unchanged : callable
        Says, after that, whether what was compiled still has the digest.
    usable : callable
        Says whether code is for other processes, and for this one.
    """
    if digest is None:
        return make()
    cache, key = DiskCache(kind), joined(digest, parts, environment())
    entry = cache.load(key)
    if entry is not None:
        symbol, _, code = entry.partition(b"\n")
        if usable(code):
            return code, symbol.decode()
    result = code, entry_point = make()
    if unchanged() and usable(code):
        cache.save(key, entry_point.encode() + b"\n" + code, name)
    return result


# Loops of the CPU among it: LLVM loads them, and a process needs no Numba for it.

DYNAMIC = b"numba.dynamic.globals"  # addresses in code: of large arrays, of gaps
OFFSETS = b"_GLOBAL_OFFSET_TABLE_"  # which whoever loads a file makes
SYMBOL = struct.Struct("<IBBHQQ")  # of ELF: where its name is, ..., its section, ...


def load_loop(
    digest: str | None,
    parts: object,
    name: str,
    make: Callable[[], tuple[bytes, str]],
    unchanged: Callable[[], bool] = lambda: True,
) -> int:
    """Do what :func:`load_or_compile` does of a C function, and return its address."""
    parts = parts, digest and _processor()
    return _loaded(
        *load_or_compile("loops", digest, parts, name, make, unchanged, _usable)
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
