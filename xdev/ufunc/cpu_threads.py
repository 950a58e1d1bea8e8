"""A call of a NumPy ufunc in several threads, each on parts of the result.

The threads run the ufunc's inner loop. Where it is worth it is measured on the calls
themselves, since a function may take a tenth of a nanosecond for an element, or a
microsecond.
"""

from __future__ import annotations

from sys import maxsize
from time import perf_counter
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy import ndarray

from xdev import _config
from xdev.ufunc import cpu_results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.ufunc.cpu_ranges import Operands

LEAST = 1024  # elements that tell how long one takes
CUT = 50e-6  # what takes one thread so long is worth several: waking some takes 10 µs
CALLS = 2  # are measured first: the very first one meets pages that nobody touched yet
TELLING = 20e-6  # what takes less says little of the time of an element
SURE = 4  # times CUT: what takes less is measured first at its own size
PIECE = 5e-6  # seconds of work that are worth a thread's look for them
LINE = 64  # elements: no two threads write to one cache line
SLOWER = 1.25  # so much slower are several threads where the processors have other work
REST = 15  # calls that then go by one thread


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
    many : int
        Results of so many elements are worth several threads; 0: not known yet.
    """

    __slots__ = (
        *("_alone", "_calls", "_dtypes", "_loop", "_rest", "_seconds"),
        *("many", "ufunc"),
    )

    def __init__(
        self, ufunc: np.ufunc, loop: int, dtypes: tuple[np.dtype[Any], ...]
    ) -> None:
        self.ufunc, self._loop, self._dtypes = ufunc, loop, dtypes
        self.many = maxsize if _config.num_threads() == 1 else 0
        self._calls = self._rest = 0  # measured ones; those to go by one thread
        self._seconds = float("inf")  # for an element, the least measured
        # The same of one thread, for each power of two of sizes: caches end somewhere.
        self._alone: dict[int, float] = {}

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
        if self._rest:
            self._rest -= 1
        elif size >= self.many > 0 and outs is not None and self._sure(size):
            from xdev.ufunc import cpu_ranges  # with all that threads need

            call = cpu_ranges.operands(operands, outs, self._dtypes)
            if call is not None and (own or _apart(operands, outs)):
                return self._spread(call, outs)
        start = perf_counter()
        result = self.alone(operands, outs)
        seconds = perf_counter() - start
        size = (result[0] if type(result) is tuple else result).size
        self._learn(seconds, size)
        if size:
            known = self._alone.get(size.bit_length(), seconds / size)
            self._alone[size.bit_length()] = min(known, seconds / size)
        return result

    def alone(self, operands: Sequence[Any], outs: tuple[Any, ...] | None) -> Any:
        """Compute the ufunc of many elements in one thread."""
        return cpu_results.call_by_rows(self.ufunc, operands, outs, self._dtypes)

    def at(self, a: Any, indices: Any, *values: Any) -> None:
        """Work in place at indices, as :meth:`numpy.ufunc.at` does."""
        from xdev.ufunc import cpu_ranges

        exceptions = cpu_ranges.run_indexed(
            self._loop, self._dtypes, a, indices, values
        )
        if exceptions is None:
            self.ufunc.at(a, indices, *values)
        elif exceptions:
            from xdev.ufunc import float_errors

            float_errors.tell(self.ufunc.__name__, exceptions)

    @property
    def small(self) -> int:
        """So many elements or more are worth a look at the time that they take."""
        if self.many:
            return self.many
        return 0 if self._calls and self._seconds * LEAST >= CUT else LEAST

    def _sure(self, size: int) -> bool:
        """Say whether it is known well enough that several threads are worth it."""
        return size >= SURE * self.many or size.bit_length() in self._alone

    def _learn(self, seconds: float, size: int) -> None:
        """Take in how long one thread took, or would have taken."""
        if self.many < maxsize:
            self._seconds = min(self._seconds, seconds / max(size, 1))
            self._calls += size >= LEAST or seconds >= TELLING
            if self._calls >= CALLS:
                self.many = max(int(CUT / self._seconds), 2)

    def _spread(self, call: Operands, outs: tuple[Any, ...]) -> Any:
        """Compute ranges of the result, and tell of floating point errors then."""
        from xdev.ufunc import cpu_ranges, float_errors

        size = outs[0].size
        grain = int(PIECE / self._seconds) + 1
        start = perf_counter()
        exceptions = cpu_ranges.run(
            self._loop, call, grain=grain if grain < LINE else -(-grain // LINE) * LINE
        )
        seconds = perf_counter() - start
        alone = self._alone.get(size.bit_length())
        if alone is not None and seconds > SLOWER * alone * size:
            self._rest = REST
        self._learn(seconds * _config.num_threads(), size)
        float_errors.tell(self.ufunc.__name__, exceptions)
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
