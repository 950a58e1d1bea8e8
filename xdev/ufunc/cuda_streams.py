"""Order between CuPy's current stream and the streams that other owners name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from xdev import _optional

if TYPE_CHECKING:
    from xdev.ufunc.cuda_operands import Array

LEGACY = 1  # the null stream's name in __cuda_array_interface__, where 0 is not allowed


@final
class ordered:  # noqa: N801 - used as a function
    """Run a launch after the work of the arrays' streams, and their next work after it.

    The order is the device's business, by events: the host waits for nothing. Entered,
    it is the handle of CuPy's current stream, which the launch goes to.

    Parameters
    ----------
    arrays : list of Array
        All operands.
    """

    __slots__ = ("_arrays", "_current", "_others")

    def __init__(self, arrays: list[Array]) -> None:
        self._arrays = arrays
        self._others: tuple[Any, ...] = ()
        self._current: Any = None

    def __enter__(self) -> int:
        cuda = _optional.cupy().cuda
        current = cuda.get_current_stream()
        handle: int = current.ptr
        here = handle or LEGACY
        others = {x.stream for x in self._arrays if x.stream not in (None, here)}
        if others:
            self._current = current
            self._others = tuple(map(cuda.ExternalStream, others))
            for stream in self._others:
                current.wait_event(stream.record(cuda.Event(disable_timing=True)))
        return handle

    def __exit__(self, *_: object) -> None:
        if self._others:
            cuda = _optional.cupy().cuda
            done = self._current.record(cuda.Event(disable_timing=True))
            for stream in self._others:
                stream.wait_event(done)
