"""A NumPy ufunc on large arrays: ranges and parts in threads, rows, many indices."""

from __future__ import annotations

import ctypes
import sys
import warnings
from functools import cache, reduce
from math import prod
from operator import attrgetter, or_
from time import perf_counter
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy import ndarray

from xdev import _config
from xdev.compile import threads
from xdev.compile.formulas import ALL, BITS
from xdev.compile.threads import PYTHON_PIECES
from xdev.errors import users_level
from xdev.ufunc import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SHORT = 32  # elements of a row that are too few for one call of the inner loop
INDICES = 512  # indices: for fewer NumPy takes less time than these preparations


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
    inputs, outputs : tuple of numpy.dtype
        What that reads, and writes.
    cost : CostModel
        Which calls are worth several threads.
    """

    __slots__ = ("_dtypes", "cost", "inputs", "loop", "outputs", "ufunc")

    def __init__(
        self, ufunc: np.ufunc, loop: int, dtypes: tuple[np.dtype[Any], ...]
    ) -> None:
        self.ufunc, self.loop, self._dtypes = ufunc, loop, dtypes
        self.inputs, self.outputs = dtypes[: ufunc.nin], dtypes[ufunc.nin :]
        self.cost = threads.CostModel()

    def __call__(
        self, operands: Sequence[Any], outs: tuple[Any, ...] | None, size: int
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
        """
        if self.cost.is_worth_threads(size) and outs is not None:
            walk = self._walk(operands, outs)
            if walk is not None:
                return self._spread(walk, outs)
        start = perf_counter()
        result = self.alone(operands, outs)
        seconds = perf_counter() - start
        first = result[0] if type(result) is tuple else result
        self.cost.add_serial(seconds, getattr(first, "size", 0))
        return result

    def alone(self, operands: Sequence[Any], outs: tuple[Any, ...] | None) -> Any:
        """Compute the ufunc of many elements in one thread."""
        keywords = {} if outs is None else {"out": outs}
        if not _by_row((*operands, *(outs or ())), self._dtypes):
            return self.ufunc(*operands, **keywords)
        usual = np.setbufsize(BUFFER)
        try:
            return self.ufunc(*operands, **keywords)
        finally:
            np.setbufsize(usual)

    def at(self, a: Any, indices: Any, *values: Any) -> None:
        """Work in place at indices, as :meth:`numpy.ufunc.at` does."""
        exceptions = _run_indexed(self.loop, self._dtypes, a, indices, values)
        if exceptions is None:
            self.ufunc.at(a, indices, *values)
        elif exceptions:
            report_errors(self.ufunc.__name__, exceptions)

    def _walk(self, inputs: Sequence[Any], outs: Sequence[Any]) -> Any:
        """Return NumPy's iterator over operands that the inner loop reads as they lie.

        It has copies of those that overlap an output. None: NumPy alone can compute
        these, or refuse them.
        """
        arrays = [
            x if type(x) is ndarray else _number(x, dtype)
            for x, dtype in zip((*inputs, *outs), self._dtypes, strict=True)
        ]
        if any(x is None for x in arrays) or not all(map(_has_own_places, outs)):
            return None
        plain = "aligned", "overlap_assume_elementwise"
        how: list[Any] = [("readonly", *plain)] * len(inputs)
        how += [("writeonly", "no_broadcast", *plain)] * len(outs)
        nditer: Any = np.nditer
        try:
            return nditer(arrays, ["copy_if_overlap"], how, self._dtypes, casting="no")
        except (TypeError, ValueError):
            return None

    def _spread(self, walk: Any, outs: tuple[Any, ...]) -> Any:
        """Compute ranges of the result, and tell of floating point errors then."""
        start = perf_counter()
        with walk:  # at whose end copies of outputs are written back
            shape = walk.itviews[0].shape
            axes = [*range(len(shape))]
            if shape and shape[-1] < SHORT:
                axes.append(axes.pop(int(np.argmax(shape))))
            views = [x.transpose(axes) for x in walk.itviews]
            exceptions = threads.elements(
                self.loop,
                views[0].shape,
                [x.ctypes.data for x in views],
                [*zip(*(x.strides for x in views), strict=True)],
                prod(shape),
                grain=self.cost.grain,
            )
            del views
        self.cost.add_parallel(perf_counter() - start, outs[0].size)
        report_errors(self.ufunc.__name__, exceptions)
        return outs if len(outs) > 1 else outs[0]


def _has_own_places(x: np.ndarray[Any, Any]) -> bool:
    """Say whether each element surely has a place of its own, none beside another."""
    reach = x.itemsize
    for stride, extent in sorted(zip(map(abs, x.strides), x.shape, strict=True)):
        if extent > 1:
            if stride < reach:
                return False
            reach += stride * (extent - 1)
    return True


def _number(x: Any, dtype: np.dtype[Any]) -> ndarray[Any, Any] | None:
    """Return a number as the inner loop reads it, None where NumPy has to judge it."""
    if isinstance(x, np.generic | ndarray):  # subclasses have ways of their own
        plain = isinstance(x, np.generic) and x.dtype == dtype
        return np.asarray(x) if plain else None
    try:
        with np.errstate(over="raise"):
            return np.asarray(dtype.type(x))
    except (TypeError, ValueError, ArithmeticError):
        return None


