"""NumPy's functions on large arrays, in several threads: a call for each part.

The parts of a result lie along one axis of it. What is elementwise has the same bits as
in one call; sums of all elements are made of sums of a fixed size, so that their bits
depend on nothing but the values.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from time import perf_counter
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy import ndarray

from xdev import _config
from xdev.compile import threads
from xdev.compile.divisions import BITS
from xdev.compile.threads import PYTHON_PIECES
from xdev.ufunc import layout
from xdev.ufunc.cpu_threads import ERRORS, has_own_places, report_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: How often the time that is worth threads without Python, for which each part is some
#: calls of Python's.
TIMES = 8
#: New results of so many bytes come from the pool, where no page has to be made: those
#: of fewer cost NumPy less than the pool.
POOLED = 4 << 20
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
        self._cost = threads.CostModel(TIMES, slower=0.9)

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
        return min(self._cost.small, POOLED // self._dtype.itemsize)

    def __call__(self, *operands: Any, out: Any = None) -> Any:
        """Compute the ufunc of NumPy's own arrays and numbers."""
        start, cost, views = perf_counter(), self._cost, None
        if out is None:
            spread = layout.bound(operands) >= cost.threshold > 0
            least = 0 if spread else POOLED
            made = layout.pooled(operands, (self._dtype,), least=least)
            out = made and made[0]
        if out is not None and cost.is_worth_threads(out.size):
            views = self._views(operands, out)
        raised: list[int] = []

        def compute(*views: Any) -> Any:
            *inputs, part = views
            with np.errstate(all="call", call=lambda _, number: raised.append(number)):
                return self._ufunc(*inputs, out=part)

        if views is None:
            result = compute(*operands, out)
            cost.add_serial(perf_counter() - start, result.size)
        else:
            share(compute, views, cost.grain)
            result = out
            cost.add_parallel(perf_counter() - start, out.size)
        if raised:
            numbers = reduce(or_, raised)
            bits = (bit for number, bit in FLAGS.items() if numbers & number)
            report_errors(self._ufunc.__name__, reduce(or_, bits))
        return result

    def _views(self, operands: Sequence[Any], out: Any) -> list[Any] | None:
        """Return operands and output alike in shape; None where NumPy must see all."""
        if type(out) is not ndarray or out.dtype != self._dtype:
            return None
        if not out.flags.writeable or not has_own_places(out):
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


def share(part: Callable[..., object], views: Sequence[Any], grain: int) -> None:
    """Call a function on parts of arrays of one shape, in several threads.

    Parameters
    ----------
    part : callable
        What computes of parts of the arrays, which lie at the same place in each.
    views : sequence of arrays and numbers
        The last is the output, whose memory is divided; numbers and arrays of no
        dimensions go to each call.
    grain : int
        So many elements or more are worth a part of their own.
    """
    arrays = [x for x in views if type(x) is ndarray and x.ndim]
    if all(x.flags.f_contiguous for x in arrays):
        views = [x.T if type(x) is ndarray else x for x in views]
        arrays = [x.T for x in arrays]
    if all(x.flags.c_contiguous for x in arrays):
        views = [x.reshape(-1) if type(x) is ndarray and x.ndim else x for x in views]
    out = views[-1]
    # Along the outermost axis in memory that has parts enough.
    outermost = sorted(range(out.ndim), key=lambda k: -abs(out.strides[k]))
    enough = min(PYTHON_PIECES * _config.num_threads(), max(out.shape))
    axis = next(k for k in outermost if out.shape[k] >= enough)
    before = (slice(None),) * axis

    def work(start: int, stop: int) -> None:
        at = (*before, slice(start, stop))
        part(*[x[at] if type(x) is ndarray and x.ndim else x for x in views])

    rows = out.shape[axis]
    least = max(1, grain * rows // out.size)
    if rows > LINE * enough:
        least = -(-least // LINE) * LINE
    threads.run(work, rows, grain=least)
