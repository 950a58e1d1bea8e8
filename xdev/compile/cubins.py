"""Compiled kernels on disk, each with its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdev._disk_cache import DiskCache
from xdev.compile import digests, toolchain

if TYPE_CHECKING:
    from collections.abc import Callable

_cache = DiskCache("cubins")


def kept(
    digest: str | None,
    parts: object,
    name: str,
    make: Callable[[], tuple[bytes, str]],
    unchanged: Callable[[], bool] = lambda: True,
) -> tuple[bytes, str]:
    """Return a cubin and its kernel's name, compiled where no process has done so.

    Parameters
    ----------
    digest : str or None
        The function's digest; None: it has none, and is compiled in each process.
    parts : object
        What else decides the machine code: types, layout, capability, options. Its
        ``repr`` tells it in full.
    name : str
        The function's name, for people.
    make : callable
        Compiles; it alone loads compilers.
    unchanged : callable
        Says, after that, whether what was compiled still has the digest.

    Examples
    --------
    >>> kept(None, (), "f", lambda: (b"code", "kernel"))
    (b'code', 'kernel')
    """
    if digest is None:
        return make()
    versions = sorted(toolchain.installed().items())
    key = digests.joined(digest, parts, digests.environment(), versions)
    found = load(key)
    if found is None:
        found = make()
        if unchanged():
            save(key, *found, name)
    return found


def load(key: str) -> tuple[bytes, str] | None:
    """Return the cubin and kernel name saved under ``key``, or None."""
    body = _cache.load(key)
    if body is None:
        return None
    entry, _, cubin = body.partition(b"\n")
    return cubin, entry.decode()


def save(key: str, cubin: bytes, entry: str, name: str) -> None:
    """Keep a cubin for later processes."""
    _cache.save(key, entry.encode() + b"\n" + cubin, name)
