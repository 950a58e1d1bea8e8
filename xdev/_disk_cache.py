"""Compiled code on disk: private folders that any failure may be ignored in."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import final

from xdev import _config


@final
class DiskCache:
    """Entries in a folder of the cache that is this user's alone.

    Machine code is only read from where nobody else can write.

    Parameters
    ----------
    folder : str
        Its name in ``XDEV_CACHE_DIR``.
    header : bytes
        What every entry starts with: the kind and its version.
    """

    def __init__(self, folder: str, header: bytes) -> None:
        self._name, self._header = folder, header

    def load(self, key: str) -> bytes | None:
        """Return what was saved under ``key``.

        None where there is none, where the entry is damaged, and where others than
        this user can write.
        """
        try:
            folder = self._folder()
            data = (folder / key).read_bytes() if folder else b""
        except OSError:
            return None
        start = len(self._header) + hashlib.sha256().digest_size
        digest, body = data[len(self._header) : start], data[start:]
        if not data.startswith(self._header):
            return None
        return body if hashlib.sha256(body).digest() == digest else None

    def save(self, key: str, body: bytes) -> None:
        """Keep an entry for later processes; a folder that refuses it is no error."""
        with suppress(OSError):
            folder = self._folder()
            if folder is None:
                return
            # Written beside and moved into place: a reader sees all of it or nothing.
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
                file.write(self._header + hashlib.sha256(body).digest() + body)
            Path(file.name).replace(folder / key)

    def _folder(self) -> Path | None:
        """Return the folder, made where missing; None where others can write."""
        folder = _config.cache_dir() / self._name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
        private = not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
        return folder if private and mine else None
