"""A NumPy ufunc's inner loop on ranges of the result, by threads, and at indices."""

from __future__ import annotations

import ctypes
import sys
import warnings
from functools import cache
from math import prod
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy import ndarray

from xdev.compile import threads
from xdev.compile.divisions import ALL, BITS
from xdev.errors import users_level
from xdev.ufunc import cpu_results

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SHORT = 32  # elements of a row that are too few for one call of the inner loop
MANY = 512  # indices: for fewer NumPy takes less time than these preparations


@final
class Threaded:
    """A NumPy ufunc that computes large results in several threads.

    Parameters
    ----------
    ufunc : numpy.ufunc
        What computes.
    loop : int
        The address of its inner loop.
    dtypes : tuple of numpy.dtype
        What that reads and writes.

    Attributes
    ----------
    ufunc : numpy.ufunc
        As given.
    cost : CostModel
        Which calls are worth several threads.
    """

    __slots__ = ("_dtypes", "_loop", "cost", "ufunc")

    def __init__(
        self, ufunc: np.ufunc, loop: int, dtypes: tuple[np.dtype[Any], ...]
    ) -> None:
        self.ufunc, self._loop, self._dtypes = ufunc, loop, dtypes
        self.cost = threads.CostModel()

    def __call__(
        self,
        operands: Sequence[Any],
        outs: tuple[Any, ...] | None,
        size: int,
        *,
        own: bool,
    ) -> Any:
        """Compute the ufunc of NumPy's own arrays and numbers.

        Parameters
        ----------
        operands : sequence
            The inputs.
        outs : tuple of arrays and None, or None
            Where results go; several threads write only to what is all there.
        size : int
            How many elements a result has, or more.
        own : bool
            Whether the outputs are new, so that no input overlaps them.
        """
        if self.cost.is_worth_threads(size) and outs is not None:
            call = _operands(operands, outs, self._dtypes)
            if call is not None and (own or _apart(operands, outs)):
                return self._spread(call, outs)
        start = perf_counter()
        result = self.alone(operands, outs)
        seconds = perf_counter() - start
        first = result[0] if type(result) is tuple else result
        self.cost.add_serial(seconds, first.size)
        return result

    def alone(self, operands: Sequence[Any], outs: tuple[Any, ...] | None) -> Any:
        """Compute the ufunc of many elements in one thread."""
        return cpu_results.call_by_rows(self.ufunc, operands, outs, self._dtypes)

    def at(self, a: Any, indices: Any, *values: Any) -> None:
        """Work in place at indices, as :meth:`numpy.ufunc.at` does."""
        exceptions = _run_indexed(self._loop, self._dtypes, a, indices, values)
        if exceptions is None:
            self.ufunc.at(a, indices, *values)
        elif exceptions:
            report_errors(self.ufunc.__name__, exceptions)

    def _spread(self, call: Operands, outs: tuple[Any, ...]) -> Any:
        """Compute ranges of the result, and tell of floating point errors then."""
        start = perf_counter()
        exceptions = threads.elements(
            self._loop, *call[:3], prod(call.shape), grain=self.cost.grain
        )
        self.cost.add_parallel(perf_counter() - start, outs[0].size)
        report_errors(self.ufunc.__name__, exceptions)
        return outs if len(outs) > 1 else outs[0]


def _apart(inputs: Sequence[Any], outs: Sequence[Any]) -> bool:
    """Say whether outputs are arrays of which no thread writes what another uses."""
    for k, out in enumerate(outs):
        if type(out) is not ndarray or not _has_own_places(out):
            return False
        for x in (*inputs, *outs[:k]):
            if (
                type(x) is ndarray
                and np.may_share_memory(x, out)
                and not (
                    k == 0
                    and x.ctypes.data == out.ctypes.data
                    and (x.shape, x.strides) == (out.shape, out.strides)
                )
            ):
                return False
    return True


