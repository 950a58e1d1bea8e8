"""Sorting, selecting and taking of CUDA arrays, by kernels that CuPy has no equal of.

CuPy sorts the lines of an array by one sort of all its elements with their lines, which
takes four times as long as a block for each line. NotImplemented of a function leaves
the call to CuPy.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional
from xdev.compile.cubins import cpp_name
from xdev.facade import elementwise
from xdev.facade.cuda_copies import (
    FAR,
    THREADS,
    WORD,
    Program,
    blocks_of,
    new,
    run,
    straight,
)

if TYPE_CHECKING:
    from collections.abc import Callable

SHARED = 48 * 1024  # bytes of a block's memory that every GPU has
WARP, MOST = 32, 1024  # threads: that run as one, of a block at most
SORTED = 16  # elements that a thread sorts, at most
MARKED, SUMMED = 32, 8  # elements that a thread marks, sums up
INDEX = np.dtype(np.int64)
#: Of which CUDA's own types compute as NumPy's do.
PRODUCTS = frozenset("fdlq")


def last(x: Any) -> int:
    """Return an array's last number; the host waits for it."""
    return int(x[-1])


def sort(x: Any, *, axis: int, descending: bool, **_: bool) -> Any:
    """Sort lines that a block can hold."""
    return _sorted(x, axis, bool(descending), False)


def argsort(x: Any, *, axis: int, descending: bool, **_: bool) -> Any:
    """Return the places of lines' elements in their order."""
    return _sorted(x, axis, bool(descending), True)


