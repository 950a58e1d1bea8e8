"""A driver's pool that is only numbers, in front of a fake source."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from xdev.memory.sources.fake import FakeSource

NOBODY = -1  # whose work may use a kept range: no stream's


@final
class FakeAsyncSource:
    """Memory in stream order that is not there, for tests of pools.

    A range that was freed serves the next request of its very size, on another stream
    only after :meth:`synchronize`. Nothing else is known of queued work: it is done
    when, and only when, somebody waits for it.

    Parameters
    ----------
    source : FakeSource
        Where ranges come from; its ``lent`` is what is held, its ``faults`` and ``log``
        count its calls.

    Attributes
    ----------
    log : list of tuple
        Every ``allocate``, ``free`` and ``trim`` so far, with its arguments.

    Examples
    --------
    >>> from xdev.memory.sources.fake import FakeSource
    >>> source = FakeAsyncSource(FakeSource(capacity=1024))
    >>> address = source.allocate(1000, stream=7)
    >>> source.free(address, 1000, stream=7)
    >>> source.held(), source.allocate(1000, stream=7) == address
    (1000, True)
    """

    def __init__(self, source: FakeSource) -> None:
        self._plain = source
        self.name, self.alignment = source.name, source.alignment
        self.total, self.room = source.total, source.room
        self.record, self.wait, self.done = source.record, source.wait, source.done
        self.log: list[tuple[object, ...]] = []
        self._used: dict[int, int] = {}
        self._kept: dict[int, tuple[int, int]] = {}  # bytes, and whose work uses them
        self._lock = threading.RLock()  # guards the two

    def allocate(self, nbytes: int, stream: int) -> int:
        """Lend a kept range, or a new one, if need be in place of kept ones."""
        self.log.append(("allocate", nbytes, stream))
        with self._lock: return self._lend(nbytes, stream)  # fmt: skip # noqa: E701 - as in a stock

    def _lend(self, nbytes: int, stream: int) -> int:
        if not self._keeps(nbytes, stream):
            self._fetch(nbytes)
        at = self._keeps(nbytes, stream)
        self._used[at] = nbytes; del self._kept[at]; return at  # fmt: skip # noqa: E702 - nothing is raised in between

    def _keeps(self, nbytes: int, stream: int) -> int:
        """Return a kept range that may serve, or 0."""
        for address, (size, user) in self._kept.items():
            if size == nbytes and user in (stream, NOBODY):
                return address
        return 0

    def _fetch(self, nbytes: int) -> None:
        """Keep a range of the source more, in the place of others if need be."""
        if nbytes > self._plain.room()[0]:
            self._give_back(0)
        fresh = map(self._plain.allocate, (nbytes,))
        self._kept.update(zip(fresh, [(nbytes, NOBODY)], strict=True))

    def free(self, address: int, nbytes: int, stream: int) -> None:
        """Keep a range that was lent."""
        self.log.append(("free", address, nbytes, stream))
        with self._lock: self._keep(address, nbytes, stream)  # fmt: skip # noqa: E701 - as in a stock

    def _keep(self, address: int, nbytes: int, stream: int) -> None:
        if self._used.get(address) != nbytes:
            raise ValueError(f"{nbytes} B at {address:#x} are not lent")
        kept = nbytes, stream
        del self._used[address]; self._kept[address] = kept  # fmt: skip # noqa: E702 - likewise

    def held(self) -> int:
        """Return the bytes of all ranges [B]."""
        with self._lock: return self._held()  # fmt: skip # noqa: E701 - as in a stock

    def _held(self) -> int:
        kept = sum(nbytes for nbytes, _ in self._kept.values())
        return kept + sum(self._used.values())

    def trim(self, keep: int) -> None:
        """Give back kept ranges that nobody uses."""
        self.log.append(("trim", keep))
        with self._lock: self._give_back(keep)  # fmt: skip # noqa: E701 - as in a stock

    def _give_back(self, keep: int) -> None:
        for address, (nbytes, user) in list(self._kept.items()):
            if self.held() <= keep:
                break
            if user == NOBODY:
                freed = map(self._plain.free, (address,), (nbytes,))
                list(map(self._kept.pop, (address,), freed))

    def synchronize(self) -> None:
        """Know all work to be done."""
        self._plain.synchronize()
        with self._lock: self._forget_users()  # fmt: skip # noqa: E701 - as in a stock

    def _forget_users(self) -> None:
        self._kept = {at: (n, NOBODY) for at, (n, _) in self._kept.items()}
