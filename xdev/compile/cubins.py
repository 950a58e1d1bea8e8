"""Compiled kernels on disk: a private folder that any failure may be ignored in."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from xdev import _config

HEADER = b"xdev cubin 1\n"


def load(key: str) -> tuple[bytes, str] | None:
    """Return the cubin and kernel name saved under ``key``.

    None where there is none, where the entry is damaged, and where the folder is not
    this user's alone: machine code is only read from where nobody else can write.
    """
    try:
        folder = _folder()
        data = (folder / key).read_bytes() if folder else b""
    except OSError:
        return None
    start = len(HEADER) + hashlib.sha256().digest_size
    digest, body = data[len(HEADER) : start], data[start:]
    if not data.startswith(HEADER) or hashlib.sha256(body).digest() != digest:
        return None
    name, _, cubin = body.partition(b"\n")
    return cubin, name.decode()


def save(key: str, cubin: bytes, name: str) -> None:
    """Keep a cubin for later processes; a folder that cannot be written is no error."""
    body = name.encode() + b"\n" + cubin
    with suppress(OSError):
        folder = _folder()
        if folder is None:
            return
        # Written beside and moved into place: a reader sees all of it or nothing.
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(HEADER + hashlib.sha256(body).digest() + body)
        Path(file.name).replace(folder / key)


def _folder() -> Path | None:
    """Return the folder, made where it is missing; None where others can write."""
    folder = _config.cache_dir() / "cubins"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    private = not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    return folder if private and mine else None
