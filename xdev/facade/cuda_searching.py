"""Sorting, searching and sets of CUDA arrays.

CuPy sorts the lines of an array by one sort of all its elements with their lines, which
takes four times as long as a block for each line.
"""

from __future__ import annotations

import importlib
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional
from xdev.compile.cubins import cpp_name
from xdev.facade import elementwise
from xdev.facade.cpu import named_result
from xdev.facade.cuda_launches import (
    FAR,
    THREADS,
    Move,
    Operands,
    Program,
    assign,
    launched,
    new,
    quick,
    run,
    run_of,
    straight,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.facade.backends import Function

SHARED = 48 * 1024  # bytes of a block's memory that every GPU has
WARP, MOST = 32, 1024  # threads: that run as one, of a block at most
SORTED = 16  # elements that a thread sorts, at most
MARKED, SUMMED, SOUGHT = 32, 8, 8  # elements that a thread marks, sums up, looks for
EIGHT, DENSE, LEVELS = 8, 2**14, 7  # where values are looked for: see searchsorted
MANY = 2**18  # values from which on a thread looks for several
INDEX = np.dtype(np.int64)
SIDES = {"left": "false", "right": "true"}


def last(x: Any) -> int:
    """Return an array's last number; the host waits for it, without a pinned buffer."""
    number = np.empty((), x.dtype)
    (x.data + (x.nbytes - x.itemsize)).copy_to_host_async(
        number.ctypes.data, x.itemsize
    )
    _optional.cupy().cuda.get_current_stream().synchronize()
    return int(number)


def sort(
    x: Any, *, axis: Any = 0, descending: bool = False, places: bool = False, **_: bool
) -> Any:
    """Sort lines that a block can hold, or return the places of their elements."""
    if type(axis) is not int or not -x.ndim <= axis < x.ndim:
        return NotImplemented
    if axis in {-1, x.ndim - 1}:
        return launched(_sorted_lines, (x,), ("sort", bool(descending), places))
    key = "sort", bool(descending), places
    out = launched(_sorted_lines, (x.swapaxes(axis, -1),), key)
    return out if out is NotImplemented else straight(out.swapaxes(axis, -1))


def _sorted_lines(arrays: Operands, descending: bool, places: bool) -> Move | None:
    """Plan :func:`sort` along the last axis."""
    (x,) = arrays
    if x.dtype.kind not in "biuf" or not x.size:
        return None
    length, itemsize = x.shape[-1], x.dtype.itemsize
    number = x.size // length  # of lines
    longest = min(SHARED // min(itemsize, 4), MOST * SORTED)
    if not 1 < length <= longest or number >= FAR:
        return None
    threads = WARP
    while threads * SORTED < length and threads < MOST:
        threads *= 2
    cpp, flags = cpp_name(x.dtype), (str(descending), str(places))
    entry = f"xdev::sort_lines<{','.join((cpp, *flags)).lower()}>"
    program = Program(entry, threads, -(-length // threads))
    dtype = INDEX if places else x.dtype
    return run_of(program, number, 2, length), dtype, x.shape


argsort = partial(sort, places=True)


def _marks(x: Any, differs: bool) -> tuple[int, Callable[..., Any]]:
    """Return how many elements are not zero, or differ from those before them.

    And what writes of them all into an array: their places, the elements themselves
    ("VALUE"), or also the number of the run that each of x's is of ("NUMBER", with the
    order of the array that x is sorted by). The host waits.
    """
    entry = f"xdev::marks<{cpp_name(x.dtype)},{str(differs).lower()},xdev::{{}}>"
    blocks = -(-x.size // (THREADS * MARKED))
    counts = new((blocks + 1,), INDEX)

    def write(what: str, out: Any, *more: Any) -> Any:
        if out.size:
            program = Program(entry.format(what), THREADS, MARKED)
            run(program, blocks, [x, out, counts, *more], x.size)
        return out

    write("COUNT", counts)
    run(Program("xdev::sum_marks", MOST, SUMMED), 1, [x, counts], blocks)
    return last(counts), write


def nonzero(x: Any) -> Any:
    """Return the indices of what is not zero."""
    if not x.ndim or not x.size:
        return NotImplemented
    count, write = _marks(straight(x), False)
    places, indices = write("PLACE", new((count,), INDEX)), []
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


def _ordered(x: Any) -> tuple[Any, Any]:
    """Return a vector sorted, and its order."""
    order = argsort(x)
    if order is not NotImplemented:
        return x[order], order
    ordered, order = assign(new(x.shape, x.dtype), x), new(x.shape, INDEX)
    # What CuPy's own function calls, which drops the sorted elements.
    sort_both = importlib.import_module("cupy.cuda.thrust").argsort
    sort_both(x.dtype, order.data.ptr, ordered.data.ptr, 0, x.shape)
    return ordered, order


def _distances(places: Any, size: int) -> Any:
    """Return how far it is from each place to the next one, or to the end."""
    out = new(places.shape, INDEX)
    subtract: Any = elementwise.subtract
    subtract(places[1:], places[:-1], out=out[:-1])
    subtract(np.int64(size), places[-1:], out=out[-1:])
    return out


def _unique(name: str, fields: tuple[str, ...]) -> Callable[[Any], Any]:
    ordering = not {"indices", "inverse_indices"}.isdisjoint(fields)

    def unique(x: Any) -> Any:
        if x.dtype.kind not in "biuf" or not x.size:
            return NotImplemented
        flat = straight(x).reshape(-1)
        order: Any = None
        if ordering:
            ordered, order = _ordered(flat)
        else:
            ordered = quick(sort, _optional.cupy().sort)(flat)
        count, write = _marks(ordered, True)
        values = write("VALUE", new((count,), x.dtype))
        if not fields:
            return values
        first = new((count,), INDEX)
        if ordering:
            inverse = new(x.shape, INDEX)
            write("NUMBER", first, order, inverse)
        else:
            write("PLACE", first)
        makers: dict[str, Callable[[], Any]] = {
            "indices": lambda: order[first],
            "inverse_indices": lambda: inverse,
            "counts": lambda: _distances(first, x.size),
        }
        return named_result(name)(values, *(makers[field]() for field in fields))

    return unique


def searchsorted(x1: Any, x2: Any, *, side: Any = "left", sorter: Any = None) -> Any:
    """Return where elements belong.

    Where many are looked for, first in every eighth sorted element, and every eighth of
    those: eight neighbours are one access to the device's memory.
    """
    arrays = type(x2) is type(x1) and sorter is None and x1.ndim == 1
    if not arrays or side not in (*SIDES,) or x1.dtype != x2.dtype:
        return NotImplemented
    levels, many = [x1], x1.size <= EIGHT * x2.size
    while many and levels[0].size > DENSE:
        levels.insert(0, straight(levels[0][EIGHT - 1 :: EIGHT]))
    return launched(_searched, (*levels, x2), ("find", side))


def _searched(arrays: Operands, side: str) -> Move | None:
    """Plan :func:`searchsorted`."""
    *levels, values = arrays
    x = levels[-1]
    if x.dtype.kind not in "biuf" or not 0 < x.size < FAR or not values.size:
        return None
    entry = f"xdev::search<{cpp_name(x.dtype)},{SIDES[side]}>"
    each = SOUGHT if values.size >= MANY else 1
    program = Program(entry, THREADS, each, slots=LEVELS + 2)
    blocks, lengths = -(-values.size // (THREADS * each)), [y.size for y in levels]
    rest = (0,) * (LEVELS - len(levels))
    sizes = *lengths, *rest, len(levels), values.size
    return run_of(program, blocks, len(arrays) + 1, *sizes), INDEX, values.shape


#: By the standard's names; NotImplemented of one of them leaves the call to CuPy.
SEARCHES: dict[str, Function] = {
    "argsort": argsort,
    "nonzero": nonzero,
    "searchsorted": searchsorted,
    "sort": sort,
    **{name: _unique(name, fields) for name, fields in UNIQUE.items()},
}
