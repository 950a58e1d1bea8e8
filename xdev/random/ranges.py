"""Integers of a range, its ends numbers or arrays."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import facade
from xdev.facade.dtype_names import to_numpy_dtype
from xdev.random import kernels
from xdev.random.arguments import broadcast, is_array
from xdev.random.philox import words64

if TYPE_CHECKING:
    from xdev.random.draws import Draws
    from xdev.ufunc import Vectorized

WORD = np.dtype(np.uint64)
WORDS, HALF = 2**64, 2**32  # how many values 64 and 32 bits have


@cache
def limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the least and the largest integer of a dtype."""
    if dtype.kind == "b":
        return 0, 1
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def end(x: Any, name: str) -> Any:
    """Return an end of a range: a Python integer, or an array of integers.

    Raises
    ------
    TypeError
        It is an array of something else.
    """
    if type(x) is int or not is_array(x):
        return int(x)
    if to_numpy_dtype(x.dtype).kind not in "biu":
        message = f"{name} is an array of {x.dtype}: pass integers, x.astype(int)"
        raise TypeError(message)
    return x


def check(
    low: Any,
    high: Any,
    shape: tuple[int, ...] | None,
    dtype: np.dtype[Any],
    *,
    one: bool,
    end: bool,
) -> None:
    """Refuse ends that hold no integer of a dtype, as NumPy does where it draws any.

    Parameters
    ----------
    low, high : int or array of integers
        The ends.
    shape : tuple of ints or None
        What was asked for.
    dtype : numpy.dtype
        Of the results.
    one : bool
        Whether only ``high`` was given.
    end : bool
        Whether ``high`` is among the values.

    Raises
    ------
    ValueError
        They are the wrong way round, or out of the dtype's bounds. For arrays on a
        device, the host waits for the answer.
    """
    if _draws_nothing(shape):
        return
    least, largest = limits(dtype)
    arrays = is_array(low) or is_array(high)
    if (_least(low) if arrays else low) < least:
        message = f"low is out of bounds for {dtype}: its least value is {least}"
        raise ValueError(message)
    if (_largest(high) if arrays else high) > largest + (not end):
        message = f"high is out of bounds for {dtype}: its largest value is {largest}"
        raise ValueError(message)
    compared = facade.greater if end else facade.greater_equal
    wrong = (
        bool(facade.any(compared(low, high)))
        if arrays
        else low > high or (low == high and not end)
    )
    if wrong:
        relation = (">" if end else ">=") if not one else ("<" if end else "<=")
        message = f"high {relation} 0" if one else f"low {relation} high"
        raise ValueError(f"{message}: the range holds no integer")


def drawn(
    draws: Draws,
    low: Any,
    high: Any,
    shape: tuple[int, ...] | None,
    dtype: np.dtype[Any],
    *,
    end: bool,
) -> Any:
    """Return integers of a range that was checked; a number where there is no shape."""
    if _draws_nothing(shape):
        low, high, end = 0, 1, False  # those that were given may hold no integer
    if is_array(low) or is_array(high):
        words = draws.words((2, *broadcast(shape, low, high)))
        return between(words, low, high, dtype, end=end)
    count = high - low + end
    if count == WORDS:
        kernel, values = kernels.kernel(words64, dtype), tuple[int, ...]()
    else:
        function = kernels.few if count <= HALF else kernels.many
        kernel, values = kernels.kernel(function, dtype), (low % WORDS, count)
    if shape is None:
        return dtype.type(draws.number(kernel, *values))
    return draws.array(kernel, shape, *values)


def _draws_nothing(shape: tuple[int, ...] | None) -> bool:
    return shape is not None and 0 in shape


def between(words: Any, low: Any, high: Any, dtype: np.dtype[Any], *, end: bool) -> Any:
    """Return integers of ranges of which one end at least is an array.

    Parameters
    ----------
    words : array of uint64, shape (2, *shape)
        Random bits: 128 for each element.
    low, high : int or array of integers
        The ends, checked; they broadcast to ``shape``.
    dtype : numpy.dtype
        Of the results.
    end : bool
        Whether ``high`` is among the values.
    """
    start, stop = _words(low), _words(high)
    count = facade.subtract(stop, start)  # modulo 2^64, so that signs do not matter
    if end:
        count = facade.add(count, np.uint64(1))
    found = _between()(words[0, ...], words[1, ...], start, count)
    return facade.astype(found, dtype)


@cache
def _between() -> Vectorized:
    from xdev.ufunc import sources, vectorize

    # Ufuncs in ufuncs: those that are kept on disk need no compiler.
    function, within = kernels.between, {"below": vectorize(kernels.below)}
    return vectorize(sources.rebuilt(function, function.__code__, within))


def _words(x: Any) -> Any:
    return facade.astype(x, WORD) if is_array(x) else np.uint64(x % WORDS)


def _least(x: Any) -> float:
    if not is_array(x):
        return int(x)
    return int(facade.min(x)) if math.prod(x.shape) else math.inf


def _largest(x: Any) -> float:
    if not is_array(x):
        return int(x)
    return int(facade.max(x)) if math.prod(x.shape) else -math.inf
