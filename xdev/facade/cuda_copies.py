"""Functions that move elements of CUDA arrays: joined, repeated, cut, taken.

By one launch, or by the engine's copies: CuPy's kernels move one element a thread, half
of what the memory can do.
"""

from __future__ import annotations

from functools import partial
from itertools import accumulate
from math import gcd, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional
from xdev.compile.cubins import cpp_name
from xdev.facade import elementwise
from xdev.facade.cuda_launches import (
    FAR,
    LARGE,
    THREADS,
    WORD,
    WORDS,
    Move,
    Operands,
    Program,
    Shape,
    assign,
    blocks_of,
    launched,
    move,
    new,
    run_of,
    straight,
)
from xdev.memory.arrays import array_maker
from xdev.ufunc.cuda_methods import ALONE
from xdev.ufunc.cuda_operands import Array
from xdev.ufunc.expressions import selection
from xdev.ufunc.layout import SHORT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.facade.backends import DType, Function

#: One of two values by a truth value.
CHOOSE = selection("where", "condition", "x1", "x2")
#: Elements within bounds of their data type, or numbers.
LIMIT = selection("clip", "x", "min", "max")
PARTS = 15  # that one launch joins
FLAT = 64  # times as many of one line, which CuPy scans well
HUGE = 2**24  # bytes from which on a call that makes no plan is worth it


def astype(x: Any, dtype: Any, copy: bool = True) -> Any:
    """Cast real numbers, or copy."""
    dtype = np.dtype(dtype)
    same, truth = dtype == x.dtype, dtype == np.bool_
    if (same and not copy) or not x.size or not x._c_contiguous:  # noqa: SLF001
        return NotImplemented
    left = x.dtype.kind in "bc" if not truth else x.size < HUGE
    if left and not same:
        return NotImplemented
    if truth:
        return assign(new(x.shape, dtype), x, "unsafe")
    return launched(_cast, (x,), ("astype", dtype))


def _cast(arrays: Operands, dtype: np.dtype[Any]) -> Move:
    """Plan :func:`astype`, as the engine plans a copy."""
    x, out = arrays[0], new(arrays[0].shape, dtype)
    copies: Any = elementwise.positive
    operands = [Array.of(x)], [Array.of(out)]
    plan = copies._cuda._plan(*operands, True, "unsafe", None, "K")  # noqa: SLF001 - of the engine
    return plan.run, dtype, x.shape


def reshape(x: Any, shape: Any, *, copy: bool | None = None) -> Any:
    """Return elements in another shape: a view, or a copy in C's order."""
    if copy is not None:
        return x.reshape(shape, copy=copy)
    if x._c_contiguous or x.nbytes < LARGE:  # noqa: SLF001
        return x.reshape(shape)
    try:
        return x.reshape(shape, copy=False)
    except ValueError:  # there is no such view, or no such shape
        return straight(x).reshape(shape)


def concat(arrays: Sequence[Any], *, axis: int | None = 0) -> Any:
    """Join arrays along an axis that they have."""
    if not isinstance(arrays, list | tuple) or not arrays or not _is_axis(axis):
        return NotImplemented
    out = launched(_end_to_end, tuple(arrays), ("concat", axis))
    if out is not NotImplemented or sum(x.nbytes for x in arrays) < LARGE:
        return out
    if axis is None:
        arrays, axis = [straight(x).reshape(-1) for x in arrays], 0
    layout = _lengths(arrays, axis)
    dtype = np.result_type(*{x.dtype for x in arrays})
    mixed = dtype != np.bool_ and any(x.dtype == np.bool_ for x in arrays)
    if layout is None or mixed:
        return NotImplemented
    before, lengths, behind = layout
    out, stop = new((*before, sum(lengths), *behind), dtype), 0
    for x, length in zip(arrays, lengths, strict=True):
        start, stop = stop, stop + length
        assign(out[(*(slice(None),) * len(before), slice(start, stop))], x)
    return out