# Calls of a NumPy ufunc on arrays that it reads by rows: slices, what broadcasts.
#
# NumPy copies such operands into its buffers where two rows fit in there, so that an
# inner loop gets several at once. But for short rows the copies take longer than a
# loop over each row; with smaller buffers there are none.

MANY = 16384  # elements: of fewer the copies take less time than finding them
LONG = 2048  # bytes of a row whose copies take longer than another inner loop
BUFFER = 16  # elements: the fewest that NumPy has
MATRIX = 2  # axes


def _by_row(operands: Sequence[Any], dtypes: Sequence[np.dtype[Any]]) -> bool:
    """Say whether NumPy would copy long rows that the inner loop can take as they are.

    Rows are along the last axis; others are copied whatever their length.
    """
    arrays = [x for x in operands if type(x) is ndarray]
    largest: Any = max(arrays, key=attrgetter("size"), default=None)
    if largest is None or largest.ndim < MATRIX:
        return False
    shape: tuple[int, ...] = largest.shape
    nbytes = 0
    for x, dtype in zip(operands, dtypes, strict=False):  # outputs may be left out
        if type(x) is ndarray:
            if x.dtype != dtype:  # is cast in the buffers
                return False
            if x.shape != shape or not x.flags.c_contiguous:
                near = x.ndim > 0 and x.strides[-1] in {0, x.itemsize}
                nbytes += x.itemsize if near else 0
    return nbytes * shape[-1] >= LONG


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
    operands = [a, *others, a]
    if (
        type(indices) is not ndarray
        or (indices.ndim, indices.dtype.kind in "iu") != (1, True)
        or indices.size < INDICES
        or not np.can_cast(indices.dtype, np.intp)
        or not all(
            type(x) is ndarray and x.dtype == dtype and x.flags.aligned
            for x, dtype in zip(operands, dtypes, strict=True)
        )
        or (a.ndim, a.flags.writeable) != (1, True)
        or any(x.shape not in {(), indices.shape} for x in others)
        or any(np.may_share_memory(a, x) for x in (indices, *others))
        or not -a.size <= indices.min() <= indices.max() < a.size
    ):
        return None
    order = np.ascontiguousarray(indices, np.intp)
    steps = [x.strides[0] if x.ndim else 0 for x in operands]
    clear, test = _exceptions()
    places = (_WORDS * len(operands))(*(x.ctypes.data for x in operands))
    clear(ALL)
    _LOOP(loop)(
        *(places, (_WORDS * 2)(order.size, a.size)),
        *((_WORDS * len(steps))(*steps), order.ctypes.data),
    )
    return test(ALL) & ALL


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
    settings: dict[str, Any] = dict(np.geterr())
    numbers = sum(number for *_, number in met)
    for kind, words, _ in met:
        setting, text = settings[kind], f"{words} encountered in {name}"
        caller: Any = np.geterrcall()
        if setting == "raise":
            raise FloatingPointError(text)
        if setting == "warn":
            warnings.warn(text, RuntimeWarning, stacklevel=users_level())
        elif setting == "print":
            sys.stderr.write(f"Warning: {text}\n")
        elif setting == "call":
            caller(words, numbers)
        elif setting == "log":
            caller.write(f"Warning: {text}\n")


# NumPy's functions on large arrays, in several threads: a call for each part.
#
# The parts of a result lie along one axis of it. What is elementwise has the same bits
# as in one call; sums of all elements are made of sums of a fixed size, so that their
# bits depend on nothing but the values.

#: How often the time that is worth threads without Python, for which each part is some
#: calls of Python's.
TIMES = 8
#: New results of so many bytes come from the pool, where no page has to be made: those
#: of fewer cost NumPy less than the pool.
LARGE = 4 << 20
LINE = 64  # elements: where vectors begin in one call, they begin in parts
FLAGS = {number: bit for (_, number), bit in zip(ERRORS.values(), BITS, strict=True)}


