"""Functions that move elements of large CUDA arrays, by the engine's copying kernels.

CuPy's kernels move one element a thread: half of what the memory can do. Small arrays
stay CuPy's, which launches once where these launch once for each part.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional
from xdev.facade import elementwise
from xdev.memory.arrays import array_maker
from xdev.ufunc.cuda_methods import ALONE
from xdev.ufunc.expressions import selection

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.facade.backends import DType

    Shape = tuple[int, ...]

#: One of two values by a truth value.
CHOOSE = selection("where", "condition", "x1", "x2")
#: A value where two numbers are in order, else 0.
IN_ORDER = selection("in_order", "low", "high", "x")
LARGE = 2**20  # bytes of a result
HUGE = 2**24  # bytes from which on a call that makes no plan is worth it


def assign(out: Any, x: Any, casting: str = "same_kind") -> Any:
    """Copy elements, or a number of NumPy's, into an array, and return it.

    A truth value becomes a truth value alone.
    """
    function: Any = elementwise.positive
    operands: tuple[Any, ...] = (x,)
    if out.dtype == np.bool_:
        function, operands = elementwise.logical_and, (x, np.True_)
    made = function.launches(*operands, out)
    if made is NotImplemented:
        function._cuda(operands, out, casting=casting)  # noqa: SLF001 - of the engine
    return out


def new(shape: Shape, dtype: Any) -> Any:
    """Return a new CuPy array, not filled."""
    return array_maker()(shape, dtype)


def astype(x: Any, dtype: Any, copy: bool = True) -> Any:
    """Cast real numbers, or copy."""
    dtype = np.dtype(dtype)
    same = dtype == x.dtype
    if (same and not copy) or not x.size or not x._c_contiguous:  # noqa: SLF001
        return NotImplemented
    moved = same or dtype == np.bool_ or x.dtype.kind not in "bc"
    planned = np.can_cast(x.dtype, dtype, "same_kind")
    if not moved or (x.size * dtype.itemsize < HUGE and not planned):
        return NotImplemented
    return assign(new(x.shape, dtype), x, "same_kind" if planned else "unsafe")


def concat(arrays: Sequence[Any], *, axis: int | None = 0) -> Any:
    """Join arrays along an axis that they have."""
    if not isinstance(arrays, list | tuple):
        return NotImplemented
    if axis is not None and not all(x.ndim for x in arrays):
        raise ValueError(
            "xdev.concat: zero-dimensional arrays have no axis to be joined along: "
            "xdev.stack makes one"
        )
    if sum(x.nbytes for x in arrays) < LARGE:
        return NotImplemented
    if axis is None:
        arrays, axis = [x.reshape(-1) for x in arrays], 0
    dtype = np.result_type(*(x.dtype for x in arrays))
    ndim, shape = arrays[0].ndim, arrays[0].shape
    if not -ndim <= axis < ndim:
        return NotImplemented
    axis %= ndim
    around = {(x.ndim, *x.shape[:axis], *x.shape[axis + 1 :]) for x in arrays}
    if len(around) > 1:
        return NotImplemented
    whole = (*shape[:axis], sum(x.shape[axis] for x in arrays), *shape[axis + 1 :])
    if dtype != np.bool_ and any(x.dtype == np.bool_ for x in arrays):
        return NotImplemented
    out, stop = new(whole, dtype), 0
    for x in arrays:
        start, stop = stop, stop + x.shape[axis]
        assign(out[(slice(None),) * axis + (slice(start, stop),)], x)
    return out


def stack(arrays: Sequence[Any], *, axis: int = 0) -> Any:
    """Join arrays along an axis that is new."""
    if not isinstance(arrays, list | tuple) or sum(x.nbytes for x in arrays) < LARGE:
        return NotImplemented
    ndim = arrays[0].ndim + 1
    if not -ndim <= axis < ndim or len({x.shape for x in arrays}) > 1:
        return NotImplemented
    place = (*(slice(None),) * (axis % ndim), None)
    return concat([x[place] for x in arrays], axis=axis % ndim)


def tile(x: Any, repetitions: Shape) -> Any:
    """Repeat an array along its axes."""
    if type(repetitions) is not tuple or x.nbytes * prod(repetitions) < LARGE:
        return NotImplemented
    ndim = max(x.ndim, len(repetitions))
    sizes = (*(1,) * (ndim - x.ndim), *x.shape)
    times = (*(1,) * (ndim - len(repetitions)), *repetitions)
    return _repeated(x, sizes, times, lambda n, k: (k, n), lambda n: (1, n))


def repeat(x: Any, repeats: Any, *, axis: int | None) -> Any:
    """Repeat elements, all as often."""
    if type(repeats) is not int or not x.size:
        return NotImplemented
    if axis is None:
        x, axis = x.reshape(-1), 0
    if not -x.ndim <= axis < x.ndim:
        return NotImplemented
    times = [1] * x.ndim
    times[axis] = repeats
    return _repeated(x, x.shape, times, lambda n, k: (n, k), lambda n: (n, 1))


def _repeated(
    x: Any,
    sizes: Sequence[int],
    times: Sequence[int],
    parted: Callable[[int, int], Shape],
    spread: Callable[[int], Shape],
) -> Any:
    """Copy into a result whose axes are parted into what is x's and what repeats it."""
    shape = tuple(n * k for n, k in zip(sizes, times, strict=True))
    if min(times) < 0:
        return NotImplemented
    out = new(shape, x.dtype)
    parts = (parted(n, k) for n, k in zip(sizes, times, strict=True))
    every = (spread(n) for n in sizes)
    assign(out.reshape(sum(parts, ())), x.reshape(sum(every, ())))
    return out


