"""``transfer_guard``: count, log or forbid xdev's copies between devices."""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import ContextDecorator
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple, Self, final

from xdev.errors import ConfigurationError, XdevError

if TYPE_CHECKING:
    from xdev.device import Device

MODES = ("disallow", "log", "allow")
_log = logging.getLogger("xdev.transfer")


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
        with self._lock:
            return sum(direction.copies for direction in self.routes.values())

    @property
    def nbytes(self) -> int:
        """Their sizes together [B]."""
        with self._lock:
            return sum(direction.nbytes for direction in self.routes.values())

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


_guards: ContextVar[tuple[Counts, ...]] = ContextVar("xdev_transfer_guards", default=())


@final
class transfer_guard(ContextDecorator):  # noqa: N801 - called as a function
    """Watch the copies between devices that xdev makes inside a ``with`` block.

    Guards nest; each sees the copies made inside it, in its own context (thread or
    task). Without ``with`` it does nothing.

    Parameters
    ----------
    mode : {"disallow", "log", "allow"}
        Whether a copy raises :class:`~xdev.XdevError` before it is made, is written to
        the logger ``xdev.transfer`` with the line that asked for it, or is only
        counted. Copies on one device are none.

    Yields
    ------
    Counts
        ``copies`` and ``nbytes`` [B] so far, and those of each direction in
        ``routes``.

    Raises
    ------
    ConfigurationError
        There is no such mode.

    Examples
    --------
    >>> with transfer_guard("disallow") as counts:
    ...     pass
    >>> counts
    Counts(copies=0, nbytes=0)
    """

    def __init__(self, mode: str) -> None:
        if mode not in MODES:
            message = f"transfer_guard({mode!r}): use one of {', '.join(MODES)}"
            raise ConfigurationError(message)
        self._mode = mode

    def _recreate_cm(self) -> Self:
        """Return one for each call of a decorated function: calls may nest."""
        return type(self)(self._mode)

    def __enter__(self) -> Counts:
        counts = Counts(self._mode)
        _guards.set((*_guards.get(), counts))
        return counts

    def __exit__(self, *_: object) -> None:
        _guards.set(_guards.get()[:-1])  # no token: threads may share this object


def announce(source: Device, target: Device, nbytes: int, copies: int = 1) -> None:
    """Tell the guards of copies that are about to be made.

    Parameters
    ----------
    source, target : Device
        Where from and to.
    nbytes : int
        The arrays' sizes together [B].
    copies : int
        How many arrays, of those that cross together.

    Raises
    ------
    XdevError
        A guard disallows it.
    """
    guards = _guards.get()
    if not guards:
        return
    if any(guard.mode == "disallow" for guard in guards):
        message = (
            f"a copy of {nbytes:,} B from {source} to {target} under "
            f'transfer_guard("disallow"): move the array before the guarded block, or '
            f'use transfer_guard("log") to see every copy'
        )
        raise XdevError(message)
    for guard in guards:
        guard.add(source, target, nbytes, copies)
        if guard.mode == "log":
            _log.warning(
                "copy of %d B from %s to %s",
                nbytes,
                source,
                target,
                stacklevel=_frames_of_xdev(),
            )


def _frames_of_xdev() -> int:
    """Return how many frames up the first caller is that is not xdev's own."""
    level, frame = 1, sys._getframe(1)  # noqa: SLF001 - as logging itself does
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("xdev."):
        level, frame = level + 1, frame.f_back
    return level