def stack(arrays: Sequence[Any], *, axis: int = 0) -> Any:
    """Join arrays along an axis that is new."""
    if not isinstance(arrays, list | tuple) or not arrays or type(axis) is not int:
        return NotImplemented
    out = launched(_as_rows, tuple(arrays), ("stack", axis))
    if out is NotImplemented:
        shape, ndim = arrays[0].shape, arrays[0].ndim + 1
        if -ndim <= axis < ndim and all(x.shape == shape for x in arrays):
            axis %= ndim
            one = (*shape[:axis], 1, *shape[axis:])
            return concat([x.reshape(one) for x in arrays], axis=axis)
    return out


def _is_axis(axis: Any) -> bool:
    return axis is None or type(axis) is int


def _lengths(arrays: Sequence[Any], axis: int) -> tuple[Shape, list[int], Shape] | None:
    """Return sizes before an axis, along it of each array, and behind it.

    None: the arrays do not fit, or there is no such axis.
    """
    first, ndim = arrays[0].shape, arrays[0].ndim
    around = {(x.ndim, *x.shape[:axis], *x.shape[axis:][1:]) for x in arrays}
    if not -ndim <= axis < ndim or len(around) > 1:
        return None
    axis %= ndim
    return first[:axis], [x.shape[axis] for x in arrays], first[axis + 1 :]


#: Of a part: where along the axis it begins, its length, and that of its array.
Part = tuple[int, int, int]


def _end_to_end(arrays: Operands, axis: int | None) -> Move | None:
    """Plan :func:`concat`."""
    if axis is None:
        layout: Any = (), [x.size for x in arrays], ()
    elif all(x.ndim for x in arrays):
        layout = _lengths(arrays, axis)
    else:
        raise ValueError(
            "xdev.concat: zero-dimensional arrays have no axis to be joined along: "
            "xdev.stack makes one"
        )
    if layout is None:
        return None
    before, lengths, behind = layout
    parts = [(0, length, length) for length in lengths]
    return _joined(arrays, (*before, sum(lengths), *behind), len(before), parts)


def _as_rows(arrays: Operands, axis: int) -> Move | None:
    """Plan :func:`stack`."""
    first, count = arrays[0], len(arrays)
    fits = -first.ndim - 1 <= axis <= first.ndim
    if not fits or any(x.shape != first.shape for x in arrays):
        return None
    axis %= first.ndim + 1
    shape = (*first.shape[:axis], count, *first.shape[axis:])
    return _joined(arrays, shape, axis, [(0, 1, 1)] * count)


def _interleaved(arrays: Operands, axis: int | None) -> Move | None:
    """Plan :func:`repeat`, of an array that is there once for each time."""
    x, count = arrays[0], len(arrays)
    shape = (x.size,) if axis is None else x.shape
    axis = (axis or 0) % len(shape)
    before, length, behind = shape[:axis], shape[axis], shape[axis + 1 :]
    made = (*before, length * count, *behind)
    parted = (*before, length, count, *behind)
    return _joined(arrays, parted, axis + 1, [(0, 1, 1)] * count, made)


def _rotated(arrays: Operands, shift: int, axis: int | None) -> Move | None:
    """Plan :func:`roll`, of an array that is there twice."""
    made = arrays[0].shape
    shape, axis = ((prod(made),), 0) if axis is None else (made, axis % len(made))
    length = shape[axis]
    shift %= length
    parts = [(length - shift, shift, length), (0, length - shift, length)]
    return _joined(arrays, shape, axis, parts, made)


