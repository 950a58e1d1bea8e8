"""``transfer_guard``: count, log or forbid xdev's copies between devices."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, final

from xdev.errors import ConfigurationError, XdevError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdev.device import Device

MODES = ("disallow", "log", "allow")
_log = logging.getLogger("xdev.transfer")


@final
class Counts:
    """The copies seen by one guard.

    Attributes
    ----------
    copies : int
        How many.
    nbytes : int
        Their sizes together [B].
    """

    __slots__ = ("copies", "mode", "nbytes")

    def __init__(self, mode: str) -> None:
        self.mode, self.copies, self.nbytes = mode, 0, 0

    def __repr__(self) -> str:
        return f"Counts(copies={self.copies}, nbytes={self.nbytes})"


_guards: ContextVar[tuple[Counts, ...]] = ContextVar("xdev_transfer_guards", default=())


@contextmanager
def transfer_guard(mode: str) -> Iterator[Counts]:
    """Watch the copies between devices that xdev makes inside a ``with`` block.

    Guards nest; each sees the copies made inside it, in its own context (thread or
    task).

    Parameters
    ----------
    mode : {"disallow", "log", "allow"}
        Whether a copy raises :class:`~xdev.XdevError` before it is made, is written to
        the logger ``xdev.transfer``, or is only counted.

    Yields
    ------
    Counts
        ``copies`` and ``nbytes`` [B] so far.

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
    if mode not in MODES:
        message = f"transfer_guard({mode!r}): use one of {', '.join(MODES)}"
        raise ConfigurationError(message)
    counts = Counts(mode)
    token = _guards.set((*_guards.get(), counts))
    try:
        yield counts
    finally:
        _guards.reset(token)


def announce(source: Device, target: Device, nbytes: int) -> None:
    """Tell the guards of a copy that is about to be made.

    Raises
    ------
    XdevError
        A guard disallows it.
    """
    guards = _guards.get()
    if any(guard.mode == "disallow" for guard in guards):
        message = (
            f"a copy of {nbytes:,} B from {source} to {target} under "
            f'transfer_guard("disallow"): move the array before the guarded block, or '
            f'use transfer_guard("log") to see every copy'
        )
        raise XdevError(message)
    for guard in guards:
        guard.copies += 1
        guard.nbytes += nbytes
        if guard.mode == "log":
            _log.warning("copy of %d B from %s to %s", nbytes, source, target)
