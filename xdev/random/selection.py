"""Integers of ranges, choices and permutations.

The last two are made of random words by sorting and searching. Sorting random words of
64 bits, stably, gives the same order on every device. Chances are rounded to multiples
of 2^-53 and summed as integers: a sum of floats would depend on the order in which a
device adds.
"""

from __future__ import annotations

import math
import operator
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import facade
from xdev.errors import type_name
from xdev.facade.backends import ends_of, to_numpy_dtype
from xdev.random import kernels
from xdev.random.draws import (
    FLOAT64,
    INT64,
    broadcast,
    integer_dtype,
    is_array,
    out_shape,
    parameter,
    plain,
    shape_of,
    write,
)
from xdev.random.kernels import words64
from xdev.transfer.copies import dtype_of

if TYPE_CHECKING:
    from xdev.random.draws import Draws
    from xdev.ufunc import Ufunc

    Shape = tuple[int, ...]


WORD = np.dtype(np.uint64)
WORDS, HALF = 2**64, 2**32  # how many values 64 and 32 bits have


def integers(
    draws: Draws,
    low: Any,
    high: Any = None,
    size: Any = None,
    dtype: Any = np.int64,
    end: bool = False,
) -> Any:
    """Draw as :meth:`xdev.random.Generator.integers` says."""
    kind, shape, one = integer_dtype(dtype), shape_of(size), high is None
    low, high = (0, low) if one else (low, high)
    arrays = not type(low) is type(high) is int
    if arrays:
        low, high = _end(draws, low, "low"), _end(draws, high, "high")
        arrays = is_array(low) or is_array(high)
    if arrays:
        shape = broadcast(shape, low, high)
    if shape is not None and 0 in shape:  # the ends may hold no integer
        return draws.array(kernels.kernel(words64, kind), shape)
    least, largest = ends_of(kind)
    if arrays or not least <= low <= high - (not end) <= largest:
        _check(low, high, kind, one=one, end=end)
    if arrays:
        words = draws.words((2, *broadcast(shape, low, high)))
        return between(words, low, high, kind, end=end)
    count = high - low + end
    kernel, values = kernels.kernel(words64, kind), tuple[int, ...]()
    if count < WORDS:
        function = kernels.few if count <= HALF else kernels.many
        kernel, values = kernels.kernel(function, kind), (low % WORDS, count)
    if shape is None:
        return kind.type(draws.number(kernel, *values))
    return draws.array(kernel, shape, *values)


def _end(draws: Draws, x: Any, name: str) -> Any:
    """Return an end of a range: a Python integer, or an array of integers."""
    x = parameter(x, name, draws.device)
    if not is_array(x):
        return int(x)
    if to_numpy_dtype(x.dtype).kind not in "biu":
        raise TypeError(
            f"{name} is an array of {x.dtype}: pass integers, x.astype(int)"
        )
    return x


def _check(low: Any, high: Any, dtype: np.dtype[Any], *, one: bool, end: bool) -> None:
    """Refuse ends that hold no integer of a dtype; on a device, the host waits."""
    least, largest = ends_of(dtype)
    below = (int(facade.min(low)) if is_array(low) else low) < least
    last = largest + (not end)
    if below or (int(facade.max(high)) if is_array(high) else high) > last:
        raise ValueError(
            f"{'low' if below else 'high'} is out of bounds for {dtype}, which holds "
            f"{least} to {largest}"
        )
    arrays = is_array(low) or is_array(high)
    compared = facade.greater if end else facade.greater_equal
    wrong = facade.any(compared(low, high)) if arrays else low > high - (not end)
    if bool(wrong):
        relation = ">" if end else ">="
        message = f"high {'<' if end else '<='} 0" if one else f"low {relation} high"
        raise ValueError(f"{message}: the range holds no integer")


def between(
    words: Any, low: Any, high: Any, dtype: np.dtype[Any], *, end: bool = False
) -> Any:
    """Return integers of ranges of which one end at least is an array."""
    start, stop = _words(low), _words(high)
    count = facade.subtract(stop, start)  # modulo 2^64, so that signs do not matter
    if end:
        count = facade.add(count, np.uint64(1))
    integers = _between()(words[0, ...], words[1, ...], start, count)
    return facade.astype(integers, dtype)