def _joined(
    arrays: Operands,
    shape: Shape,
    axis: int,
    parts: Sequence[Part],
    made: Shape | None = None,
) -> Move | None:
    """Plan one launch that joins parts of contiguous arrays of one data type.

    ``shape`` is of the parts side by side, ``made`` the result's where that is another.
    """
    dtype = arrays[0].dtype
    if any(x.dtype != dtype or not x._c_contiguous for x in arrays):  # noqa: SLF001
        return None
    inner = prod(shape[axis + 1 :]) * dtype.itemsize
    extents = (n * inner for part in parts for n in part)
    word = gcd(WORD, *(x.data.ptr for x in arrays), *extents)
    nbytes = prod(shape) * dtype.itemsize
    many, short = nbytes // word >= FAR, nbytes >= LARGE and word < WORD
    if not nbytes or len(parts) > PARTS or many or short:
        return None
    rest = (0,) * (PARTS - len(parts))
    ends = accumulate(length * inner // word for _, length, _ in parts)
    pitches = (whole * inner // word for *_, whole in parts)
    starts = (start * inner // word for start, *_ in parts)
    width, count = shape[axis] * inner // word, nbytes // word
    sizes = *ends, *rest, *pitches, *rest, *starts, *rest, width, count, len(parts)
    program = Program(f"xdev::join<{WORDS[word]}>", slots=1 + PARTS)
    begin = run_of(program, blocks_of(count), len(arrays) + 1, *sizes)
    return begin, dtype, shape if made is None else made


def tile(x: Any, repetitions: Shape) -> Any:
    """Repeat an array along its axes."""
    if type(repetitions) is not tuple or min(repetitions, default=0) < 0:
        return NotImplemented
    times = repetitions[0] if x.ndim == len(repetitions) == 1 else None
    if type(times) is int and 0 < times <= PARTS:
        out = launched(_end_to_end, (x,) * times, ("concat", 0))
        if out is not NotImplemented:
            return out
    if x.nbytes * prod(repetitions) < LARGE:
        return NotImplemented
    ndim = max(x.ndim, len(repetitions))
    sizes = (*(1,) * (ndim - x.ndim), *x.shape)
    counts = (*(1,) * (ndim - len(repetitions)), *repetitions)
    return _repeated(x, sizes, counts, True)


def repeat(x: Any, repeats: Any, *, axis: int | None) -> Any:
    """Repeat elements, all as often."""
    whole = type(repeats) is int and repeats >= 0 and _is_axis(axis)
    if not whole or not x.size or not (axis is None or -x.ndim <= axis < x.ndim):
        return NotImplemented
    if 0 < repeats <= PARTS:
        out = launched(_interleaved, (x,) * repeats, ("repeat", axis))
        if out is not NotImplemented:
            return out
    if axis is None:
        x, axis = straight(x).reshape(-1), 0
    times = [1] * x.ndim
    times[axis] = repeats
    return _repeated(x, x.shape, times, False)


def _repeated(x: Any, sizes: Sequence[int], times: Sequence[int], whole: bool) -> Any:
    """Copy into a result whose axes are parted into what is x's and what repeats it.

    ``whole``: what repeats an axis goes before its elements.
    """
    counts, order = tuple(zip(sizes, times, strict=True)), -1 if whole else 1
    out = new(tuple(n * k for n, k in counts), x.dtype)
    parted = sum(((n, k)[::order] for n, k in counts), ())
    spread = sum(((n, 1)[::order] for n in sizes), ())
    assign(out.reshape(parted), x.reshape(spread))
    return out


def roll(x: Any, shift: Any, *, axis: Any = None) -> Any:
    """Shift elements along one axis; those that leave come back at the other end."""
    if type(shift) is not int or not x.size or not _is_axis(axis):
        return NotImplemented
    if not (axis is None or -x.ndim <= axis < x.ndim):
        return NotImplemented
    out = launched(_rotated, (x, x), ("roll", shift, axis))
    if out is not NotImplemented or x.nbytes < LARGE:
        return out
    if axis is None:
        return roll(straight(x).reshape(-1), shift, axis=0).reshape(x.shape)
    axis %= x.ndim
    shift %= x.shape[axis]
    before, out = (slice(None),) * axis, new(x.shape, x.dtype)
    assign(out[(*before, slice(shift, None))], x[(*before, slice(-shift or None))])
    if shift:
        assign(out[(*before, slice(shift))], x[(*before, slice(-shift, None))])
    return out


def _shifted(x: Any, *, axes: Any, back: bool = False) -> Any:
    """Roll axes by half of their lengths, one after the other."""
    if axes is None:
        axes = range(x.ndim)
    elif type(axes) is int:
        axes = (axes,)
    if not all(type(axis) is int and -x.ndim <= axis < x.ndim for axis in axes):
        return NotImplemented
    out = NotImplemented
    for axis in axes:
        half = x.shape[axis] // 2
        out = x = roll(x, -half if back else half, axis=axis)
        if out is NotImplemented:
            break
    return out


def _triangle(lower: str, arrays: Operands, k: int) -> Move | None:
    """Plan :func:`tril` or :func:`triu`."""
    (x,) = arrays
    word = WORDS.get(x.itemsize)
    if word is None or x.ndim < 2 or not 0 < x.size < FAR:  # noqa: PLR2004 - matrices
        return None
    program = Program(f"xdev::triangle<{word},{lower}>", slots=2)
    rows, columns = x.shape[-2:]
    sizes = rows, columns, max(-rows, min(k, columns))
    return move(program, x.dtype, x.shape, *sizes)


_lower, _upper = partial(_triangle, "true"), partial(_triangle, "false")


def tril(x: Any, *, k: int = 0) -> Any:
    """Keep what is on a diagonal and below it."""
    return launched(_lower, (x,), ("tril", k)) if type(k) is int else NotImplemented


def triu(x: Any, *, k: int = 0) -> Any:
    """Keep what is on a diagonal and above it."""
    return launched(_upper, (x,), ("triu", k)) if type(k) is int else NotImplemented


def meshgrid(*arrays: Any, indexing: str = "xy") -> Any:
    """Spread coordinates over a grid."""
    if not all(x.size for x in arrays):
        return NotImplemented
    views = _optional.cupy().meshgrid(*arrays, indexing=indexing, copy=False)
    return [assign(new(x.shape, x.dtype), x) for x in views]


def diff(x: Any, *, axis: int = -1, n: int = 1, **ends: Any) -> Any:
    """Subtract neighbours along an axis."""
    plain = n == 1 and not ends and x.dtype != np.bool_
    if not plain or not -x.ndim <= axis < x.ndim or not x.size:
        return NotImplemented
    if axis in {0, -x.ndim} and x._c_contiguous:  # noqa: SLF001 - quicker than slices
        shape, make = (len(x) - 1, *x.shape[1:]), array_maker()
        later = make(shape, x.dtype, "C", x.data + x.nbytes // len(x))
        return elementwise.subtract(later, make(shape, x.dtype, "C", x.data))
    before = (slice(None),) * (axis % x.ndim)
    later, earlier = (*before, slice(1, None)), (*before, slice(-1))
    return elementwise.subtract(x[later], x[earlier])


def _cumulative(
    function: Any, x: Any, *, axis: int | None, dtype: DType, include_initial: bool
) -> Any:
    """Fold along an axis, up to each element."""
    axis = 0 if axis is None and x.ndim == 1 else axis
    if axis is None or not -x.ndim <= axis < x.ndim or not x.size or include_initial:
        return NotImplemented
    length, last = x.shape[axis], axis in {-1, x.ndim - 1}
    alone = length < 2 * SHORT or (last and length * x.itemsize <= ALONE)
    least = LARGE if x.ndim > 1 else FLAT * LARGE
    if x.nbytes < least and not alone:
        return NotImplemented  # it takes two launches, and has no plan
    return function.accumulate(x, axis, dtype)


cumulative_sum = partial(_cumulative, elementwise.add)
cumulative_prod = partial(_cumulative, elementwise.multiply)


PRODUCTS = frozenset("fdlq")  # of which CUDA's own types compute as NumPy's do


def _is_index(x: Any) -> bool:
    return type(x) is _optional.cupy().ndarray and x.dtype.char in "ilq"


def take(x: Any, indices: Any, *, axis: int | None) -> Any:
    """Take rows at indices; CuPy's function is as quick where many words are short."""
    along = 0 if axis is None and x.ndim == 1 else axis
    if (
        type(along) is not int
        or not -x.ndim <= along < x.ndim
        or not _is_index(indices)
    ):
        return NotImplemented
    return launched(_taken, (x, indices), ("take", axis))


def _taken(arrays: Operands, axis: int | None) -> Move | None:
    """Plan :func:`take`."""
    (x, indices), axis = arrays, axis or 0
    before, behind = x.shape[: axis % x.ndim], x.shape[axis % x.ndim + 1 :]
    shape = (*before, indices.size, *behind)
    row, nbytes = prod(behind) * x.itemsize, prod(shape) * x.itemsize
    if indices.ndim != 1 or not x.size or not nbytes:
        return None
    word = gcd(WORD, row, x.data.ptr if x._c_contiguous else WORD)  # noqa: SLF001
    count = nbytes // word
    if count >= FAR or (word < WORD and nbytes >= LARGE):
        return None
    index = cpp_name(indices.dtype)
    program = Program(f"xdev::take<{WORDS[word]},{index},false>", slots=3)
    sizes = row // word, x.shape[axis], indices.size, count
    return run_of(program, blocks_of(count), 3, *sizes), x.dtype, shape


def take_along_axis(x: Any, indices: Any, *, axis: int) -> Any:
    """Take elements along an axis, each by an index of its own."""
    if type(axis) is not int or not -x.ndim <= axis < x.ndim or not _is_index(indices):
        return NotImplemented
    return launched(_taken_each, (x, indices), ("take_along_axis", axis))


def _taken_each(arrays: Operands, axis: int) -> Move | None:
    """Plan :func:`take_along_axis`."""
    x, indices = arrays
    axis %= x.ndim
    word, before, behind = WORDS.get(x.itemsize), x.shape[:axis], x.shape[axis + 1 :]
    whole = (*before, *indices.shape[axis : axis + 1], *behind) == indices.shape
    if not whole or word is None or not 0 < indices.size < FAR or not x.size:
        return None
    name = f"xdev::take<{word},{cpp_name(indices.dtype)},true>"
    sizes = prod(behind), x.shape[axis], indices.shape[axis]
    return move(Program(name, slots=3), x.dtype, indices.shape, *sizes)


def cross(x1: Any, x2: Any, *, axis: int) -> Any:
    """Return cross products of vectors that lie one after the other."""
    if axis not in {-1, x1.ndim - 1}:
        return NotImplemented
    return launched(_crossed, (x1, x2), ("cross", axis))


def _crossed(arrays: Operands, _: int) -> Move | None:
    """Plan :func:`cross`."""
    x1, x2 = arrays
    alike = x1.shape == x2.shape and x1.dtype == x2.dtype
    if not alike or x1.shape[-1:] != (3,) or not x1.size:
        return None
    if x1.dtype.char not in PRODUCTS:
        return None
    program = Program(f"xdev::cross<{cpp_name(x1.dtype)}>", THREADS, 1, slots=3)
    n = x1.size // 3
    return run_of(program, -(-n // THREADS), 3, n), x1.dtype, x1.shape


MOVING = (
    astype, concat, diff, meshgrid, repeat, roll, stack, take, take_along_axis, tile,
    tril, triu,
)  # fmt: skip
#: By the standard's names; NotImplemented of one of them leaves the call to CuPy.
COPIES: dict[str, Function] = {
    **{function.__name__: function for function in MOVING},
    "cumulative_prod": cumulative_prod,
    "cumulative_sum": cumulative_sum,
    "fft.fftshift": _shifted,
    "fft.ifftshift": partial(_shifted, back=True),
    "linalg.cross": cross,
}
