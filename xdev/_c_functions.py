"""C functions: their addresses, and what of Python's they are called by.

Python's functions can be machine code, and so can the calls of objects: CPython calls
those by PEP 590, as it calls its own C functions.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev._machine_code import immortal

if TYPE_CHECKING:
    from collections.abc import Callable

WORD = 8
HEADER = object.__basicsize__  # where an object's own fields start; its type is last
FASTCALL = 0x80  # METH_FASTCALL: (self, arguments, how many)
ONE = 0x8  # METH_O: (self, argument)
_FLAGS = HEADER + 19 * WORD  # where a type has its flags
_BASE_TYPE, _HAVE_VECTORCALL = 1 << 10, 1 << 11  # two of them
_MEMBERS = 72  # Py_tp_members
_READ_ONLY_SIZE = 19, 1  # a member's type and flags: T_PYSSIZET, READONLY


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


def caller_of(function: Callable[..., Any]) -> int:
    """Return the address of what calls a callable by PEP 590."""
    ask = ctypes.pythonapi.PyVectorcall_Function
    ask.restype = ctypes.c_void_p
    general = ctypes.pythonapi.PyObject_Vectorcall
    return ask(ctypes.py_object(function)) or address_of(general)


def call_instead(function: Callable[..., Any], code: int) -> None:
    """Let Python call machine code instead of a function of Python's, from 3.12 on.

    Before, the interpreter runs the function without a look at what calls it.

    Parameters
    ----------
    function : function
        Keeps its signature, its code and all else.
    code : int
        The address of ``f(function, arguments, how many, names)``, of PEP 590. What it
        does not serve it hands to what :func:`caller_of` returned before.
    """
    python = ctypes.pythonapi
    if hasattr(python, "PyFunction_SetVectorcall"):
        python.PyFunction_SetVectorcall(
            ctypes.py_object(function), ctypes.c_void_p(code)
        )


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


class _Member(ctypes.Structure):
    """CPython's ``PyMemberDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Slot(ctypes.Structure):
    """CPython's ``PyType_Slot``."""

    _fields_ = (("slot", ctypes.c_int), ("content", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    """CPython's ``PyType_Spec``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    )


def _with_a_word() -> type:
    """Return a class whose objects have a word: the address of what calls them.

    While it is 0, as at first, they are called by their class's ``__call__``.
    """
    kind, flags = _READ_ONLY_SIZE
    member = _Member(b"__vectorcalloffset__", kind, HEADER, flags, None)
    members = immortal((_Member * 2)(member))
    slots = (_Slot * 2)(_Slot(_MEMBERS, ctypes.addressof(members)))
    name = f"{__name__}.Word".encode()
    spec = immortal(_Spec(name, HEADER + WORD, 0, _BASE_TYPE, slots))
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_Spec))
    made: type = make(("PyType_FromSpec", ctypes.pythonapi))(spec)
    return made


Word: Any = _with_a_word()


def understood(kind: type) -> bool:
    """Say whether a class's flags are where this module takes them to be."""
    return ctypes.c_ulong.from_address(id(kind) + _FLAGS).value == kind.__flags__


def slot(kind: type, name: str) -> int:
    """Return where a class's objects have a slot.

    Its descriptor is an object with a class, a name, a longer name and the member.
    """
    member = ctypes.c_void_p.from_address(id(vars(kind)[name]) + HEADER + 3 * WORD)
    return int(_Member.from_address(member.value or 0).offset)


def let_call(kind: type) -> None:
    """Let a class derived from :data:`Word`, with a ``__call__``, use the words."""
    flags = ctypes.c_ulong.from_address(id(kind) + _FLAGS)
    flags.value |= _HAVE_VECTORCALL
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def word_of(x: object) -> ctypes.c_void_p:
    """Return the word of an object of such a class; it does not keep the object."""
    return ctypes.c_void_p.from_address(id(x) + HEADER)