def _sorted(x: Any, axis: Any, descending: bool, places: bool) -> Any:
    if x.dtype.kind not in "biuf" or type(axis) is not int:
        return NotImplemented
    if not -x.ndim <= axis < x.ndim or not x.size:
        return NotImplemented
    length, itemsize = x.shape[axis], x.dtype.itemsize
    number = x.size // length  # of lines
    longest = min(SHARED // min(itemsize, 4), MOST * SORTED)
    if not 1 < length <= longest or number >= FAR:
        return NotImplemented
    threads = WARP
    while threads * SORTED < length and threads < MOST:
        threads *= 2
    cpp, flags = cpp_name(x.dtype), (str(descending), str(places))
    entry = f"xdev::sort_lines<{','.join((cpp, *flags)).lower()}>"
    program = Program(entry, threads, -(-length // threads))
    last = axis in {-1, x.ndim - 1}
    lines = straight(x if last else x.swapaxes(axis, -1))
    out = new(lines.shape, INDEX if places else x.dtype)
    run(program, number, [lines, out], length)
    return out if last else straight(out.swapaxes(axis, -1))


def _places(x: Any, differs: bool, order: Any = None) -> tuple[Any, Any]:
    """Return where elements are not zero, or differ from those before them.

    And, where the order of an array is given that x is sorted by, the number of the run
    that each of its elements is of. The host waits: it must know how many there are.
    """
    cpp, one = cpp_name(x.dtype), str(differs).lower()
    blocks = -(-x.size // (THREADS * MARKED))
    counts = new((blocks + 1,), INDEX)
    count = Program(f"xdev::count_marks<{cpp},{one}>", THREADS, MARKED)
    run(count, blocks, [x, counts], x.size)
    run(Program("xdev::sum_marks", MOST, SUMMED), 1, [x, counts], blocks)
    out = new((last(counts),), INDEX)
    inverse = None if order is None else new(x.shape, INDEX)
    if out.size:
        entry = f"xdev::place_marks<{cpp},{one},{str(order is not None).lower()}>"
        more = [] if order is None else [order, inverse]
        program = Program(entry, THREADS, MARKED)
        run(program, blocks, [x, out, counts, *more], x.size)
    return out, inverse


def nonzero(x: Any) -> Any:
    """Return the indices of what is not zero."""
    if not x.ndim or not x.size:
        return NotImplemented
    (places, _), indices = _places(straight(x), False), []
    for size in reversed(x.shape[1:]):
        indices.append(elementwise.remainder(places, size))
        places = elementwise.floor_divide(places, size)
    return (places, *reversed(indices))


#: What distinct values come with, by the functions' names.
UNIQUE: dict[str, tuple[str, ...]] = {
    "unique_all": ("indices", "inverse_indices", "counts"),
    "unique_counts": ("counts",),
    "unique_inverse": ("inverse_indices",),
    "unique_values": (),
}


@cache
def _result(name: str) -> Any:
    """Return the type of what NumPy's function returns, which takes long to load."""
    return type(getattr(np, name)(np.empty(0)))


def _unique(name: str, fields: tuple[str, ...]) -> Callable[[Any], Any]:
    ordering = not {"indices", "inverse_indices"}.isdisjoint(fields)

    def unique(x: Any) -> Any:
        if x.dtype.kind not in "biuf" or not x.size:
            return NotImplemented
        cupy, flat = _optional.cupy(), straight(x).reshape(-1)
        order: Any = None
        if ordering:
            order = argsort(flat, axis=0, descending=False)
            order = cupy.argsort(flat) if order is NotImplemented else order
            ordered = flat[order]
        else:
            ordered = sort(flat, axis=0, descending=False)
            ordered = cupy.sort(flat) if ordered is NotImplemented else ordered
        first, inverse = _places(ordered, True, order)
        values = ordered[first]
        if not fields:
            return values
        parts = {"values": values}
        if "inverse_indices" in fields:
            parts |= {"inverse_indices": inverse.reshape(x.shape)}
        if "indices" in fields:
            parts |= {"indices": order[first]}
        if "counts" in fields:
            parts |= {"counts": cupy.diff(first, append=x.size)}
        return _result(name)(**parts)

    return unique


def take(x: Any, indices: Any, *, axis: int | None) -> Any:
    """Take rows that are words of 16 bytes, and begin where those may."""
    cupy = _optional.cupy()
    axis = 0 if axis is None and x.ndim == 1 else axis
    if type(axis) is not int or not -x.ndim <= axis < x.ndim:
        return NotImplemented
    if type(indices) is not cupy.ndarray or indices.dtype.char not in "ilq":
        return NotImplemented
    axis %= x.ndim
    row = prod(x.shape[axis + 1 :]) * x.itemsize
    if indices.ndim != 1 or row % WORD or not x.size * indices.size:
        return NotImplemented
    count = prod(x.shape[:axis]) * indices.size * (row // WORD)
    x = straight(x)
    if count >= FAR or x.data.ptr % WORD:
        return NotImplemented
    indices = straight(indices)
    out = new((*x.shape[:axis], indices.size, *x.shape[axis + 1 :]), x.dtype)
    index = cpp_name(indices.dtype)
    program = Program(f"xdev::take_rows<uint4,{index}>", slots=3)
    sizes = row // WORD, x.shape[axis], indices.size, count
    run(program, blocks_of(count), [x, out, indices], *sizes)
    return out


def cross(x1: Any, x2: Any, *, axis: int) -> Any:
    """Return cross products of vectors that lie one after the other."""
    if axis not in {-1, x1.ndim - 1} or x1.shape != x2.shape or x1.shape[-1:] != (3,):
        return NotImplemented
    if x1.dtype != x2.dtype or x1.dtype.char not in PRODUCTS or not x1.size:
        return NotImplemented
    out, n = new(x1.shape, x1.dtype), x1.size // 3
    program = Program(f"xdev::cross<{cpp_name(x1.dtype)}>", THREADS, 1)
    run(program, -(-n // THREADS), [straight(x1), out, straight(x2)], n)
    return out


#: By the standard's names, as :data:`xdev.facade.cuda_copies.COPIES`.
ORDERS: dict[str, Callable[..., Any]] = {
    **{f.__name__: f for f in (argsort, nonzero, sort, take)},
    **{name: _unique(name, fields) for name, fields in UNIQUE.items()},
    "linalg.cross": cross,
}
