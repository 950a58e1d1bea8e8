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
from xdev._c_functions import HEADER, ONE, WORD, address_of, made_of
from xdev._machine_code import immortal
from xdev.device.cuda import current_device_function
from xdev.memory.native import objects
from xdev.memory.native.machine import machine

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.memory.native.front import Devices

    Allocator = Callable[[int], Any]

NEW = 65  # Py_tp_new
PYTHON = (*("PyLong_AsSsize_t", "PyErr_Clear", "PyObject_CallOneArg", "Py_DecRef"),)


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
    """Return the address of what the machine code knows; 0 where CuPy is otherwise."""
    cuda, device = _optional.cupy().cuda, current_device_function()
    compiled = (HEADER, tuple.__basicsize__) == (objects.FIELDS_OF, objects.ITEM)
    if not (device and compiled and _is_pointer_known()):
        return 0
    kinds = cuda.memory.CFunctionAllocatorMemory, cuda.MemoryPointer
    *types, empty = map(id, immortal((*kinds, ())))
    makers = map(_maker, kinds)
    python = [address_of(getattr(ctypes.pythonapi, name)) for name in PYTHON]
    free = machine().addresses["cupy_free"]
    words = device, free, *types, *makers, empty, *python
    return ctypes.addressof(immortal((ctypes.c_int64 * objects.FACTS)(*words)))


def _maker(kind: type) -> int:
    """Return the address of what makes a type's objects, not initialised yet."""
    find = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_int)
    return find(("PyType_GetSlot", ctypes.pythonapi))(kind, NEW) or 0


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
