"""What the machine code knows of CuPy's objects, once it was seen to be so.

CuPy tells nobody where its objects keep what. Each word of some that CuPy has made is
compared with what would be there if machine code had made them; where one differs,
CuPy's own functions serve as ever.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional
from xdev._c_functions import HEADER, ONE, WORD, address_of, made_of, of_cython
from xdev._machine_code import immortal
from xdev.device.cuda import current_device_function
from xdev.memory.native import objects
from xdev.memory.native.machine import machine

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.memory.native.front import Devices

    Allocator = Callable[[int], Any]

ALLOCATOR_NOW = "PyObject *(int __pyx_skip_dispatch)"
ASSIGN = "_ZNSt6vectorIlSaIlEEaSERKS1_"  # std::vector<long>::operator=(const vector&)
NEW = 65  # Py_tp_new
PYTHON = (
    *("PyLong_AsSsize_t", "PyErr_Clear", "PyObject_CallOneArg"),
    *("Py_IncRef", "Py_DecRef"),
)
PROBES = ((3, 5), "f4"), ((7,), "f8"), ((2, 1, 4), "i2"), ((1, 6), "c16"), ((), "u1")


def allocator(devices: Devices, rest: Allocator) -> Allocator:
    """Return an allocator for CuPy.

    Parameters
    ----------
    devices : Devices
        Where free blocks are taken.
    rest : callable
        Allocates where there is none; and always, where CuPy is not understood.
    """
    known = facts()
    if not known:
        return rest
    words = np.array([known, devices.address])
    return made_of("allocate", machine().addresses["cupy_allocate"], (words, rest), ONE)


@cache
def facts() -> int:
    """Return the address of what the machine code knows; 0 where CuPy is otherwise.

    What it knows of arrays is left out: a first call in a process makes none by it.
    """
    cupy, code = _optional.cupy(), machine().addresses
    device = current_device_function()
    current = of_cython(cupy.cuda.memory, "get_allocator", ALLOCATOR_NOW.__eq__)
    compiled = (HEADER, tuple.__basicsize__) == (objects.FIELDS_OF, objects.ITEM)
    if not (device and current and compiled and _is_pointer_known()):
        return 0
    memory, pointer = cupy.cuda.memory.CFunctionAllocatorMemory, cupy.cuda.MemoryPointer
    array, base = cupy.ndarray, cupy.ndarray.__mro__[1]
    kinds = type(len), memory, pointer, array, ()
    function, *types, empty = map(id, immortal(kinds))
    makers = [_maker(kind) for kind in (memory, pointer, base)]
    python = [address_of(getattr(ctypes.pythonapi, name)) for name in PYTHON]
    ours = code["cupy_free"], code["cupy_allocate"]
    words = device, current, *ours, function, *types, *makers, empty, 0, *python
    return ctypes.addressof(immortal((ctypes.c_int64 * objects.FACTS)(*words)))


def facts_of_arrays() -> int:
    """Return the same, once arrays were looked at, too, for what makes them."""
    known = facts()
    if known and _is_array_known():
        words = (ctypes.c_int64 * objects.FACTS).from_address(known)
        words[objects.ASSIGN] = _assignment()
    return known


def _maker(kind: type) -> int:
    """Return the address of what makes a type's objects, not initialised yet."""
    find = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_int)
    return find(("PyType_GetSlot", ctypes.pythonapi))(kind, NEW) or 0


def _assignment() -> int:
    """Return the address of what CuPy's module assigns extents by, 0 if it has none.

    What it allocates, the same module frees.
    """
    core = ctypes.CDLL(_optional.cupy()._core.core.__file__)  # noqa: SLF001
    return address_of(getattr(core, ASSIGN)) if hasattr(core, ASSIGN) else 0


def _words(x: object) -> list[int]:
    """Return an object's own words."""
    count = (type(x).__basicsize__ - HEADER) // WORD
    return list((ctypes.c_int64 * count).from_address(id(x) + HEADER))


def _is_pointer_known() -> bool:
    cuda = _optional.cupy().cuda
    free = address_of(ctypes.pythonapi.Py_IsInitialized)  # does nothing
    address, parameter = 1 << 41, 1 << 42
    try:
        memory = cuda.memory.CFunctionAllocatorMemory(0, parameter, free, free, 3)
        memory.ptr, memory.size = address, 5
        table, *blank = _words(cuda.MemoryPointer.__new__(cuda.MemoryPointer))
        pointer = cuda.MemoryPointer(memory, 0)
    except (AttributeError, TypeError):
        return False
    return (_words(memory), blank, _words(pointer)) == (
        [address, 5, 3, parameter, free],
        [0, 0, id(None)],
        [table, address, 3, id(memory)],
    )


def _is_array_known() -> bool:
    cupy = _optional.cupy()
    base = cupy.ndarray.__mro__[1]
    try:
        table, *blank = _words(base.__new__(cupy.ndarray))
        memory = cupy.cuda.UnownedMemory(1 << 20, 1 << 10, None, 0)
        pointer = cupy.cuda.MemoryPointer(memory, 16)
        probes = [cupy.ndarray(x, np.dtype(kind), pointer) for x, kind in PROBES]
    except (AttributeError, TypeError, ValueError):
        return False
    return blank == [0] * 10 + [id(None)] * 3 and all(
        _is_as_known(x, table) for x in probes
    )


def _is_as_known(x: Any, table: int) -> bool:
    found = _words(x)
    extents, strides = found[objects.EXTENTS], found[objects.STRIDES]
    orders = objects.IN_C | objects.IN_FORTRAN * x.flags.f_contiguous
    return (
        found
        == [
            *(table, 0, x.size),
            *(extents, extents + WORD * x.ndim, extents + WORD * x.ndim),
            *(strides, strides + WORD * x.ndim, strides + WORD * x.ndim),
            *(orders, 1, id(x.dtype), id(x.data), id(None)),
        ]
        and _contents(extents, x.ndim) + _contents(strides, x.ndim)
        == x.shape + x.strides
    )


def _contents(address: int, count: int) -> tuple[int, ...]:
    return tuple((ctypes.c_int64 * count).from_address(address)) if count else ()
