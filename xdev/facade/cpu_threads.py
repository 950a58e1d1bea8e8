"""NumPy's functions on large arrays, in several threads: each computes parts.

The first argument of each is the function that serves smaller arrays; it computes what
is not worth threads. A fold of all elements is made of folds of a fixed size, whatever
the number of threads: the bits of a sum depend on its values alone.
"""

from __future__ import annotations

import math
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from xdev import _config, _optional
from xdev.compile import threads
from xdev.compile.threads import CostModel
from xdev.facade import elementwise
from xdev.facade.cpu import folded_count, variance
from xdev.facade.dispatch import TRANSFORMS
from xdev.memory.arrays import host_array
from xdev.ufunc import layout
from xdev.ufunc.cpu import Errors, cost_model, share

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.facade.backends import Axes, Function


PART = 1 << 18  # elements of a part of a fold: a call takes much less time than they do
BLOCK = 1 << 15  # elements of a temporary that stays in a processor's cache
NUMBERS = "biufc"  # kinds of data types
ZEROS = np.full(2, -0.0)  # their fold is what NumPy begins a sum with
_costs: dict[tuple[Any, ...], CostModel] = {}


def _quicker(
    key: Any, size: int, alone: Function, shared: Function, loop: Function | None = None
) -> Any:
    """Compute in one thread, or by ``shared(grain)`` in several; note the time.

    Calls of one ``key`` take the same time for an element. ``loop``, if there is one,
    serves in the place of ``shared`` and needs no interpreter's lock.
    """
    if loop:
        key, shared = (*key, "loop"), loop
    model = CostModel if loop else cost_model
    cost = _costs.get(key) or _costs.setdefault(key, model())
    start = perf_counter()
    if cost.is_worth_threads(size):
        result = shared(cost.grain)
        cost.add_parallel(perf_counter() - start, size)
    else:
        result = alone()
        cost.add_serial(perf_counter() - start, size)
    return result


def _corner(x: Any) -> Any:
    """Return two elements along each axis."""
    return x[(slice(2),) * x.ndim]


def _laid_out(example: Any, shape: Sequence[int], dtype: Any = None) -> Any:
    """Return a new array whose axes lie in the order that an example's do."""
    steps = [*map(abs, example.strides)]
    places = sorted(range(example.ndim), key=steps.__getitem__, reverse=True)
    return layout.ordered(places, shape, dtype or example.dtype)


# -- folds ----------------------------------------------------------------------------


