"""A source that is only numbers: a capacity, what is lent, and faults on demand."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, final

from xdev.memory.blocks import round_up

if TYPE_CHECKING:
    from collections.abc import Iterable


BASE = 1 << 30  # the first address; far from the null pointer
ALIGNMENT = 512  # as CUDA aligns [B]


@final
class FakeSource:
    """Memory that is not there, for tests of pools: a byte count, no fragmentation.

    Parameters
    ----------
    capacity : int
        How much can be lent at a time [B].
    faults : iterable of int
        Which calls fail, counted from 0 over all methods: ``allocate`` with
        ``MemoryError``, the others with ``RuntimeError``, before they do anything.

    Attributes
    ----------
    lent : dict
        ``{address: nbytes}`` of what is out.
    log : list of tuple
        Every call so far: its name and arguments.
    faults : set of int
        May be changed at any time.

    Examples
    --------
    >>> source = FakeSource(capacity=1024, faults={1})
    >>> source.lent == {source.allocate(1000): 1000}
    True
    >>> source.allocate(1)
    Traceback (most recent call last):
    MemoryError: injected: call 1, allocate(1)
    """

    name = "fake"
    alignment = ALIGNMENT

    def __init__(self, capacity: int, faults: Iterable[int] = ()) -> None:
        self.capacity = capacity
        self.faults = set(faults)
        self.lent: dict[int, int] = {}
        self.log: list[tuple[object, ...]] = []
        self._next = BASE
        self._lock = threading.RLock()  # guards the next address and what is lent

    def total(self) -> int:
        """Return the capacity [B]."""
        return self.capacity

    def room(self) -> tuple[int, int]:
        """Return what is left, and the capacity [B]."""
        return self.capacity - sum(self.lent.values()), self.capacity

    def allocate(self, nbytes: int) -> int:
        """Lend a range that was never lent before."""
        self._call(MemoryError, "allocate", nbytes)
        span = round_up(nbytes, ALIGNMENT)
        with self._lock:
            if nbytes > self.room()[0]:
                raise MemoryError(f"{nbytes} B over a capacity of {self.capacity} B")
            # At once: a finalizer that the collector runs here may allocate as well.
            address, self._next = self._next, self._next + span
            self.lent[address] = nbytes; return address  # fmt: skip # noqa: E702 - nothing is raised in between

    def free(self, address: int, nbytes: int) -> None:
        """Take a range back; it must be lent, and of that size."""
        self._call(RuntimeError, "free", address, nbytes)
        with self._lock:
            if self.lent.get(address) != nbytes:
                raise ValueError(f"{nbytes} B at {address:#x} are not lent")
            del self.lent[address]

    def record(self, stream: int) -> tuple[int, int]:
        """Return an event: the stream, and how many calls came before."""
        self._call(RuntimeError, "record", stream)
        return stream, len(self.log)

    def wait(self, stream: int, event: tuple[int, int]) -> None:
        """Note that a stream waits."""
        self._call(RuntimeError, "wait", stream, event)

    def done(self, event: tuple[int, int]) -> bool:
        """Say yes: no work is ever queued."""
        self._call(RuntimeError, "done", event)
        return True

    def synchronize(self) -> None:
        """Note the call."""
        self._call(RuntimeError, "synchronize")

    def _call(self, kind: type[Exception], *call: object) -> None:
        number = len(self.log)
        self.log.append(call)
        if number in self.faults:
            arguments = ", ".join(map(str, call[1:]))
            raise kind(f"injected: call {number}, {call[0]}({arguments})")
