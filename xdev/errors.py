"""Every error that xdev raises on purpose: picklable, and each names the way out."""

from __future__ import annotations


class XdevError(Exception):
    """The base of every error that xdev raises on purpose."""


class ConfigurationError(XdevError, ValueError):
    """A setting (an ``XDEV_*`` variable or an argument of that kind) is invalid."""


class DeviceUnavailableError(XdevError, RuntimeError):
    """A device was asked for that this process cannot use; the text says why."""


class DeviceMismatchError(XdevError, TypeError):
    """Arrays of two devices or two libraries met in one call."""


class UseAfterFreeError(XdevError, RuntimeError):
    """An array or block was used, or freed again, after it was freed."""


class InUseError(XdevError, RuntimeError):
    """Memory was to be freed that a view still uses."""


class OutOfMemoryError(XdevError, MemoryError):
    """A pool could not serve a request even after every step of its ladder.

    Parameters
    ----------
    device : str
        Whose memory it is, as in ``"cuda:0"`` or ``"cpu (pinned)"``.
    asked, allocated, reserved : int
        The request, what is in use, and what is held from the source [B].
    limit : int or None
        The limit in force [B], None without one.
    holders : tuple of str
        The largest live blocks, one text each; empty unless tracking is on.
    """

    def __init__(
        self,
        device: str,
        asked: int,
        allocated: int,
        reserved: int,
        limit: int | None,
        holders: tuple[str, ...] = (),
    ) -> None:
        super().__init__(device, asked, allocated, reserved, limit, holders)
        self.device, self.asked = device, asked
        self.allocated, self.reserved = allocated, reserved
        self.limit, self.holders = limit, holders

    def __str__(self) -> str:
        """Say what was asked, what is held, and what to do."""
        cap = way = ""
        if self.limit is not None:
            cap = f" under a limit of {self.limit:,} B"
            way = ", or raise the limit with xdev.memory.set_limit(nbytes, device)"
        largest = "".join(f"\n  {holder}" for holder in self.holders)
        return (
            f"{self.device}: cannot allocate {self.asked:,} B: {self.allocated:,} B "
            f"are in use and {self.reserved:,} B reserved{cap}, and nothing cached is "
            f"large enough or can be given back. Drop arrays{way}.{largest}"
        )
