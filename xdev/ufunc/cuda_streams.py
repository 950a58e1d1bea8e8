"""Order between CuPy's current stream and the streams that other owners name."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from xdev import _optional

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdev.ufunc.cuda_operands import Array

LEGACY = 1  # the null stream's name in __cuda_array_interface__, where 0 is not allowed


@contextmanager
def ordered(arrays: list[Array]) -> Iterator[int]:
    """Run a launch after the work of the arrays' streams, and their next work after it.

    The order is the device's business, by events: the host waits for nothing.

    Parameters
    ----------
    arrays : list of Array
        All operands.

    Yields
    ------
    int
        The handle of CuPy's current stream, which the launch goes to.
    """
    cuda = _optional.cupy().cuda
    current = cuda.get_current_stream()
    here = current.ptr or LEGACY
    others = {x.stream for x in arrays if x.stream is not None and x.stream != here}
    if not others:
        yield current.ptr
        return
    streams = [cuda.ExternalStream(stream) for stream in others]
    for stream in streams:
        current.wait_event(stream.record(cuda.Event(disable_timing=True)))
    yield current.ptr
    done = current.record(cuda.Event(disable_timing=True))
    for stream in streams:
        stream.wait_event(done)
