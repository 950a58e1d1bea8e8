"""Every error that xdev raises on purpose: picklable, and each names the way out."""

from __future__ import annotations

import reprlib
import sys
from typing import Any

__all__ = [
    "CaptureError",
    "ConfigurationError",
    "DeviceMismatchError",
    "DeviceUnavailableError",
    "InUseError",
    "MemoryCorruptionError",
    "OutOfMemoryError",
    "UseAfterFreeError",
    "XdevError",
]
__dir__ = __all__.copy  # what Tab shows

LONGEST_TEXT = 60  # of an object in a message
#: Where users find a class that is defined elsewhere.
_PUBLIC = {"xdev.device.fake_arrays": "xdev.testing"}


def type_name(x: Any) -> str:
    """Return what messages call an object's type: its library's name for it."""
    if isinstance(x, type):
        return f"the class {x.__name__}"
    kind = type(x)
    module = kind.__module__
    if module == "builtins":
        return kind.__name__
    return f"{_PUBLIC.get(module, module.partition('.')[0])}.{kind.__qualname__}"


def shown(thing: object) -> str:
    """Return a short text; of arrays and containers only what they are."""
    held = hasattr(thing, "shape") or hasattr(thing, "__len__")
    text = "" if held and not isinstance(thing, str | type) else repr(thing)
    return text if 0 < len(text) <= LONGEST_TEXT else f"an object of {type_name(thing)}"


_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = _repr.maxlong = LONGEST_TEXT


def quoted(thing: object) -> str:
    """Return what a message repeats of an argument: long and deep ones are cut."""
    return _repr.repr(thing)


def not_array(x: Any, way: str, name: str = "x") -> str:
    """Return what messages call an object where an array is wanted, and the way out."""
    if isinstance(x, type):
        way = "pass an object of it"
    elif hasattr(x, "tocsr"):
        way = (
            f"pass {name}.toarray(), or move the sparse one to the CPU or to CUDA with "
            f"xdev.adapt(device, {name})"
        )
    return f"not an array but {type_name(x)}: {way}"


def users_level() -> int:
    """Return how many frames up the first caller is that is not xdev's own.

    As ``warnings.warn`` and logging count them, in the function that calls this.
    """
    level, frame = 1, sys._getframe(1)  # noqa: SLF001 - as warnings does
    while frame.f_back and f"{frame.f_globals.get('__name__')}.".startswith("xdev."):
        level, frame = level + 1, frame.f_back
    return level


class XdevError(Exception):
    """The base of every error that xdev raises on purpose.

    Examples
    --------
    >>> import xdev
    >>> try:
    ...     xdev.zeros(3, device="moon")
    ... except xdev.XdevError as error:
    ...     print(type(error).__name__)
    ConfigurationError
    """

    def __reduce__(self) -> Any:
        # As it is: tblib, which Dask has, takes what has its own by that, and makes
        # others without their arguments, which no MemoryError can be.
        return super().__reduce__()


class ConfigurationError(XdevError, ValueError):
    """A setting (an ``XDEV_*`` variable or an argument of that kind) is invalid.

    Examples
    --------
    >>> import xdev
    >>> xdev.Device("moon")
    Traceback (most recent call last):
    xdev.errors.ConfigurationError: no device is called 'moon': use "cpu", ...
    """


class DeviceUnavailableError(XdevError, RuntimeError):
    """A device was asked for that this process cannot use; the text says why.

    Examples
    --------
    >>> import xdev
    >>> xdev.zeros(3, device="cuda:99")
    Traceback (most recent call last):
    xdev.errors.DeviceUnavailableError: cuda:99 cannot be used: ...
    """


class DeviceMismatchError(XdevError, TypeError):
    """Arrays of two devices or two libraries met in one call.

    Examples
    --------
    >>> import xdev
    >>> here, there = xdev.ones(3, device="cpu"), xdev.ones(3, device="fake")
    >>> xdev.add(here, there)
    Traceback (most recent call last):
    xdev.errors.DeviceMismatchError: xdev.add: x1 ... is on cpu, x2 ... is on fake:0...
    """


