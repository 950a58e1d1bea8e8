"""Copies between devices: told to the guards that watch, before they are made."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple, final

from xdev.errors import XdevError, users_level

if TYPE_CHECKING:
    from xdev.device.choice import Device


@final
class Counts:
    """The copies seen by one guard.

    Attributes
    ----------
    copies : int
        How many; one that is made in pieces counts once.
    nbytes : int
        Their sizes together [B].
    routes : dict of (str, str) to Direction
        ``copies`` and ``nbytes`` of each direction, as in ``("cpu", "cuda:0")``.
    """

    __slots__ = ("_lock", "mode", "routes")

    def __init__(self, mode: str) -> None:
        self.mode, self.routes = mode, dict[tuple[str, str], Direction]()
        self._lock = threading.Lock()  # guards routes; contexts may share a guard

    def add(self, source: Device, target: Device, nbytes: int, copies: int) -> None:
        """Count copies."""
        route = str(source), str(target)
        with self._lock:
            before, held = self.routes.get(route, (0, 0))
            self.routes[route] = Direction(before + copies, held + nbytes)

    @property
    def copies(self) -> int:
        """How many."""
        return sum(direction.copies for direction in list(self.routes.values()))

    @property
    def nbytes(self) -> int:
        """Their sizes together [B]."""
        return sum(direction.nbytes for direction in list(self.routes.values()))

    def __repr__(self) -> str:
        return f"Counts(copies={self.copies}, nbytes={self.nbytes})"


class Direction(NamedTuple):
    """The copies from one device to another.

    Attributes
    ----------
    copies : int
        How many.
    nbytes : int
        Their sizes together [B].
    """

    copies: int
    nbytes: int


guards: ContextVar[tuple[Counts, ...]] = ContextVar("xdev_transfer_guards", default=())


def announce(source: Device, target: Device, nbytes: int, copies: int = 1) -> None:
    """Tell the guards of copies that are about to be made."""
    watching = guards.get()
    if not watching:
        return
    if any(guard.mode == "disallow" for guard in watching):
        text = f"a copy of {nbytes:,} B from {source} to {target} under"
        way = "move the array before the guarded block, or use"
        other = 'transfer_guard("log") to see every copy'
        raise XdevError(f'{text} transfer_guard("disallow"): {way} {other}')
    for guard in watching:
        guard.add(source, target, nbytes, copies)
        if guard.mode == "log":
            import logging  # takes 1 ms to load

            record = "copy of %d B from %s to %s", nbytes, source, target
            log = logging.getLogger("xdev.transfer")
            log.warning(*record, stacklevel=users_level())