def _has_own_places(x: np.ndarray[Any, Any]) -> bool:
    """Say whether each element surely has a place of its own, none beside another."""
    reach = x.itemsize
    for stride, extent in sorted(zip(map(abs, x.strides), x.shape, strict=True)):
        if extent > 1:
            if stride < reach:
                return False
            reach += stride * (extent - 1)
    return True


class Operands(NamedTuple):
    """Where a call's operands lie.

    Attributes
    ----------
    shape : list of int
        Extents of the result, as few as will do; the innermost is last.
    places : list of int
        The operands' addresses.
    steps : list of list of int
        For each extent, their strides [B].
    owners : list of arrays
        Whose memory that is.
    """

    shape: list[int]
    places: list[int]
    steps: list[list[int]]
    owners: list[Any]


def _operands(
    inputs: Sequence[Any], outs: Sequence[Any], dtypes: Sequence[np.dtype[Any]]
) -> Operands | None:
    """Return where operands lie, None for what NumPy alone can compute or refuse.

    Parameters
    ----------
    inputs : sequence
        NumPy's own arrays, and numbers.
    outs : sequence
        Where the results go.
    dtypes : sequence of numpy.dtype
        What the inner loop reads and writes.
    """
    shape = getattr(outs[0], "shape", ())
    ndim = len(shape)  # of an input with more axes the result would have them too
    arrays = []
    for x, dtype in zip((*inputs, *outs), dtypes, strict=True):
        if type(x) is ndarray:
            if x.dtype != dtype or not x.flags.aligned:
                return None
            arrays.append(x)
        else:
            number = _number(x, dtype)
            if number is None:
                return None
            arrays.append(number)
    if not all(x.shape == shape and x.flags.writeable for x in arrays[len(inputs) :]):
        return None
    if all(
        x.flags.c_contiguous if x.shape == shape else x.size == 1 and x.ndim <= ndim
        for x in arrays
    ):
        steps = [x.itemsize if x.shape == shape else 0 for x in arrays]
        extents, rows = [arrays[-1].size], [steps]
    else:
        try:
            strides = [
                x.strides if x.shape == shape else np.broadcast_to(x, shape).strides
                for x in arrays
            ]
        except ValueError:
            return None
        extents, rows = _merged(shape, strides)
    return Operands(extents, [x.ctypes.data for x in arrays], rows, arrays)


def _number(x: Any, dtype: np.dtype[Any]) -> ndarray[Any, Any] | None:
    """Return a number as the inner loop reads it, None where NumPy has to judge it."""
    if isinstance(x, np.generic):
        return np.asarray(x) if x.dtype == dtype else None
    try:
        with np.errstate(over="raise"):
            return np.asarray(dtype.type(x))
    except (TypeError, ValueError, ArithmeticError):
        return None


def _merged(
    shape: tuple[int, ...], strides: Sequence[tuple[int, ...]]
) -> tuple[list[int], list[list[int]]]:
    """Return extents and strides, in the order of the result's memory.

    Axes that all operands lie along as along one are one; the innermost is long.
    """
    axes = [k for k, extent in enumerate(shape) if extent != 1]
    axes.sort(key=lambda k: -abs(strides[-1][k]))
    extents: list[int] = []
    rows: list[list[int]] = []
    for k in axes:
        steps = [x[k] for x in strides]
        if rows and rows[-1] == [shape[k] * step for step in steps]:
            extents[-1] *= shape[k]
            rows[-1] = steps
        else:
            extents.append(shape[k])
            rows.append(steps)
    if extents[-1] < SHORT:
        longest = max(range(len(extents)), key=extents.__getitem__)
        extents.append(extents.pop(longest))
        rows.append(rows.pop(longest))
    return extents, rows


# A ufunc's inner loop at indices of an array: what ``ufunc.at`` commonly is.
#
# NumPy calls the loops of others once an index; only its own take many at once.

_LOOP = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)
_WORDS = ctypes.c_int64


