"""Sources: where raw memory comes from.

Each file is one backend: pageable host memory; CUDA's, devices' and pinned host
memory; a fake.
"""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["AsyncSource", "Source"]


class Events(Protocol):
    """Events of the work that is queued on the streams of a device."""

    def record(self, stream: int) -> Any:
        """Return an event of all work that is queued on a stream."""

    def wait(self, stream: int, event: Any) -> None:
        """Let work queued on a stream from now on wait for an event."""

    def done(self, event: Any) -> bool:
        """Say whether the work before an event is done."""

    def synchronize(self) -> None:
        """Wait for all queued work."""


class Source(Events, Protocol):
    """Raw memory of one device and kind.

    A source may also say ``name`` (whose memory it is), ``alignment`` (what divides
    every address that it returns, and then every block's [B]), ``total()`` (what a
    share of it is of [B]; without one, limits are bytes), ``in_stream_order()`` (the
    :class:`AsyncSource` that stands beside it) and ``retired()`` (the handles
    of streams that ended since the last call, with all their work done; until it says
    so, a stream's handle must not become another's).

    A pool calls ``allocate``, ``free`` and ``synchronize`` one at a time, and none of
    the methods while it holds the lock of its ledger. What raises has done nothing:
    Ctrl-C may come between any two lines, so the last line does it.
    """

    def allocate(self, nbytes: int) -> int:
        """Return the address of ``nbytes`` fresh bytes.

        Raises
        ------
        MemoryError
            There are not so many.
        """

    def free(self, address: int, nbytes: int) -> None:
        """Take back what ``allocate`` returned, after queued work that uses it."""


class AsyncSource(Events, Protocol):
    """Raw memory that is lent to a stream, and taken back in the order of its work.

    What is taken back is kept for later requests of any stream; the source sees to
    what each of them has to wait for. ``alignment``, ``name`` and ``total()`` are
    :class:`~xdev.memory.sources.Source`'s.
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