@final
class Chunked:
    """A NumPy ufunc that computes large results in several threads.

    Parameters
    ----------
    ufunc : numpy.ufunc
        What computes.
    dtype : numpy.dtype
        The result's.
    """

    __slots__ = ("_cost", "_dtype", "_ufunc")

    def __init__(self, ufunc: np.ufunc, dtype: np.dtype[Any]) -> None:
        self._ufunc, self._dtype = ufunc, dtype
        self._cost = cost_model()

    @classmethod
    def of(cls, ufunc: np.ufunc, kinds: Sequence[Any]) -> Chunked | None:
        """Return it for operands of kinds as a plan names them, if NumPy takes them."""
        weak = int, float, complex
        inputs = [kind if kind in weak else np.dtype(kind) for kind in kinds]
        try:
            return cls(ufunc, ufunc.resolve_dtypes((*inputs[: ufunc.nin], None))[-1])
        except TypeError:
            return None

    @property
    def limit(self) -> int:
        """So many elements or more are worth a look at the time that they take."""
        return min(self._cost.small, LARGE // self._dtype.itemsize)

    def __call__(self, *operands: Any, out: Any = None) -> Any:
        """Compute the ufunc of NumPy's own arrays and numbers."""
        start, cost, views = perf_counter(), self._cost, None
        if out is None:
            spread = layout.bound(operands) >= cost.threshold > 0
            least = 0 if spread else LARGE
            pooled = layout.pooled(operands, (self._dtype,), least=least)
            out = pooled and pooled[0]
        if out is not None and cost.is_worth_threads(out.size):
            views = self._views(operands, out)
        errors = Errors()

        def compute(*views: Any) -> Any:
            *inputs, part = views
            with errors.noted():
                return self._ufunc(*inputs, out=part)

        if views is None:
            result = compute(*operands, out)
            cost.add_serial(perf_counter() - start, result.size)
        else:
            share(compute, views, cost.grain)
            result = out
            cost.add_parallel(perf_counter() - start, out.size)
        errors.tell(self._ufunc.__name__)
        return result

    def _views(self, operands: Sequence[Any], out: Any) -> list[Any] | None:
        """Return operands and output alike in shape; None where NumPy must see all."""
        if type(out) is not ndarray or out.dtype != self._dtype:
            return None
        if not out.flags.writeable or not _has_own_places(out):
            return None
        # Backwards NumPy's loops may have other bits than forwards; one element, as
        # parts may be wide, has no direction.
        arrays = [x for x in (*operands, out) if type(x) is ndarray]
        if any(step < 0 for x in arrays for step in x.strides):
            return None
        views = []
        for x in operands:
            if type(x) is ndarray and x.ndim:
                place = x.ctypes.data, x.strides, x.shape, x.dtype
                same = place == (out.ctypes.data, out.strides, out.shape, out.dtype)
                if not same and np.may_share_memory(x, out):
                    return None
            spread = type(x) is ndarray and x.ndim and x.shape != out.shape
            views.append(np.broadcast_to(x, out.shape) if spread else x)
        return [*views, out]


@final
class Errors:
    """Floating point errors of a computation in parts, told once as NumPy does."""

    def __init__(self) -> None:
        self._bits: list[int] = []

    def noted(self) -> np.errstate:
        """Return the context of a part, in whatever thread."""

        def note(_: str, numbers: int) -> None:
            self.add(sum(bit for number, bit in FLAGS.items() if numbers & number))

        return np.errstate(all="call", call=note)

    def add(self, exceptions: int) -> None:
        """Take in what ``fetestexcept`` told of a part."""
        self._bits.append(exceptions)

    def tell(self, name: str) -> None:
        """Do what the caller's ``np.errstate`` says."""
        if self._bits:
            report_errors(name, reduce(or_, self._bits))


def cost_model() -> threads.CostModel:
    """Return one that knows what parts cost, each some calls of Python's."""
    return threads.CostModel(TIMES, slower=0.9)


def share(
    part: Callable[..., object],
    views: Sequence[Any],
    grain: int,
    whole: Sequence[int] = (),
) -> None:
    """Call a function on parts of an output and of its inputs, in several threads.

    Parameters
    ----------
    part : callable
        What computes of parts of the arrays, which lie at the same place in each.
    views : sequence of arrays and numbers
        The last is the output, whose memory is divided; the others have its shape, but
        along axes where it has one element, and ``whole``. Numbers and arrays of no
        dimensions go to each call.
    grain : int
        So many elements or more are worth a part of their own.
    whole : sequence of int
        Axes that are not divided.
    """
    arrays = [x for x in views if type(x) is ndarray and x.ndim]
    if not whole and len({x.shape for x in arrays}) == 1:
        if all(x.flags.f_contiguous for x in arrays):
            views = [x.T if type(x) is ndarray else x for x in views]
            arrays = [x.T for x in arrays]
        if all(x.flags.c_contiguous for x in arrays):
            views = [
                x.reshape(-1) if type(x) is ndarray and x.ndim else x for x in views
            ]
    out = views[-1]
    # Along the outermost axis in memory that has parts enough.
    axes = [k for k, extent in enumerate(out.shape) if extent > 1 and k not in whole]
    if not axes:
        part(*views)
        return
    axes.sort(key=lambda axis: -abs(out.strides[axis]))
    enough = PYTHON_PIECES * _config.num_threads()
    enough = min(enough, max(out.shape[axis] for axis in axes))
    axis = next(axis for axis in axes if out.shape[axis] >= enough)
    before = (slice(None),) * axis

    def work(start: int, stop: int) -> None:
        at = (*before, slice(start, stop))
        part(*[x[at] if type(x) is ndarray and x.ndim else x for x in views])

    rows = out.shape[axis]
    least = max(1, grain * rows // out.size)
    if axis != axes[-1]:
        threads.run(work, rows, grain=least)
        return
    # NumPy has other loops for elements that lie alone: none does, the last neither.
    end = rows - 1
    least = -(-least // LINE) * LINE
    threads.run(lambda i, k: work(i, rows if k == end else k), end, grain=least)
