"""Compiled kernels on disk, each with its name."""

from __future__ import annotations

from xdev._disk_cache import DiskCache

_cache = DiskCache("cubins", b"xdev cubin 1\n")


def load(key: str) -> tuple[bytes, str] | None:
    """Return the cubin and kernel name saved under ``key``, or None."""
    body = _cache.load(key)
    if body is None:
        return None
    name, _, cubin = body.partition(b"\n")
    return cubin, name.decode()


def save(key: str, cubin: bytes, name: str) -> None:
    """Keep a cubin for later processes."""
    _cache.save(key, name.encode() + b"\n" + cubin)