def _run_indexed(
    loop: int,
    dtypes: Sequence[np.dtype[Any]],
    a: Any,
    indices: Any,
    values: Sequence[Any],
) -> int | None:
    """Work in place at indices; return what ``fetestexcept`` told.

    Parameters
    ----------
    loop : int
        The inner loop's address.
    dtypes : sequence of numpy.dtype
        What it reads and writes.
    a, indices, values
        As :meth:`numpy.ufunc.at` takes them.

    Returns
    -------
    int or None
        None: these are for NumPy, to compute or to refuse; nothing was written.
    """
    others = [np.asarray(x) if isinstance(x, np.generic) else x for x in values]
    if not (_is_index(indices) and _suits(a, others, indices, dtypes)):
        return None
    if indices.min() < -a.size or indices.max() >= a.size:
        return None
    order = np.ascontiguousarray(indices, np.intp)
    operands = [a, *others, a]
    steps = [x.strides[0] if x.ndim else 0 for x in operands]
    clear, test = _exceptions()
    places = (_WORDS * len(operands))(*(x.ctypes.data for x in operands))
    clear(ALL)
    _LOOP(loop)(
        *(places, (_WORDS * 2)(order.size, a.size)),
        *((_WORDS * len(steps))(*steps), order.ctypes.data),
    )
    return test(ALL) & ALL


def _is_index(x: Any) -> bool:
    """Say whether these are many indices of one axis."""
    if type(x) is not ndarray or x.ndim != 1 or x.size < MANY:
        return False
    return x.dtype.kind in "iu" and np.can_cast(x.dtype, np.intp)


def _suits(
    a: Any, values: Sequence[Any], indices: Any, dtypes: Sequence[np.dtype[Any]]
) -> bool:
    """Say whether the inner loop can take arrays, one of one axis and what goes in."""
    operands = [a, *values, a]
    if len(operands) != len(dtypes) or not all(map(_is_plain, operands, dtypes)):
        return False
    if a.ndim != 1 or not a.flags.writeable:
        return False
    return all(x.shape in {(), indices.shape} for x in values) and not any(
        np.may_share_memory(a, x) for x in (indices, *values)
    )


def _is_plain(x: Any, dtype: np.dtype[Any]) -> bool:
    """Say whether an inner loop can read a value where it lies."""
    return type(x) is ndarray and x.dtype == dtype and x.flags.aligned


@cache
def _exceptions() -> tuple[Callable[[int], int], Callable[[int], int]]:
    """Return C's ``feclearexcept`` and ``fetestexcept``."""
    library = ctypes.CDLL(None)  # the process's own symbols, the C library among them
    return library.feclearexcept, library.fetestexcept


# Floating point errors of a computation in parts, told once as NumPy tells them.

# By the names of np.errstate, in NumPy's order: the words of NumPy's messages, and the
# error's number there.
ERRORS = {
    "divide": ("divide by zero", 1),
    "over": ("overflow", 2),
    "under": ("underflow", 4),
    "invalid": ("invalid value", 8),
}


def report_errors(name: str, exceptions: int) -> None:
    """Do what the caller's ``np.errstate`` says to each kind of error.

    Parameters
    ----------
    name : str
        What computed.
    exceptions : int
        What C's ``fetestexcept`` returned where it did, or-ed.

    Raises
    ------
    FloatingPointError
        ``np.errstate`` says ``"raise"``.
    """
    met = [
        (kind, *error)
        for (kind, error), bit in zip(ERRORS.items(), BITS, strict=True)
        if exceptions & bit
    ]
    if not met:
        return
    settings: dict[str, Any] = dict(np.geterr())
    numbers = sum(number for *_, number in met)
    for kind, words, _ in met:
        _report_error(settings[kind], words, f"{words} encountered in {name}", numbers)


def _report_error(setting: str, words: str, text: str, numbers: int) -> None:
    if setting == "raise":
        raise FloatingPointError(text)
    if setting == "warn":
        warnings.warn(text, RuntimeWarning, stacklevel=users_level())
    elif setting == "print":
        sys.stderr.write(f"Warning: {text}\n")
    elif setting == "call":
        caller: Any = np.geterrcall()
        caller(words, numbers)
    elif setting == "log":
        log: Any = np.geterrcall()
        log.write(f"Warning: {text}\n")
