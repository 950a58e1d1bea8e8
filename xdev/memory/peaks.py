"""The most memory in use between two moments."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, final

from xdev.device import as_device
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

    def __init__(self) -> None:
        self._closed: list[Scope] = []
        self._open: list[tuple[Pool, Scope]] = []

    def __repr__(self) -> str:
        return f"Peak(nbytes={self.nbytes}, reserved={self.reserved})"

    @property
    def nbytes(self) -> int:
        """Bytes in use at most [B]."""
        return sum(scope.allocated for scope in self._scopes())

    @property
    def reserved(self) -> int:
        """Bytes held at most [B]."""
        return sum(scope.reserved for scope in self._scopes())

    def _scopes(self) -> list[Scope]:
        for pool, _ in self._open:
            pool.stats()  # brings open scopes up to date
        return [*self._closed, *(scope for _, scope in self._open)]

    def follow(self, pool: Pool) -> None:
        """Add a pool's peaks."""
        self._open.append((pool, pool.open_scope()))

    def close(self) -> None:
        """Keep the peaks so far."""
        for pool, scope in self._open:
            pool.close_scope(scope)
            self._closed.append(scope)
        self._open.clear()


@contextmanager
def peak(device: object = None, kind: str | None = None) -> Iterator[Peak]:
    """Follow the most memory in use inside a ``with`` block; blocks may nest.

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
    most = Peak()
    for name in registry.kinds(where):
        usual = name == registry.kinds(where)[0]
        if kind in (None, name) and (usual or registry.existing(where, name)):
            most.follow(registry.pool(where, name))
    try:
        yield most
    finally:
        most.close()
