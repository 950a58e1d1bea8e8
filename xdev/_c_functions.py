"""C functions: their addresses, and functions of Python's that are machine code."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
WORD = 8
HEADER = object.__basicsize__  # where an object's own fields start; its type is last
FASTCALL = 0x80  # METH_FASTCALL: (self, arguments, how many)
ONE = 0x8  # METH_O: (self, argument)


class _Definition(ctypes.Structure):
    """CPython's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def made_of(
    name: str, code: int, own: object = None, takes: int = FASTCALL
) -> Callable[..., Any]:
    """Return a function of Python's.

    Parameters
    ----------
    name : str
        What it shows.
    code : int
        The address of ``function(own, arguments, how many)``.
    own : object
        Its first argument.
    takes : {FASTCALL, ONE}
        What follows that: ``ONE`` is a single argument.
    """
    # Whoever has the function reads the definition, at the end of the process too.
    definition = immortal(_Definition(name.encode(), code, takes, None))
    kinds = ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
    make = ctypes.PYFUNCTYPE(ctypes.py_object, *kinds)
    made: Any = make(address_of(ctypes.pythonapi.PyCFunction_NewEx))
    function: Callable[..., Any] = made(ctypes.addressof(definition), own, None)
    return function


def address_of(pointer: Any) -> int:
    """Return the address that a function or a pointer of ``ctypes`` has.

    By ``ctypes.cast`` it would hold itself, and all that it uses, until a collection.
    """
    return ctypes.c_void_p.from_address(ctypes.addressof(pointer)).value or 0


def of_numpy(table: str, place: int) -> int:
    """Return the address of a function of NumPy's.

    Parameters
    ----------
    table : {"_ARRAY_API", "_UFUNC_API"}
        Where NumPy has it.
    place : int
        Its number there, which never changes.
    """
    capsule = getattr(np._core._multiarray_umath, table)  # type: ignore[attr-defined] # noqa: SLF001
    _, start = content(capsule)
    functions = (ctypes.c_void_p * (place + 1)).from_address(start)
    return functions[place] or 0


def of_cython(module: object, name: str, fits: Callable[[str], object]) -> int:
    """Return the address of a C function that a compiled module offers to others.

    0 where it offers none of that name whose type, as C has it, fits.
    """
    capsule = vars(module).get("__pyx_capi__", {}).get(name)
    found, address = content(capsule) if capsule else ("", 0)
    return address if fits(found) else 0


def content(capsule: object) -> tuple[str, int]:
    """Return the name and the address that a capsule has."""
    take, python = ctypes.py_object, ctypes.pythonapi
    name = ctypes.PYFUNCTYPE(ctypes.c_char_p, take)(("PyCapsule_GetName", python))
    kinds = ctypes.c_void_p, take, ctypes.c_char_p
    pointer = ctypes.PYFUNCTYPE(*kinds)(("PyCapsule_GetPointer", python))
    found = name(capsule)
    return (found or b"").decode(), pointer(capsule, found) or 0


def immortal(kept: T) -> T:
    """Keep an object that C code points to until the process is gone, and return it.

    A list in a module would not do: the interpreter empties its modules at the end,
    and arrays that are still alive then are given back after that.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    return kept
