"""A source that is only numbers: a capacity, what is lent, and faults on demand."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, final

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
            if (address, nbytes) not in self.lent.items():
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

    def in_stream_order(self) -> FakeAsyncSource:
        """Return a driver's pool in front of this."""
        return FakeAsyncSource(self)

    def _call(self, kind: type[Exception], *call: object) -> None:
        number = len(self.log)
        self.log.append(call)
        if number in self.faults:
            arguments = ", ".join(map(str, call[1:]))
            raise kind(f"injected: call {number}, {call[0]}({arguments})")


NOBODY, LENT = -1, -2  # whose work may use a range: no stream's, or its holder's


@final
class FakeAsyncSource:
    """Memory in stream order that is not there, for tests of pools.

    A range that was freed serves the next request of its very size, on another stream
    only after :meth:`synchronize`. Nothing else is known of queued work: it is done
    when, and only when, somebody waits for it. Ranges are the plain source's, whose
    ``lent`` is what is held; ``log`` has every ``allocate``, ``free`` and ``trim``.
    """

    def __init__(self, source: FakeSource) -> None:
        self._plain = source
        self.log: list[tuple[object, ...]] = []
        self._ranges: dict[int, tuple[int, int]] = {}  # bytes, and whose work uses them
        self._lock = threading.RLock()  # guards it

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def allocate(self, nbytes: int, stream: int) -> int:
        """Lend a kept range, or a new one, if need be in place of kept ones."""
        self.log.append(("allocate", nbytes, stream))
        with self._lock:
            if not self._keeps(nbytes, stream):
                if nbytes > self._plain.room()[0]:
                    self._give_back(0)
                fresh = map(self._plain.allocate, (nbytes,))
                self._ranges.update(zip(fresh, [(nbytes, NOBODY)], strict=True))
            at = self._keeps(nbytes, stream)
            self._ranges[at] = nbytes, LENT; return at  # fmt: skip # noqa: E702 - nothing is raised in between

    def _keeps(self, nbytes: int, stream: int) -> int:
        """Return a kept range that may serve, or 0."""
        for address, (size, user) in self._ranges.items():
            if size == nbytes and user in (stream, NOBODY):
                return address
        return 0

    def free(self, address: int, nbytes: int, stream: int) -> None:
        """Keep a range that was lent."""
        self.log.append(("free", address, nbytes, stream))
        with self._lock:
            if self._ranges.get(address) != (nbytes, LENT):
                raise ValueError(f"{nbytes} B at {address:#x} are not lent")
            self._ranges[address] = nbytes, stream

    def held(self) -> int:
        """Return the bytes of all ranges [B]."""
        with self._lock:
            return sum(nbytes for nbytes, _ in self._ranges.values())

    def trim(self, keep: int) -> None:
        """Give back kept ranges that nobody uses."""
        self.log.append(("trim", keep))
        with self._lock:
            self._give_back(keep)

    def _give_back(self, keep: int) -> None:
        for address, (nbytes, user) in list(self._ranges.items()):
            if self.held() <= keep:
                break
            if user == NOBODY:
                freed = map(self._plain.free, (address,), (nbytes,))
                list(map(self._ranges.pop, (address,), freed))

    def synchronize(self) -> None:
        """Know all work to be done."""
        self._plain.synchronize()
        with self._lock:
            kept = [at for at, (_, user) in self._ranges.items() if user != LENT]
            self._ranges |= {at: (self._ranges[at][0], NOBODY) for at in kept}
