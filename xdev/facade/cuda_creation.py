"""CUDA arrays of one value, of numbers at equal distances, of ones on a diagonal.

Each is one launch, planned once for a shape, with the bits that NumPy's have.
"""

from __future__ import annotations

from math import ceil, inf, isfinite, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.compile.cubins import cpp_name
from xdev.compile.launch import Value
from xdev.facade.backends import FLOAT32, FLOAT64, as_shape, ends_of
from xdev.facade.cuda_copies import (
    FAR,
    LARGE,
    NUMBERS,
    Move,
    Operands,
    Program,
    blocks_of,
    launched,
    run_of,
)

if TYPE_CHECKING:
    Span = tuple[set[type], float, float]

REAL = {*NUMBERS}
INT64 = np.dtype(np.int64)
#: Types that numbers computed in float64 are rounded to.
FLOATS = {np.dtype(np.float16), FLOAT32, FLOAT64}
#: Types of Python's numbers that a launch converts as NumPy does, and their bounds:
#: beyond, NumPy refuses or warns.
SPANS: dict[np.dtype[Any], Span] = {
    **{x: ({int}, *ends_of(x)) for x in map(np.dtype, "bhilBHIL")},
    **{
        np.dtype(char): (REAL, -most, most)
        for kind in (FLOAT32, FLOAT64)
        for most in (float(np.finfo(kind).max),)
        for char in (kind.char, kind.char.upper())
    },
}
NONE: Span = set(), inf, -inf
#: Types in which :func:`arange` computes.
STEPS: dict[Any, np.dtype[Any]] = {
    **dict.fromkeys((np.dtype(np.int32), INT64), INT64),
    **{kind: kind for kind in (FLOAT32, FLOAT64)},
}


def _number(dtype: np.dtype[Any]) -> Value:
    """Say how a launch takes a number; of a complex one, the real part."""
    real = np.dtype(dtype.char.lower()) if dtype.kind == "c" else dtype
    return Value.number(0, real)


def full(shape: Any, value: Any, dtype: np.dtype[Any], device: int) -> Any:
    """Return a small array of one value, of whatever device is current.

    NotImplemented: it is large, or of another kind.
    """
    types, least, most = SPANS.get(dtype, NONE)
    if type(value) not in types or not least <= value <= most:
        return NotImplemented
    whole = type(shape) is int or (type(shape) is tuple and type(prod(shape)) is int)
    return launched(_full, (value,), shape, dtype, device) if whole else NotImplemented


def _full(_: Operands, shape: Any, dtype: np.dtype[Any], device: int) -> Move | None:  # noqa: ARG001 - plans are each device's
    """Plan :func:`full`."""
    shape = as_shape(shape)
    count = prod(shape)
    if min(shape, default=0) < 0 or not 0 < count * dtype.itemsize < LARGE:
        return None
    return _stripe(shape, dtype, 0, count, 1)


def _stripe(shape: tuple[int, ...], dtype: np.dtype[Any], *places: int) -> Move:
    number = (_number(dtype),)
    program = Program(f"xdev::stripe<{cpp_name(dtype)}>", slots=2, numbers=number)
    count = prod(shape)
    return run_of(program, blocks_of(count), 2, *places, count), dtype, shape


def eye(shape: tuple[int, int], k: int, dtype: np.dtype[Any], device: int) -> Any:
    """Return a matrix with ones on a diagonal."""
    served = dtype in SPANS and min(shape) > 0 and prod(shape) < FAR
    return launched(_eye, (1,), shape, k, dtype, device) if served else NotImplemented


def _eye(
    _: Operands,
    shape: tuple[int, int],
    k: int,
    dtype: np.dtype[Any],
    device: int,  # noqa: ARG001
) -> Move | None:
    """Plan :func:`eye`."""
    rows, columns = shape
    if not -rows < k < columns:
        return _stripe(shape, dtype, 0, 0, 1)
    first = k if k >= 0 else -k * columns
    last = min((columns - k) * columns, prod(shape))  # where it leaves the matrix
    return _stripe(shape, dtype, first, last, columns + 1)


def arange(start: Any, stop: Any, step: Any, dtype: Any, device: int) -> Any:
    """Return numbers of a range: as NumPy, by the distance of the first two."""
    types = {type(start), type(stop), type(step)}
    if dtype is None:
        dtype = FLOAT64 if float in types else INT64
    (served, least, most), computed = SPANS.get(dtype, NONE), STEPS.get(dtype)
    if computed is None or not types <= served:
        return NotImplemented
    size, after = ceil((stop - start) / step), start + step
    fit = least <= start <= most and least <= after <= most
    if not fit or not 0 < size < FAR:
        return NotImplemented
    if computed.kind == "f":
        start, after = float(start), float(after)
    numbers = start, after, after
    return launched(_ramp, numbers, size, dtype, computed, size, 1, device)


def linspace(
    start: Any, stop: Any, num: Any, dtype: Any, endpoint: bool, device: int
) -> Any:
    """Return evenly spaced numbers."""
    served, dtype = {type(start), type(stop)} <= REAL, dtype or FLOAT64
    if not served or type(num) is not int or not 0 < num < FAR or dtype not in FLOATS:
        return NotImplemented
    start, stop = float(start), float(stop)
    width, parts = stop - start, num - 1 if endpoint else num
    step = width / parts if parts else width
    if not isfinite(step) or (width and not step):
        return NotImplemented
    place = num - 1 if endpoint and parts else num
    numbers = start, step, stop
    return launched(_ramp, numbers, num, dtype, None, num, place, device)


def frequencies(
    n: int, turn: int, unit: float, dtype: np.dtype[Any], device: int
) -> Any:
    """Return multiples of a unit; from the place ``turn`` on they are negative."""
    if dtype not in FLOATS or not isinstance(unit, float | np.floating) or n >= FAR:
        return NotImplemented
    numbers = -0.0, float(unit), 0.0  # any number is itself plus -0.0
    return launched(_ramp, numbers, n, dtype, None, turn, n, device)


def _ramp(
    _: Operands,
    size: int,
    dtype: np.dtype[Any],
    fills: np.dtype[Any] | None,
    turn: int,
    place: int,
    device: int,  # noqa: ARG001
) -> Move:
    """Plan numbers at equal distances; ``fills`` is what :func:`arange` computes in."""
    computed = fills or FLOAT64
    types = f"{cpp_name(dtype)},{cpp_name(computed)},{str(bool(fills)).lower()}"
    numbers = (_number(computed),) * 3
    program = Program(f"xdev::ramp<{types}>", slots=4, numbers=numbers)
    begin = run_of(program, blocks_of(size), 4, turn, place, size)
    return begin, dtype, (size,)
