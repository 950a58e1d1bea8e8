"""Where a CuPy array keeps what a launch needs, and the C function that makes one.

``x.data.ptr`` takes Python two calls, and a call of a ufunc asks fifteen such things.
The places are told nowhere: arrays whose values are known are searched for them; what
is not found in all of them, at one place each, is not relied on.
"""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional
from xdev._c_functions import of_cython
from xdev.compile.machine_words import WORD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# A function that CuPy's compiled modules call in each other, and its type in C.
MAKER = "_ndarray_init"
SIGNATURE = (
    r"struct \w+_ndarray_base \*\(PyObject \*, \w+_shape_t const &, PyObject \*, "
    r"PyObject \*\)"
)
PROBES = (
    ((3, 5), "f4", "C"),
    ((7,), "f8", "C"),
    ((2, 3, 4), "i2", "F"),
    ((), "u1", "C"),
)


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """Distances from an object's address [B].

    Attributes
    ----------
    size, dtype, data : int
        In an array: the number of elements, the dtype, the ``MemoryPointer``.
    shape : int
        In an array: where the extents begin, and, a word on, where they end.
    contiguous : int
        In an array: 32 bits, 1 if it is in C order.
    address : int
        In a ``MemoryPointer``: the address.
    """

    size: int
    dtype: int
    data: int
    shape: int
    contiguous: int
    address: int


@cache
def maker() -> int:
    """Return the address of CuPy's C function for new arrays in C order.

    It takes a class, where the extents are (as ``Layout.shape`` says), a dtype and an
    object whose attributes a subclass takes over. 0 where CuPy has no such function.
    """
    core = _optional.cupy()._core.core  # noqa: SLF001 - so it tells Cython
    return of_cython(core, MAKER, re.compile(SIGNATURE).fullmatch)


@cache
def layout() -> Layout | None:
    """Return the layout of CuPy's arrays, None where it is not as it ever was."""
    probes = list(_probes())
    pointers = [x.data for x in probes]
    try:
        return Layout(
            size=_find(probes, lambda x, at: _word(x, at) == x.size),
            dtype=_find(probes, lambda x, at: _word(x, at) == id(x.dtype)),
            data=_find(probes, lambda x, at: _word(x, at) == id(x.data)),
            shape=_find(probes, _is_shape),
            contiguous=_find(probes, _is_flag, 4),
            address=_find(pointers, lambda p, at: _word(p, at) == p.ptr),
        )
    except ValueError:
        return None


def _probes() -> Iterator[Any]:
    """Make arrays of memory that nobody touches."""
    cupy = _optional.cupy()
    for k, (shape, dtype, order) in enumerate(PROBES):
        memory = cupy.cuda.UnownedMemory(1 << 20, 1 << 10, None, 0)
        pointer = cupy.cuda.MemoryPointer(memory, 16 * k + 16)
        made = cupy.ndarray(shape, np.dtype(dtype), pointer, order=order)
        yield made
        yield made[1:2] if made.ndim == 1 else made[..., ::2] if made.ndim else made


def _find(
    probes: list[Any], holds: Callable[[Any, int], bool], step: int = WORD
) -> int:
    """Return the one place where it holds for all, or raise ValueError."""
    start, end = object.__basicsize__, min(type(x).__basicsize__ for x in probes)
    places = range(start, end - WORD + 1, step)
    (found,) = (at for at in places if all(holds(x, at) for x in probes))
    return found


def _word(x: Any, at: int) -> int:
    return ctypes.c_int64.from_address(id(x) + at).value


def _is_flag(x: Any, at: int) -> bool:
    flag = ctypes.c_int32.from_address(id(x) + at).value
    return bool(flag == x.flags.c_contiguous)


def _is_shape(x: Any, at: int) -> bool:
    if at + 2 * WORD > type(x).__basicsize__:
        return False
    begin, end = _word(x, at), _word(x, at + WORD)
    if end - begin != WORD * x.ndim or (x.ndim and not begin):
        return False
    extents = (ctypes.c_int64 * x.ndim).from_address(begin) if x.ndim else ()
    return tuple(extents) == tuple(x.shape)