class UseAfterFreeError(XdevError, RuntimeError):
    """An array or block was used, or freed again, after it was freed.

    Examples
    --------
    >>> import xdev
    >>> x = xdev.ones(100_000, device="cpu")
    >>> xdev.memory.free(x)
    800000
    >>> xdev.sum(x)
    Traceback (most recent call last):
    xdev.errors.UseAfterFreeError: xdev.sum: x of shape (100000,) was freed before...
    """


class InUseError(XdevError, RuntimeError):
    """Memory was to be freed that a view still uses.

    Examples
    --------
    >>> import xdev
    >>> x = xdev.ones(100_000, device="cpu")
    >>> view = x[:10]
    >>> xdev.memory.free(x)
    Traceback (most recent call last):
    xdev.errors.InUseError: 1 view(s) still use this array's memory: drop them first
    """


class CaptureError(XdevError, RuntimeError):
    """A function cannot be captured in a graph; the text names the call, and why.

    Examples
    --------
    >>> import xdev
    >>> g = xdev.graph(lambda x: x.shape[0], xdev.ones(3, device="cpu"))
    >>> g()
    Traceback (most recent call last):
    xdev.errors.CaptureError: <lambda> returns int, which a replay cannot write to: ...
    """


class MemoryCorruptionError(XdevError, RuntimeError):
    """Memory was written that was free, or no block's; only ``XDEV_DEBUG=1`` sees it.

    It is raised where the damage is found, not where it was done; the text has a line
    for each place, with the lines that allocated and freed the blocks around it.

    Examples
    --------
    >>> import xdev
    >>> try:
    ...     seen = xdev.memory.check()  # 0 B without XDEV_DEBUG=1
    ... except MemoryCorruptionError as error:
    ...     print(error)
    """


class OutOfMemoryError(XdevError, MemoryError):
    """A pool could not serve a request even after every step of its ladder.

    Or a library could not, that allocates for itself, although the pool gave back what
    it caches.

    Parameters
    ----------
    device : str
        Whose memory it is, as in ``"cuda:0"`` or ``"cpu (pinned)"``.
    asked, allocated, reserved : int
        The request (0 where a library does not tell), what is in use, and what is held
        from the source [B].
    limit : int or None
        The limit in force [B], None without one.
    holders : tuple of str
        The largest live blocks, one text each; empty unless tracking is on.
    library : str
        What the library said; empty where the pool was asked.

    Examples
    --------
    >>> print(OutOfMemoryError("cuda:0", 4096, 1024, 2048, 5000))
    cuda:0: cannot allocate 4,096 B: 1,024 B are in use and 2,048 B reserved under a
    limit of 5,000 B, and nothing cached is large enough or can be given back. Drop
    arrays or work in smaller pieces, or raise the limit with
    xdev.memory.set_limit(nbytes, device). To see who holds the memory, run under
    xdev.memory.track().
    """

    def __init__(
        self,
        device: str,
        asked: int,
        allocated: int,
        reserved: int,
        limit: int | None,
        holders: tuple[str, ...] = (),
        library: str = "",
    ) -> None:
        super().__init__(device, asked, allocated, reserved, limit, holders, library)
        self.device, self.asked = device, asked
        self.allocated, self.reserved = allocated, reserved
        self.limit, self.holders, self.library = limit, holders, library

    def __str__(self) -> str:
        """Say what was asked, what is held, and what to do."""
        what = f"cannot allocate {self.asked:,} B"
        why = ", and nothing cached is large enough or can be given back"
        change = "raise the limit" if self.limit is not None else ""
        if self.limit is not None and self.reserved > self.limit:
            why = ", which is less: no block is added until that fits again"
        if self.library:
            what = f"a library that takes memory past the pool failed ({self.library})"
            why = ", after the pool gave back what it could"
            change = "leave the library room by a lower limit"
        held = f"{self.allocated:,} B are in use and {self.reserved:,} B reserved"
        if self.limit is not None:
            held += f" under a limit of {self.limit:,} B"
        way = "Drop arrays or work in smaller pieces"
        if change:
            way += f", or {change} with xdev.memory.set_limit(nbytes, device)"
        who = "".join(f"\n  {holder}" for holder in self.holders)
        if self.allocated and not who:
            who = " To see who holds the memory, run under xdev.memory.track()."
        return f"{self.device}: {what}: {held}{why}. {way}.{who}"