def roll(x: Any, shift: Any, *, axis: Any = None) -> Any:
    """Shift elements along one axis; those that leave come back at the other end."""
    if type(shift) is not int or x.nbytes < LARGE:
        return NotImplemented
    if axis is None:
        return roll(x.reshape(-1), shift, axis=0).reshape(x.shape)
    if type(axis) is not int or not -x.ndim <= axis < x.ndim:
        return NotImplemented
    before, shift = (slice(None),) * (axis % x.ndim), shift % x.shape[axis]
    out = new(x.shape, x.dtype)
    assign(out[(*before, slice(shift, None))], x[(*before, slice(-shift or None))])
    if shift:
        assign(out[(*before, slice(shift))], x[(*before, slice(-shift, None))])
    return out


def tril(x: Any, *, k: int = 0) -> Any:
    """Keep what is on a diagonal and below."""
    return _triangle(x, lambda rows, columns: (columns, rows + k))


def triu(x: Any, *, k: int = 0) -> Any:
    """Keep what is on a diagonal and above."""
    return _triangle(x, lambda rows, columns: (rows + k, columns))


def _triangle(x: Any, arranged: Callable[[Any, Any], tuple[Any, Any]]) -> Any:
    if x.ndim < 2 or x.nbytes < LARGE:  # noqa: PLR2004 - a matrix
        return NotImplemented
    rows, columns = (_optional.cupy().arange(n, dtype="l") for n in x.shape[-2:])
    return IN_ORDER(*arranged(rows[:, None], columns), x)


def meshgrid(*arrays: Any, indexing: str = "xy") -> Any:
    """Spread coordinates over a grid."""
    shape = tuple(x.size for x in arrays)
    if prod(shape) * arrays[0].dtype.itemsize < LARGE:
        return NotImplemented
    views = _optional.cupy().meshgrid(*arrays, indexing=indexing, copy=False)
    return [assign(new(x.shape, x.dtype), x) for x in views]


def diff(x: Any, *, axis: int = -1, n: int = 1, **ends: Any) -> Any:
    """Subtract neighbours along an axis."""
    plain = n == 1 and not ends and x.dtype != np.bool_
    if not plain or not -x.ndim <= axis < x.ndim or not x.size:
        return NotImplemented
    before = (slice(None),) * (axis % x.ndim)
    later, earlier = (*before, slice(1, None)), (*before, slice(-1))
    return elementwise.subtract(x[later], x[earlier])


def cumulative_sum(x: Any, **options: Any) -> Any:
    """Add up along an axis."""
    return _accumulated(elementwise.add, 0, x, **options)


def cumulative_prod(x: Any, **options: Any) -> Any:
    """Multiply along an axis."""
    return _accumulated(elementwise.multiply, 1, x, **options)


def _accumulated(
    function: Any,
    first: int,
    x: Any,
    *,
    axis: int | None,
    dtype: DType | None,
    include_initial: bool,
) -> Any:
    axis = 0 if axis is None and x.ndim == 1 else axis
    if axis is None or not -x.ndim <= axis < x.ndim or not x.size:
        return NotImplemented
    alone = x.shape[axis] * x.itemsize <= ALONE and not include_initial
    if x.nbytes < LARGE and not alone:  # two launches, and no plan
        return NotImplemented
    if not include_initial:
        return function.accumulate(x, axis, dtype)
    axis %= x.ndim
    shape = [n + (i == axis) for i, n in enumerate(x.shape)]
    kind = function.definition.folding(x.dtype, None, dtype).outputs[0]
    out, before = new(tuple(shape), kind), (slice(None),) * axis
    assign(out[(*before, slice(1))], kind.type(first))
    function.accumulate(x, axis, dtype, out[(*before, slice(1, None))])
    return out


#: By the standard's names; NotImplemented of one of them leaves the call to CuPy.
COPIES: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        *(astype, concat, cumulative_prod, cumulative_sum, diff, meshgrid, repeat),
        *(roll, stack, tile, tril, triu),
    )
}


def quick(function: Callable[..., Any], own: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of large arrays; ``own`` is CuPy's, for all others."""

    def serve(*args: Any, **options: Any) -> Any:
        made = function(*args, **options)
        return own(*args, **options) if made is NotImplemented else made

    return serve
