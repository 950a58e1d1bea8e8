"""Order between CuPy's current stream and the streams that other owners name."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from xdev import _optional
from xdev.device.streams import live_streams
from xdev.memory.arrays import mark_uses

if TYPE_CHECKING:
    from xdev.ufunc.cuda_operands import Array

LEGACY = 1  # the null stream's name in __cuda_array_interface__, where 0 is not allowed


@final
class ordered:  # noqa: N801 - used as a function
    """Run a launch after the work of the arrays' streams, and their next work after it.

    The order is the device's business, by events: the host waits for nothing, but for
    the launch where a library gives a view of its array and no stream to order. Arrays
    of the pools stay, once dropped, until the launch is done.

    Parameters
    ----------
    arrays : list of Array
        All operands.
    """

    __slots__ = ("_arrays", "_current", "_others")

    def __init__(self, arrays: list[Array]) -> None:
        self._arrays = arrays
        self._others: set[int] = set()
        self._current = 0

    def __enter__(self) -> None:
        self._current = _optional.cupy().cuda.get_current_stream().ptr
        here = self._current or LEGACY
        streams = (x.stream for x in self._arrays)
        self._others = {s for s in streams if s is not None and s != here}
        if self._current in live_streams.captured:
            self._others = set()  # the graph's replays are ordered, not its capture
        for other in self._others:
            _order(other, self._current)
        mark_uses([x.held for x in self._arrays])

    def __exit__(self, *_: object) -> None:
        for other in self._others:
            _order(self._current, other)
        if any(x.view is not None and x.stream is None for x in self._arrays):
            _optional.cupy().cuda.get_current_stream().synchronize()


def _order(first: int, then: int) -> None:
    """Let the later work of one stream wait for the work queued on another so far."""
    cuda = _optional.cupy().cuda
    event = cuda.Event(disable_timing=True)
    cuda.runtime.eventRecord(event.ptr, first)
    cuda.runtime.streamWaitEvent(then, event.ptr)
