"""A call of a NumPy ufunc in several threads, each on parts of the result.

The threads run the ufunc's inner loop.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy import ndarray

from xdev.compile.threads import Pace
from xdev.ufunc import cpu_results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.ufunc.cpu_ranges import Operands


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
    pace : Pace
        Which calls are worth several threads.
    """

    __slots__ = ("_dtypes", "_loop", "pace", "ufunc")

    def __init__(
        self, ufunc: np.ufunc, loop: int, dtypes: tuple[np.dtype[Any], ...]
    ) -> None:
        self.ufunc, self._loop, self._dtypes = ufunc, loop, dtypes
        self.pace = Pace()

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
        if self.pace.is_long(size) and outs is not None:
            from xdev.ufunc import cpu_ranges  # with all that threads need

            call = cpu_ranges.operands(operands, outs, self._dtypes)
            if call is not None and (own or _apart(operands, outs)):
                return self._spread(call, outs)
        start = perf_counter()
        result = self.alone(operands, outs)
        seconds = perf_counter() - start
        first = result[0] if type(result) is tuple else result
        self.pace.alone(seconds, first.size)
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
            from xdev.ufunc import cpu_ranges

            cpu_ranges.report_errors(self.ufunc.__name__, exceptions)

    def _spread(self, call: Operands, outs: tuple[Any, ...]) -> Any:
        """Compute ranges of the result, and tell of floating point errors then."""
        from xdev.ufunc import cpu_ranges

        start = perf_counter()
        exceptions = cpu_ranges.run(self._loop, call, grain=self.pace.grain)
        self.pace.together(perf_counter() - start, outs[0].size)
        cpu_ranges.report_errors(self.ufunc.__name__, exceptions)
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
