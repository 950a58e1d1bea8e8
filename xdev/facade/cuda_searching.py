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
from xdev.facade.cuda_copies import (
    FAR,
    THREADS,
    Arrays,
    Move,
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
INDEX = np.dtype(np.int64)
SIDES = {"left": "false", "right": "true"}


def last(x: Any) -> int:
    """Return an array's last number; the host waits for it."""
    return int(x[-1])


def sort(
    x: Any, *, axis: Any = 0, descending: bool = False, places: bool = False, **_: bool
) -> Any:
    """Sort lines that a block can hold, or return the places of their elements."""
    if type(axis) is not int or not -x.ndim <= axis < x.ndim:
        return NotImplemented
    if axis in {-1, x.ndim - 1}:
        return launched(_sorted_lines, (x,), bool(descending), places)
    out = launched(_sorted_lines, (x.swapaxes(axis, -1),), bool(descending), places)
    return out if out is NotImplemented else straight(out.swapaxes(axis, -1))


def _sorted_lines(arrays: Arrays, descending: bool, places: bool) -> Move | None:
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


def _marked(
    x: Any, differs: bool, what: str = "PLACE", order: Any = None
) -> tuple[Any, Any]:
    """Return where elements are not zero, or differ from those before them.

    With ``"VALUE"`` those elements. With ``"NUMBER"``, and the order of an array that x
    is sorted by, also the number of the run that each of its elements is of. The host
    waits: it must know how many there are.
    """
    entry = f"xdev::marks<{cpp_name(x.dtype)},{str(differs).lower()},xdev::{{}}>"
    blocks = -(-x.size // (THREADS * MARKED))
    counts = new((blocks + 1,), INDEX)
    count = Program(entry.format("COUNT"), THREADS, MARKED)
    run(count, blocks, [x, counts], x.size)
    run(Program("xdev::sum_marks", MOST, SUMMED), 1, [x, counts], blocks)
    out = new((last(counts),), x.dtype if what == "VALUE" else INDEX)
    inverse = None if order is None else new(x.shape, INDEX)
    if out.size:
        more = [] if order is None else [order, inverse]
        program = Program(entry.format(what), THREADS, MARKED)
        run(program, blocks, [x, out, counts, *more], x.size)
    return out, inverse


def nonzero(x: Any) -> Any:
    """Return the indices of what is not zero."""
    if not x.ndim or not x.size:
        return NotImplemented
    (places, _), indices = _marked(straight(x), False), []
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


def _unique(name: str, fields: tuple[str, ...]) -> Callable[[Any], Any]:
    ordering = not {"indices", "inverse_indices"}.isdisjoint(fields)

    def unique(x: Any) -> Any:
        if x.dtype.kind not in "biuf" or not x.size:
            return NotImplemented
        cupy, flat = _optional.cupy(), straight(x).reshape(-1)
        order: Any = None
        if ordering:
            ordered, order = _ordered(flat)
        else:
            ordered = quick(sort, cupy.sort)(flat)
        if not fields:
            return _marked(ordered, True, "VALUE")[0]
        what = "NUMBER" if ordering else "PLACE"
        first, inverse = _marked(ordered, True, what, order)
        makers = {
            "indices": lambda: order[first],
            "inverse_indices": lambda: inverse.reshape(x.shape),
            "counts": lambda: cupy.diff(first, append=x.size),
        }
        values = ordered[first]
        return named_result(name)(values, *(makers[field]() for field in fields))

    return unique


def searchsorted(x1: Any, x2: Any, *, side: Any = "left", sorter: Any = None) -> Any:
    """Return where elements belong."""
    arrays = type(x2) is type(x1) and sorter is None
    if not arrays or side not in SIDES:
        return NotImplemented
    return launched(_searched, (x1, x2), side)


def _searched(arrays: Arrays, side: str) -> Move | None:
    """Plan :func:`searchsorted`."""
    x, values = arrays
    plain = x.dtype == values.dtype and x.dtype.kind in "biuf" and x.ndim == 1
    if not plain or not 0 < x.size < FAR or not values.size:
        return None
    entry = f"xdev::search<{cpp_name(x.dtype)},{SIDES[side]}>"
    program = Program(entry, THREADS, SOUGHT, slots=3)
    blocks = -(-values.size // (THREADS * SOUGHT))
    begin = run_of(program, blocks, 3, x.size, values.size)
    return begin, INDEX, values.shape


#: By the standard's names; NotImplemented of one of them leaves the call to CuPy.
SEARCHES: dict[str, Function] = {
    "argsort": argsort,
    "nonzero": nonzero,
    "searchsorted": searchsorted,
    "sort": sort,
    **{name: _unique(name, fields) for name, fields in UNIQUE.items()},
}
