"""The most memory in use between two moments."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, final

from xdev.device import Device, as_device
from xdev.memory import registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdev.memory.ledger import Scope
    from xdev.memory.pools import Pool


@final
class Peak:
    """The most that was in use while a :func:`peak` was open.

    Attributes
    ----------
    nbytes : int
        Bytes in use at most, with those in use at the start [B].
    reserved : int
        Bytes held from the system or the driver at most [B].
    """

    def __init__(self, where: Device, kind: str | None) -> None:
        self._where, self._kind = where, kind
        self._open: dict[Pool, Scope] = {}
        self._final: tuple[int, int] | None = None

    def __repr__(self) -> str:
        return f"Peak(nbytes={self.nbytes}, reserved={self.reserved})"

    @property
    def nbytes(self) -> int:
        """Bytes in use at most [B]."""
        return self._most()[0]

    @property
    def reserved(self) -> int:
        """Bytes held at most [B]."""
        return self._most()[1]

    def open(self) -> None:
        """Follow the pools that there are; one that is made later is followed whole."""
        for pool in registry.existing(self._where, self._kind):
            self._open[pool] = pool.open_scope()

    def close(self) -> None:
        """Keep the peaks so far."""
        self._final = self._most()
        for pool, scope in self._open.items():
            pool.close_scope(scope)
        self._open.clear()

    def _most(self) -> tuple[int, int]:
        if self._final is not None:
            return self._final
        allocated = reserved = 0
        for pool in registry.existing(self._where, self._kind):
            ever = pool.stock.look(lambda _, ledger: ledger.peaks(ever=True))
            scope = self._open.get(pool, ever)
            allocated += scope.allocated
            reserved += scope.reserved
        return allocated, reserved


@contextmanager
def peak(device: object = None, kind: str | None = None) -> Iterator[Peak]:
    """Follow the most memory in use inside a ``with`` block.

    It counts what all threads take from the pools. On the CPU that is not all there is:
    NumPy's own arrays, which are also xdev's of less than 64 KiB and results of NumPy's
    functions, are not seen (:func:`tracemalloc.get_traced_memory` sees them; those of
    64 KiB and more are the pool's while the NumPy bridge is installed). Blocks may nest
    and overlap in any order, on one device or several. Kinds have peaks of their own;
    without ``kind`` it is their sum.

    Parameters are :func:`~xdev.memory.allocated`'s.

    Examples
    --------
    >>> import xdev
    >>> with peak("cpu") as most:
    ...     x = xdev.empty(1_000_000, device="cpu")
    ...     del x
    >>> most.nbytes >= 8_000_000
    True
    """
    where = as_device(device)
    registry.check_kind(where, kind)
    most = Peak(where, kind)
    try:
        most.open()
        yield most
    finally:
        most.close()
