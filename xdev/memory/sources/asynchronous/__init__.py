"""Sources that lend in stream order: a pool of the driver's own, under the pool's.

Each file is one: a CUDA device, a fake. They stand beside the source of the same name,
which knows the device.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, Protocol

from xdev.errors import ConfigurationError
from xdev.memory.sources.cuda import CudaSource
from xdev.memory.sources.fake import FakeSource

__all__ = ["AsyncSource", "in_stream_order"]


class AsyncSource(Protocol):
    """Raw memory that is lent to a stream, and taken back in the order of its work.

    What is taken back is kept for later requests of any stream; the source sees to
    what each of them has to wait for. ``alignment``, ``name`` and ``total()`` are
    :class:`~xdev.memory.sources.Source`'s, and so are the last four methods.
    """

    alignment: int

    def allocate(self, nbytes: int, stream: int) -> int:
        """Return the address of ``nbytes`` for work queued on a stream from now on.

        Raises
        ------
        MemoryError
            There are not so many.
        """

    def free(self, address: int, nbytes: int, stream: int) -> None:
        """Take back what ``allocate`` returned, after the work queued on a stream."""

    def held(self) -> int:
        """Return what the source has from the device, lent and kept [B]."""

    def trim(self, keep: int) -> None:
        """Give back what is not lent, until no more than ``keep`` bytes are held.

        What work that is not known to be done may still use, stays.
        """

    def record(self, stream: int) -> Any:
        """Return an event of all work that is queued on a stream."""

    def wait(self, stream: int, event: Any) -> None:
        """Let work queued on a stream from now on wait for an event."""

    def done(self, event: Any) -> bool:
        """Say whether the work before an event is done."""

    def synchronize(self) -> None:
        """Wait for all queued work."""


@singledispatch
def in_stream_order(source: Any) -> AsyncSource:
    """Return the source in stream order that stands beside a plain one.

    Raises
    ------
    ConfigurationError
        There is none.
    """
    name = getattr(source, "name", type(source).__name__)
    message = f"{name} has no memory in stream order, which policy 'async' needs"
    raise ConfigurationError(f"{message}: use 'split', 'binned', 'simple' or 'none'")


@in_stream_order.register(CudaSource)
def _of_cuda(source: CudaSource) -> AsyncSource:
    from xdev.memory.sources.asynchronous.cuda import CudaAsyncSource

    return CudaAsyncSource(source)


@in_stream_order.register(FakeSource)
def _of_a_fake(source: FakeSource) -> AsyncSource:
    from xdev.memory.sources.asynchronous.fake import FakeAsyncSource

    return FakeAsyncSource(source)
