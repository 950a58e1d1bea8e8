"""A call of a NumPy ufunc in several threads, each on a part of the result.

NumPy lets go of the interpreter's lock while it computes. Where it is worth it is
measured on the calls themselves, since a function may take a tenth of a nanosecond for
an element, or a microsecond.
"""

from __future__ import annotations

from sys import maxsize
from time import perf_counter
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy import ndarray

from xdev import _config
from xdev.compile import threads
from xdev.ufunc import float_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

CUT = 150e-6  # what takes one thread so long is worth several: waking one takes 20 µs
TELLING = 20e-6  # what takes less says little of the time of an element
REST = 15  # where several threads were slower, the processors are somebody else's
GRAIN = 1024  # elements: no two threads write to one cache line


@final
class Threaded:
    """A NumPy ufunc that computes large results in several threads.

    Attributes
    ----------
    ufunc : numpy.ufunc
        What computes.
    many : int
        Results of so many elements are worth several threads; 0: not known yet.
    """

    __slots__ = ("_rest", "_seconds", "many", "ufunc")

    def __init__(self, ufunc: np.ufunc) -> None:
        self.ufunc = ufunc
        self.many = maxsize if _config.num_threads() == 1 else 0
        self._rest = 0  # calls to go by one thread
        self._seconds = float("inf")  # for an element, the least measured

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
        elif size >= self.many > 0 and outs is not None:
            parts = _parts([*operands, *outs], len(operands), own=own)
            if parts is not None:
                return self._spread(*parts, outs, size)
        keywords = {} if outs is None else {"out": outs}
        start = perf_counter()
        result = self.ufunc(*operands, **keywords)
        seconds = perf_counter() - start
        self._learn(seconds, (result[0] if type(result) is tuple else result).size)
        return result

    def _learn(self, seconds: float, size: int) -> None:
        """Take in how long one thread took, or would have taken."""
        if self.many < maxsize and (size >= GRAIN or seconds >= TELLING):
            each = seconds / max(size, 1)
            if each < self._seconds:
                self._seconds, self.many = each, max(int(CUT / each), 2)

    def _spread(
        self, arrays: list[Any], axis: int, outs: tuple[Any, ...], size: int
    ) -> Any:
        """Compute ranges of an axis, and tell of floating point errors at the end."""
        nout, ufunc = len(outs), self.ufunc
        extent = arrays[-1].shape[axis]
        before = [_before(x, axis, arrays[-1]) for x in arrays]
        errors = float_errors.Errors()

        def part(start: int, stop: int) -> None:
            mine = slice(start, stop)
            views = [
                x if place is None else x[(*place, mine)]
                for x, place in zip(arrays, before, strict=True)
            ]
            with np.errstate(all="call", call=errors.collect):
                ufunc(*views[:-nout], out=tuple(views[-nout:]))

        start = perf_counter()
        threads.run(part, extent, grain=max(GRAIN * extent // size, 1))
        seconds = perf_counter() - start
        if seconds > self._seconds * size:
            self._rest = REST
        self._learn(seconds * _config.num_threads(), size)
        errors.tell(ufunc.__name__)
        return outs if nout > 1 else outs[0]


def _parts(arrays: list[Any], nin: int, *, own: bool) -> tuple[list[Any], int] | None:
    """Return the operands and the axis along which to cut them, None for neither."""
    outs = arrays[nin:]
    shape = outs[0].shape
    if not own and not _apart(arrays[:nin], outs):
        return None
    flat = [_flat(x, shape) for x in arrays]
    if all(x is not None for x in flat):
        return flat, 0
    steps = outs[0].strides
    axes = [k for k, n in enumerate(shape) if n >= 2 * _config.num_threads()]
    if not axes or any(x.shape != shape for x in outs):
        return None
    return arrays, max(axes, key=lambda k: abs(steps[k]))


def _apart(inputs: Sequence[Any], outs: Sequence[Any]) -> bool:
    """Say whether outputs are arrays of which no thread writes what another uses."""
    for k, out in enumerate(outs):
        if type(out) is not ndarray:
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


def _flat(x: Any, shape: tuple[int, ...]) -> Any:
    """Return an operand as one axis or as one value, None if it is neither."""
    if type(x) is not ndarray:
        return x
    if x.size == 1:
        return x.reshape(())
    return x.reshape(-1) if x.shape == shape and x.flags.c_contiguous else None


def _before(x: Any, axis: int, out: ndarray[Any, Any]) -> tuple[slice, ...] | None:
    """Return the slices of an operand before a result's axis, None to cut nothing."""
    own = axis - out.ndim + getattr(x, "ndim", 0)
    if own < 0 or x.shape[own] == 1:
        return None
    return (slice(None),) * own
