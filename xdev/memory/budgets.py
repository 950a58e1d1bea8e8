"""Limits: how much the pools of one device may hold together."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any, final

from xdev import _config
from xdev.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable


@final
class Budget:
    """A limit on reserved bytes, shared by the pools that draw on it.

    Its lock is a leaf: nothing else is called while it is held. A finalizer that the
    collector runs there, in the same thread, may enter it again.

    Parameters
    ----------
    total : callable
        Returns what a share such as ``"80%"`` is of [B].
    """

    def __init__(self, total: Callable[[], int]) -> None:
        self._lock = threading.RLock()
        self._total = total
        self.limit: int | None = None
        self.reserved = 0
        self.pools: weakref.WeakSet[Any] = weakref.WeakSet()

    def set(self, limit: float | str | None) -> None:
        """Set the limit; what is over it stays, and nothing new is added.

        Raises
        ------
        ConfigurationError
            The limit is negative, or no size or share.
        """
        if limit is not None and not isinstance(limit, float):
            limit = _config.parse_limit(limit)
        if isinstance(limit, float):
            if not 0 <= limit <= 1:
                message = f"a share of {limit} is not valid: use 0.0 to 1.0, or '80%'"
                raise ConfigurationError(message)
            limit = int(limit * self._total())
        self.limit = limit

    def draw(self, nbytes: int) -> bool:
        """Count bytes about to be reserved, or say that they are over the limit."""
        with self._lock:
            if self.limit is not None and self.reserved + nbytes > self.limit:
                return False
            self.reserved += nbytes
            return True

    def refund(self, nbytes: int) -> None:
        """Count bytes given back."""
        with self._lock:
            self.reserved -= nbytes

    def after_fork(self) -> None:
        """Start afresh in a forked child, whose pools are empty."""
        self._lock = threading.RLock()
        self.reserved = 0
