"""CUDA arrays of one value, of numbers at equal distances, with a diagonal; grids.

Each is one launch, planned once for a shape, with NumPy's bits; the rest is CuPy's.
"""

from __future__ import annotations

from math import ceil, inf, isfinite, prod
from typing import Any

import numpy as np

from xdev import _optional
from xdev.compile.cubins import cpp_name
from xdev.compile.launch import Value
from xdev.facade.backends import FLOAT32, FLOAT64, as_shape, ends_of
from xdev.facade.cuda_copies import (
    FAR,
    LARGE,
    WORDS,
    Move,
    Operands,
    Program,
    launched,
    move,
)

REAL, INT32, INT64 = {int, float}, np.dtype(np.int32), np.dtype(np.int64)
TOP = {x: float(np.finfo(x).max) for x in "fdFD"}
#: Of data types, what launches convert to them as NumPy: types of Python's numbers,
#: and bounds, beyond which NumPy refuses or warns.
SPANS: dict[Any, tuple[set[type], float, float]] = {
    **{x: ({int}, *ends_of(x)) for x in map(np.dtype, "bhilBHIL")},
    **{np.dtype(x): (REAL, -top, top) for x, top in TOP.items()},
}
NONE = set[type](), inf, -inf
ROUNDED = {np.dtype(np.float16), FLOAT32, FLOAT64}  # to which float64 is rounded


def full(shape: Any, value: Any, dtype: np.dtype[Any], device: int) -> Any:
    """Return a small array of one value, or NotImplemented."""
    types, least, most = SPANS.get(dtype, NONE)
    whole = type(shape) is int or (type(shape) is tuple and type(prod(shape)) is int)
    if not whole or type(value) not in types or not least <= value <= most:
        return NotImplemented
    return launched(_stripe, (value,), ("stripe", shape, dtype, 0, FAR, 1, device))


def eye(rows: int, columns: int, k: int, dtype: np.dtype[Any], device: int) -> Any:
    """Return a matrix with ones on a diagonal that it has, or NotImplemented."""
    if dtype not in SPANS or not -rows < k < columns:
        return NotImplemented
    places = k if k >= 0 else -k * columns, (columns - k) * columns, columns + 1
    return launched(_stripe, (1,), ("stripe", (rows, columns), dtype, *places, device))


def _stripe(
    _: Operands, shape: Any, dtype: np.dtype[Any], first: int, last: int, *rest: int
) -> Move | None:
    """Plan a value at every so many places of a range."""
    shape, pitch = as_shape(shape), rest[0]
    count = prod(shape)
    most = LARGE // dtype.itemsize if pitch == 1 else FAR
    if min(shape, default=0) < 0 or not 0 < count < most:
        return None
    numbers = (
        Value.number(0, np.dtype(dtype.char.lower()) if dtype.kind == "c" else dtype),
    )
    program = Program(f"xdev::stripe<{cpp_name(dtype)}>", slots=2, numbers=numbers)
    return move(program, dtype, shape, first, last, pitch)


def arange(start: Any, stop: Any, step: Any, dtype: Any, device: int) -> Any:
    """Return numbers of a range: as NumPy, by the distance of the first two."""
    types = {type(start), type(stop), type(step)}
    kind = dtype or (FLOAT64 if float in types else INT64)
    served, least, most = SPANS.get(kind, NONE)
    if types <= served and kind.itemsize >= INT32.itemsize and kind.kind in "if":
        size, after = ceil((stop - start) / step), start + step
        if 0 < size < FAR and least <= start <= most and least <= after <= most:
            key = (
                "ramp",
                size,
                kind,
                kind if kind.kind == "f" else INT64,
                1,
                size,
                device,
            )
            return launched(_ramp, (start, after, after), key)
    return _optional.cupy().arange(start, stop, step, dtype)


def linspace(
    start: Any, stop: Any, num: Any, dtype: Any, endpoint: bool, device: int
) -> Any:
    """Return evenly spaced numbers."""
    kind = dtype or FLOAT64
    real = type(start) in REAL and type(stop) in REAL and kind in ROUNDED
    if real and type(num) is int and 0 < num < FAR:
        first, last = float(start), float(stop)
        width, parts = last - first, num - 1 if endpoint else num
        step = width / parts if parts else width
        if isfinite(step) and (step or not width):
            place = num - 1 if endpoint and parts else num
            key = "ramp", num, kind, None, place, num, device
            return launched(_ramp, (first, step, last), key)
    return _optional.cupy().linspace(start, stop, num, endpoint, False, dtype)


def frequencies(n: int, turn: int, unit: Any, dtype: np.dtype[Any], device: int) -> Any:
    """Return multiples of a unit, from a place on negative ones; or NotImplemented."""
    if dtype not in ROUNDED or not isinstance(unit, float | np.floating) or n >= FAR:
        return NotImplemented
    numbers = -0.0, float(unit), 0.0  # any number is itself plus -0.0
    return launched(_ramp, numbers, ("ramp", n, dtype, None, n, turn, device))


def _ramp(
    _: Operands, size: int, dtype: np.dtype[Any], filled: Any, *places: int
) -> Move:
    """Plan numbers at equal distances; ``filled``: what a range is computed in."""
    computed = filled or FLOAT64
    types = cpp_name(dtype), cpp_name(computed), str(filled is not None).lower()
    numbers = (Value.number(0, computed),) * 3
    program = Program(f"xdev::ramp<{','.join(types)}>", slots=4, numbers=numbers)
    return move(program, dtype, (size,), *places[:2])


def meshgrid(*arrays: Any, indexing: str = "xy") -> Any:
    """Spread coordinates over a grid; each is an array of its own."""
    swapped = indexing == "xy" and len(arrays) > 1
    sizes = [x.size for x in arrays]
    axes = [1, 0, *range(2, len(arrays))] if swapped else range(len(arrays))
    shape = tuple(sizes[axis] for axis in axes)
    if indexing not in ("xy", "ij") or any(x.ndim != 1 for x in arrays):
        return NotImplemented
    pairs = zip(arrays, axes, strict=True)
    made = [launched(_spread, (x,), ("spread", shape, axis)) for x, axis in pairs]
    return NotImplemented if any(x is NotImplemented for x in made) else made


def _spread(arrays: Operands, shape: tuple[int, ...], axis: int) -> Move | None:
    """Plan one array of :func:`meshgrid`."""
    (x,) = arrays
    count, word = prod(shape), WORDS.get(x.itemsize)
    if word is None or not 0 < count < FAR:
        return None
    program = Program(f"xdev::spread<{word}>", slots=2)
    return move(program, x.dtype, shape, prod(shape[axis + 1 :]), shape[axis])
