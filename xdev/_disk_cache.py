"""Compiled code on disk: private folders, in which any failure may be ignored.

An entry is a file: a mark, a digest of its kind, its key and what follows, a line that
tells when it was made and of what, and its body. The file's time of change is when it
was last used.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, final

from xdev import _config

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KINDS = ("cubins", "loops", "typings", "writes")
LIMIT = 256 * 2**20  # bytes; past it, entries that were not used for longest go
ROOM = LIMIT // 4  # bytes that are made free then
LARGEST = LIMIT // 4  # bytes of a file that is read
UNFINISHED = ".xdev-"  # how the name of a file that is being written begins
MARK = b"xdev cache 3\n"
BODY = len(MARK) + hashlib.sha256().digest_size
SHARED = stat.S_IWGRP | stat.S_IWOTH
PLAIN = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a named pipe does not wait
FOLDER = os.O_RDONLY | os.O_DIRECTORY


@final
class DiskCache:
    """Entries of one of ``KINDS``, in a folder of its name.

    Machine code is only read from where nobody else can write: the cache's folder, that
    of a kind and the file belong to the effective user, others cannot write to them,
    and none is a link. Any number of processes may load and save at once.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def load(self, key: str) -> bytes | None:
        """Return what was saved under ``key``, or None, and note the use."""
        with suppress(OSError, RuntimeError):
            path = _folder(self._kind) / key
            entry = _read(path)
            if entry is not None:
                with suppress(OSError):
                    os.utime(path, follow_symlinks=False)
                return entry[1]
        return None

    def save(self, key: str, body: bytes, name: str) -> None:
        """Keep an entry for later processes; a folder that refuses it is no error.

        ``key`` names all that the body depends on, ``name`` is the function's.
        """
        line = f"{int(time.time())} {' '.join(name.split())}\n".encode(errors="replace")
        content = line + body
        whole = MARK + _digest(self._kind, key, content) + content
        if len(whole) > LARGEST:
            return
        with suppress(OSError, RuntimeError):
            _write(whole, _folder(self._kind, make=True) / key)
            _make_room()


def problem() -> str | None:
    """Return why nothing can be kept on disk, None where it can."""
    try:
        root = _config.cache_dir()
        for path in (root, *(root / kind for kind in KINDS)):
            if path.is_symlink():
                return f"{path} is a link"
        for kind in KINDS:
            if not os.access(_folder(kind, make=True), os.W_OK | os.X_OK):
                return f"{root / kind} cannot be written to"
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
        return str(error)
    return None


def files() -> Iterator[tuple[Path, os.stat_result]]:
    """Return every file of the cache that is ours, with its size and times."""
    for kind in KINDS:
        with suppress(OSError, RuntimeError):
            for path in list(_folder(kind).iterdir()):
                with suppress(OSError), _opened(path, os.O_RDONLY) as file:
                    marked = os.pread(file, len(MARK), 0) == MARK  # else it is others'
                    if path.name.startswith(UNFINISHED) or marked:
                        yield path, os.fstat(file)


def described(path: Path) -> tuple[float, str] | None:
    """Return when an entry was made, and its name; None if it is damaged."""
    with suppress(OSError):
        entry = _read(path)
        if entry is not None:
            seconds, _, name = entry[0].partition(b" ")
            return float(seconds), name.decode()
    return None


def _make_room() -> None:
    """Remove the entries that were not used for longest, where all take too much."""
    entries = [(status.st_mtime, status.st_size, path) for path, status in files()]
    nbytes = sum(size for _, size, _ in entries)
    limit = LIMIT - ROOM if nbytes > LIMIT else nbytes
    for _, size, path in sorted(entries):
        if nbytes <= limit:
            break
        path.unlink(missing_ok=True)
        nbytes -= size


def _folder(kind: str, *, make: bool = False) -> Path:
    """Return the folder of a kind; where asked for, it is made for this user alone."""
    root = _config.cache_dir()
    for folder in (root, root / kind):
        if make:
            folder.mkdir(mode=0o700, parents=folder is root, exist_ok=True)
        with _opened(folder, FOLDER):
            pass
    return root / kind


@contextmanager
def _opened(path: Path, way: int) -> Iterator[int]:
    """Open what is no link and this user's alone; anything else is an OSError."""
    file = os.open(path, way | PLAIN)
    try:
        status = os.fstat(file)
        if status.st_uid != os.geteuid() or status.st_mode & SHARED:
            raise PermissionError(
                f"{path} belongs to another user, or others can write to it"
            )
        if status.st_size > LARGEST:
            raise PermissionError(f"{path} is no entry")
        yield file
    finally:
        os.close(file)


def _write(whole: bytes, path: Path) -> None:
    """Write a file beside and move it into place: readers see all of it or nothing."""
    beside = path.with_name(f"{UNFINISHED}{os.urandom(8).hex()}")
    try:
        with open(beside, "xb", opener=partial(os.open, mode=0o600)) as file:
            file.write(whole)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _digest(kind: str, key: str, content: bytes) -> bytes:
    """Return the digest of an entry: machine code under a foreign name would crash."""
    return hashlib.sha256(f"{kind}/{key}\n".encode() + content).digest()


def _read(path: Path) -> tuple[bytes, bytes] | None:
    """Return the line and the body of an entry; None of a damaged or moved one."""
    with _opened(path, os.O_RDONLY) as file:
        data = os.pread(file, os.fstat(file).st_size + 1, 0)
    content = data[BODY:]
    if data[:BODY] != MARK + _digest(path.parent.name, path.name, content):
        return None
    line, _, body = content.partition(b"\n")
    return line, body