@cache
def _between() -> Ufunc:
    from xdev.ufunc import sources, vectorize

    # Ufuncs in ufuncs: those that are kept on disk need no compiler.
    function, within = kernels.between, {"below": vectorize(kernels.below)}
    return vectorize(sources.rebuilt(function, function.__code__, within))


def _words(x: Any) -> Any:
    return facade.astype(x, WORD) if is_array(x) else np.uint64(x % WORDS)


SPARSE = 16  # populations of so many a choice are not permuted as a whole
UNITS = 2.0**53  # of chance, in 1
TOLERANCE = math.sqrt(np.finfo(np.float64).eps)  # of a sum of chances, as NumPy's


def choice(draws: Draws, a: Any, size: Any, replace: bool, p: Any, axis: int) -> Any:
    """Choose as :meth:`xdev.random.Generator.choice` says."""
    shape = shape_of(size) or ()
    population, pool = _population(draws, a, axis, math.prod(shape))
    if p is not None:
        p = _chances(draws, p, population)
    draw = _with_replacement if replace else _without_replacement
    indices = draw(draws, population, shape, p)
    if pool is None:
        if size is None:
            return np.int64(int(indices))
        same = indices.dtype == INT64
        return indices if same else facade.astype(indices, INT64, copy=False)
    flat = facade.take(pool, facade.reshape(indices, (-1,)), axis=axis)
    extents = list(pool.shape)
    extents[axis : axis + 1 or None] = shape
    taken = facade.reshape(flat, tuple(extents))
    return taken[()] if isinstance(taken, np.ndarray) and size is None else taken


def permutation(draws: Draws, x: Any, axis: int) -> Any:
    """Permute as :meth:`xdev.random.Generator.permutation` says."""
    if is_array(x):
        _extent(x, axis)  # of a 0-d one, which is no count to NumPy, there is none
    else:
        count = _integer(x)
        if count is not None:
            return _order(draws, (max(count, 0),))
    x = _array(draws, x)
    return facade.take(x, _order(draws, (_extent(x, axis),)), axis=axis)


def shuffle(draws: Draws, x: Any, axis: int) -> None:
    """Shuffle in place as :meth:`xdev.random.Generator.shuffle` says."""
    if not is_array(x):
        raise TypeError(f"shuffle works in place on arrays, not on {type_name(x)}")
    write(x, permutation(draws, x, axis))


def permuted(draws: Draws, x: Any, axis: int | None, out: Any) -> Any:
    """Permute slices as :meth:`xdev.random.Generator.permuted` says."""
    x = _array(draws, x)
    if out is not None:
        out_shape(out, tuple(x.shape), dtype_of(x), draws.device, "safe")
    if axis is None:
        flat = facade.reshape(x, (-1,))
        order = _order(draws, tuple(flat.shape))
        result = facade.reshape(facade.take(flat, order), tuple(x.shape))
    else:
        _extent(x, axis)
        order = _order(draws, tuple(x.shape), axis)
        result = facade.take_along_axis(x, order, axis=axis)
    if out is None:
        return draws.adopted(result)
    write(out, result)
    return out


def _order(draws: Draws, shape: Shape, axis: int = 0) -> Any:
    """Return random orders along an axis, as int64."""
    words = draws.words(shape)
    if draws.plain.type == "cuda" and len(shape) == 1:
        from xdev.random.cuda import order  # as draws are made there

        return order(words)
    places = facade.argsort(words, axis=axis)
    return facade.astype(places, INT64, copy=False)


def _with_replacement(draws: Draws, population: int, shape: Shape, p: Any) -> Any:
    if p is None:
        size = shape[0] if len(shape) == 1 else shape  # which is read at once
        return integers(draws, 0, max(population, 1), size)
    units = facade.astype(facade.round(facade.multiply(p, UNITS)), INT64)
    sums = facade.cumulative_sum(units)
    words = draws.words((2, math.prod(shape)))
    drawn = between(words, 0, sums[-1:], INT64)
    return facade.reshape(facade.searchsorted(sums, drawn, side="right"), shape)