def _by_loop(
    loop: int, ufunc: Any, errors: Errors, x: Any, out: Any
) -> Callable[[int], None]:
    """Return what folds the rows of a matrix by an inner loop.

    Threads that only call it need no interpreter's lock, for which sixteen wait longer
    than a part of a fold takes. The results have the bits of ``ufunc.reduce``.
    """
    places = out.ctypes.data, x.ctypes.data, out.ctypes.data
    steps = (out.itemsize, x.strides[0], out.itemsize), (0, x.itemsize, 0)

    def fold(grain: int) -> None:
        nothing = ufunc.identity is None
        out[...] = x[:, 0] if nothing else ufunc.reduce(ZEROS.astype(x.dtype))
        line = x.shape[1] * max(1, grain // x.shape[1])
        errors.add(threads.elements(loop, x.shape, places, steps, x.size, grain=line))

    return fold


def _folded(
    ufunc: Any, errors: Errors, x: Any, axis: Axes, keepdims: bool, dtype: Any = None
) -> Any:
    """Fold along axes, all elements part by part; None: NumPy must do or refuse it."""
    try:
        axes = normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
    except (TypeError, ValueError):
        return None
    if isinstance(axis, list) or not axes:
        return None
    dtype = ufunc.reduce(np.zeros(1, x.dtype), None, dtype).dtype
    if len(axes) < x.ndim:
        return _along(ufunc, errors, x, axes, dtype, keepdims)
    if not (x.flags.c_contiguous or x.flags.f_contiguous) or dtype.char == "e":
        return None
    parts, rest = np.split(x.ravel("K"), [x.size - x.size % PART])
    folds = _along(ufunc, errors, parts.reshape(-1, PART), (1,), dtype, False)
    with errors.noted():
        if rest.size:
            folds = np.append(folds, ufunc.reduce(rest, None, dtype))
        result = ufunc.reduce(folds, None, dtype)
    return result.reshape((1,) * x.ndim) if keepdims else result


def _along(
    ufunc: Any, errors: Errors, x: Any, axes: Any, dtype: Any, keepdims: bool
) -> Any:
    """Fold along some axes: threads share what is left."""
    lost = () if keepdims else axes
    kept = [(1 if k in axes else n) for k, n in enumerate(x.shape)]
    with np.errstate(all="ignore"):
        example = ufunc.reduce(_corner(x), axes, keepdims=keepdims)
    shape = [n for k, n in enumerate(kept) if k not in lost]
    result = _laid_out(example, shape, dtype)
    whole = np.expand_dims(result, lost)

    @errors.noted()
    def along(x: Any, out: Any) -> None:
        ufunc.reduce(x, axes, dtype, out, True)

    def alone() -> None:
        along(x, whole)

    def shared(grain: int) -> None:
        share(along, [x, whole], max(1, grain * whole.size // x.size), axes)

    native = None
    rows = x.ndim == 2 and axes == (1,) and x.flags.c_contiguous and x.flags.aligned  # noqa: PLR2004
    if rows and x.dtype == dtype and (loop := threads.loop_of(ufunc, dtype)):
        native = _by_loop(loop, ufunc, errors, x, whole.reshape(-1))
    _quicker((ufunc, x.dtype, dtype, axes), x.size, alone, shared, native)
    return result


def reduction(ufunc: Any) -> Function:
    """Return what folds by a ufunc."""

    def function(plain: Function, x: Any, **options: Any) -> Any:
        result, errors = None, Errors()
        if x.dtype.kind in NUMBERS:  # threads share no objects
            result = _folded(ufunc, errors, x, **options)
        if result is None:
            return plain(x, **options)
        errors.tell("reduce")
        return result

    return function


_add: Any = np.add.reduce
_sum = reduction(np.add)


def mean(plain: Function, x: Any, **options: Any) -> Any:
    """Average floats; NumPy those that it computes in another type."""
    count = folded_count(x, options["axis"])
    return _sum(_add, x, **options) / count if count else plain(x, **options)


def _sum_of_squares(x: Any, center: float) -> Any:
    """Sum squared distances part by part: a temporary is as large as a part."""
    errors, folds = Errors(), np.empty(-(-x.size // PART), x.dtype)

    @errors.noted()
    def work(start: int, stop: int) -> None:
        room: Any = host_array((min(PART, x.size),), x.dtype)
        for k in range(start, stop):
            part = x[k * PART : (k + 1) * PART]
            distances = np.subtract(part, center, out=room[: part.size])
            distances *= distances
            folds[k] = _add(distances)

    def alone() -> None:
        work(0, len(folds))

    def shared(_: int) -> None:
        threads.run(work, len(folds))

    _quicker(("var", x.dtype), x.size, alone, shared)
    with errors.noted():
        total = _add(folds)
    errors.tell("reduce")
    return total


def var(
    plain: Function, x: Any, *, axis: Axes, correction: float, keepdims: bool
) -> Any:
    """Return the variance of floats, in passes that threads share; NumPy others'."""
    count = folded_count(x, axis)
    if not count or count <= correction:
        return plain(x, axis=axis, correction=correction, keepdims=keepdims)
    means = _sum(_add, x, axis=axis, keepdims=True) / count
    if means.size == 1 and x.flags.forc:
        means[...] = _sum_of_squares(x.ravel("K"), means.item())
        total = means if keepdims else means.squeeze(axis)[()]
        return total / (count - correction)
    squares = elementwise.subtract(x, means)
    elementwise.multiply(squares, squares, out=squares)
    return _sum(_add, squares, axis=axis, keepdims=keepdims) / (count - correction)


def std(plain: Function, x: Any, **options: Any) -> Any:  # noqa: ARG001
    """Return the root of the variance."""
    return np.sqrt(var(variance, x, **options))


# -- what copies ----------------------------------------------------------------------


def _spread(
    key: tuple[Any, ...],
    part: Callable[..., object],
    arrays: Sequence[Any],
    plain: Function,
    whole: Sequence[int] = (),
) -> Any:
    """Compute a new array by ``part``s, laid out as ``plain`` lays out a corner."""
    shape = arrays[0].shape

    def shared(grain: int) -> Any:
        with np.errstate(all="ignore"):
            example = plain(*map(_corner, arrays))
        out = _laid_out(example, shape)
        share(part, [*arrays, out], grain, whole)
        return out

    return _quicker(key, math.prod(shape), lambda: plain(*arrays), shared)


def astype(plain: Function, x: Any, dtype: Any) -> Any:
    """Return a copy in another data type, laid out as the array."""
    if x.dtype.kind == "c" and dtype.kind != "c":
        return plain(x, dtype)  # which warns of imaginary parts, once
    errors = Errors()

    @errors.noted()
    def part(x: Any, out: Any) -> None:
        np.copyto(out, x, "unsafe")

    key = "astype", x.dtype, dtype
    result = _spread(key, part, [x], lambda x: plain(x, dtype))
    errors.tell("cast")
    return result


def where(plain: Function, condition: Any, x1: Any, x2: Any) -> Any:
    """Choose, in blocks of the parts: NumPy's function makes a new array each time."""
    dtype, x = np.result_type(x1, x2), (condition, x1, x2)
    try:
        shape = np.broadcast_shapes(*map(np.shape, x))
        numbers = [y if isinstance(y, np.ndarray) else dtype.type(y) for y in x]
    except (ValueError, OverflowError, TypeError, RuntimeError):
        return plain(condition, x1, x2)  # refused, or of more than 32 dimensions

    def part(condition: Any, x1: Any, x2: Any, out: Any) -> None:
        rows = max(1, BLOCK * len(out) // out.size)
        for start in range(0, len(out), rows):
            at = slice(start, start + rows)
            out[at] = np.where(condition[at], x1[at], x2[at])

    arrays = [np.broadcast_to(y, shape) for y in numbers]
    return _spread(("where", dtype), part, arrays, np.where)


def concat(plain: Function, arrays: Sequence[Any], *, axis: Any) -> Any:
    """Join arrays, each copied by several threads."""
    first = arrays[0]
    size = sum(x.size for x in arrays)
    if type(axis) is not int or not -first.ndim <= axis < first.ndim:
        return plain(arrays, axis=axis)
    axis %= first.ndim
    rest = {(*x.shape[:axis], *x.shape[axis + 1 :]) for x in arrays}
    if len(rest) > 1 or {x.ndim for x in arrays} != {first.ndim}:
        return plain(arrays, axis=axis)  # NumPy refuses them

    def shared(grain: int) -> Any:
        shape = list(first.shape)
        shape[axis] = sum(x.shape[axis] for x in arrays)
        out = _laid_out(plain([*map(_corner, arrays)], axis=axis), shape)
        start = 0
        for x in arrays:
            at = slice(start, start + x.shape[axis])
            part = out[(*(slice(None),) * axis, at)]
            start = at.stop
            if x.size:
                share(lambda x, part: np.copyto(part, x), [x, part], grain)
        return out

    key = ("concat", *{x.dtype for x in arrays})
    return _quicker(key, size, lambda: plain(arrays, axis=axis), shared)


def take(plain: Function, x: Any, indices: Any, *, axis: int | None = None) -> Any:
    """Take at indices along the first axis: threads share these."""
    first = axis == 0 or (x.ndim == 1 and axis in {None, -1})
    right = first and x.ndim > 0 and indices.ndim == 1 and x.size and indices.size
    if not (right and np.can_cast(indices.dtype, np.intp)):
        return plain(x, indices, axis=axis)
    count, row = indices.size, x.size // len(x)
    rows = max(1, BLOCK // row)

    def shared(grain: int) -> Any:
        out: Any = host_array((count, *x.shape[1:]), x.dtype)

        def work(start: int, stop: int) -> None:
            for at in range(start, stop, rows):
                part = slice(at, min(at + rows, stop))
                out[part] = x.take(indices[part], 0)

        threads.run(work, count, grain=max(1, grain // row))
        return out

    key = "take", x.dtype
    return _quicker(key, count * row, lambda: plain(x, indices, axis=axis), shared)


# -- along axes -----------------------------------------------------------------------


def sorting(name: str) -> Function:
    """Return what sorts along an axis: threads share the lines."""

    def function(plain: Function, x: Any, *, axis: Any, **options: Any) -> Any:
        lines = x.ndim > 1 and type(axis) is int and -x.ndim <= axis < x.ndim
        if not lines:
            return plain(x, axis=axis, **options)

        def alone(x: Any) -> Any:
            return plain(x, axis=axis, **options)

        def part(x: Any, out: Any) -> None:
            out[...] = alone(x)

        key = name, x.dtype, axis % x.ndim == x.ndim - 1
        return _spread(key, part, [x], alone, [axis % x.ndim])

    return function


def transform(name: str) -> Function:
    """Return a Fourier transform by SciPy, which has threads, where it is installed."""

    def function(plain: Function, x: Any, **options: Any) -> Any:
        n, axes = options.get("n"), options.get("axes")
        # SciPy takes more, in its own way.
        same = n is None or (type(n) is int and n > 0)
        same = same and type(axes) is not int and options.get("s") is None
        if same and x.dtype.char in "fdFD" and _optional.installed("scipy"):
            own = getattr(_optional.scipy_fft(), name)
            with suppress(TypeError, ValueError, IndexError):  # NumPy says it better
                return own(x, workers=_config.num_threads(), **options)
        return plain(x, **options)

    return function


FUNCTIONS: dict[str, Function] = {
    "sum": _sum,
    "max": reduction(np.maximum),
    "min": reduction(np.minimum),
    "mean": mean,
    "var": var,
    "std": std,
    "astype": astype,
    "where": where,
    "concat": concat,
    "take": take,
    "sort": sorting("sort"),
    "argsort": sorting("argsort"),
    **{name: transform(name.removeprefix("fft.")) for name in TRANSFORMS},
}
