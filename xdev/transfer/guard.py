"""``transfer_guard``: count, log or forbid xdev's copies between devices."""

from __future__ import annotations

from typing import Self, final

from xdev.device.choice import CallDecorator
from xdev.device.copies import Counts, guards
from xdev.errors import ConfigurationError

MODES = ("disallow", "log", "allow")


@final
class transfer_guard(CallDecorator):  # noqa: N801 - called as a function
    """Watch the copies between devices that xdev makes inside a ``with`` block.

    These are the copies of :func:`to_device` and of all that moves arrays as it does,
    and those of sequences and buffers that become arrays of a device, in ``asarray`` or
    as arguments of a random generator. A number goes along with a launch, and is none.
    Arrays of the fake devices tell, besides, what goes around xdev to the host:
    ``float(x)`` and its like, a format, ``item``, ``tolist``, ``tobytes``, DLPack.

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
        guards.set((*guards.get(), counts))
        return counts

    def __exit__(self, *_: object) -> None:
        guards.set(guards.get()[:-1])  # no token: threads may share this object