def _without_replacement(draws: Draws, population: int, shape: Shape, p: Any) -> Any:
    count = math.prod(shape)
    if count > population:
        message = "Cannot take a larger sample than population when replace is False"
        raise ValueError(message)
    if p is None:
        if count * SPARSE < population:
            drawn = _distinct(draws, population, count)
        else:
            drawn = _order(draws, (population,))[:count]
        return facade.reshape(drawn, shape)
    possible = int(facade.count_nonzero(p))
    if count > possible:
        message = f"Fewer non-zero entries in p than size: {possible} than {count}"
        raise ValueError(message)
    # The first of exponential clocks to ring, each at its chance as its rate, is of
    # the chosen distribution, and so is the next among those left (Efraimidis 2006).
    can, kernel = facade.greater(p, 0), kernels.kernel(kernels.exponential64, FLOAT64)
    clocks = draws.array(kernel, (population,), 1.0)
    rings = facade.divide(clocks, facade.where(can, p, 1))
    rings = facade.where(can, rings, math.inf)
    order = facade.argsort(rings)
    return facade.reshape(order[:count], shape)


def _distinct(draws: Draws, population: int, count: int) -> Any:
    """Return the first distinct ones of integers drawn one after the other."""
    drawn = integers(draws, 0, population, 2 * count)
    while True:
        firsts = facade.sort(facade.unique_all(drawn).indices)
        if firsts.shape[0] >= count:
            return facade.take(drawn, firsts[:count])
        drawn = facade.concat((drawn, integers(draws, 0, population, 2 * count)))


def _chances(draws: Draws, p: Any, population: int) -> Any:
    """Return checked chances as a float64 array of the device."""
    p = _array(draws, p, "p")
    if p.ndim != 1:
        raise ValueError("p must be 1-dimensional")
    if p.shape[0] != population:
        message = f"a and p must have same size: {population} is not {p.shape[0]}"
        raise ValueError(message)
    p = facade.astype(p, FLOAT64)
    total = float(facade.sum(p))
    if math.isnan(total):
        raise ValueError("Probabilities contain NaN")
    if bool(facade.any(facade.less(p, 0))):
        raise ValueError("Probabilities are not non-negative")
    if abs(total - 1) > TOLERANCE:
        message = f"Probabilities do not sum to 1, but to {total}: divide p by its sum"
        raise ValueError(message)
    return p


def _population(draws: Draws, a: Any, axis: int, count: int) -> tuple[int, Any]:
    """Return how many elements there are, and the array of them if ``a`` is one."""
    number = _integer(a)
    if number is not None:
        if number <= 0 and count:
            raise ValueError("a must be a positive integer unless no samples are taken")
        return max(number, 0), None
    if isinstance(a, float) or not (is_array(a) or hasattr(a, "__len__")):
        raise ValueError(f"a must be a sequence or an integer, not {type_name(a)}")
    a = _array(draws, a, "a")
    extent = _extent(a, axis)
    if not extent and count:
        raise ValueError("a cannot be empty unless no samples are taken")
    return extent, a


def _integer(x: Any) -> int | None:
    if is_array(x) and not (isinstance(x, np.ndarray) and x.ndim == 0):
        return None
    try:
        return operator.index(x)
    except TypeError:
        return None


def _array(draws: Draws, x: Any, name: str = "x") -> Any:
    """Return an argument as an array of the generator's device."""
    if not is_array(x) and not hasattr(x, "__len__"):
        raise TypeError(f"{name}: expected an integer or an array, not {type_name(x)}")
    return plain(x, name, draws.device)


def _extent(x: Any, axis: int) -> int:
    """Return an array's extent along an axis."""
    if not -x.ndim <= axis < x.ndim:
        raise np.exceptions.AxisError(axis, x.ndim)
    return int(x.shape[axis])
