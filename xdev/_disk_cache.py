"""Compiled code on disk: private folders, in which any failure may be ignored.

An entry is a file: a mark, how often it was loaded, a digest of its kind, its key and
what follows, a line that tells when it was made and of what, and its body. The file's
time of change is when it was last used: counting a load sets it.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, final

from xdev import _config

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = ("cubins", "loops", "native", "typings")
LIMIT = 256 * 2**20  # bytes; past it, entries that were not used for longest go
ROOM = LIMIT // 4  # bytes that are made free then
UNFINISHED = ".xdev-"  # how the name of a file that is being written begins
MARK = b"xdev cache 2\n"
COUNTER = 8  # bytes of the number of loads
DIGEST = hashlib.sha256().digest_size
BODY = len(MARK) + COUNTER + DIGEST
SHARED = stat.S_IWGRP | stat.S_IWOTH


@final
class DiskCache:
    """Entries of one kind, in a folder of the cache that is this user's alone.

    Machine code is only read from where nobody else can write. Any number of processes
    may load and save at once.

    Parameters
    ----------
    kind : str
        One of ``KINDS``; the folder's name in ``XDEV_CACHE_DIR``.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def load(self, key: str) -> bytes | None:
        """Return what was saved under ``key``, and count the use.

        None where there is none, where the entry is damaged or was saved under another
        key, and where the folder or the file belongs to another user or others can
        write to it.
        """
        with suppress(OSError, RuntimeError):
            folder = _config.cache_dir() / self._kind
            if _private(folder.stat()):
                with _opened(folder / key) as file:
                    found = _read(file, self._kind, key)
                    if found is not None:
                        _count(file, found[0] + 1)
                        return found[2]
        return None

    def save(self, key: str, body: bytes, name: str) -> None:
        """Keep an entry for later processes; a folder that refuses it is no error.

        Parameters
        ----------
        key : str
            Names all that the body depends on.
        body : bytes
            The entry.
        name : str
            What ``xdev cache`` calls it: the function's name.
        """
        line = f"{int(time.time())} {' '.join(name.split())}\n".encode(errors="replace")
        content = line + body
        digest = _digest(self._kind, key, content)
        with suppress(OSError, RuntimeError):
            folder = _made(self._kind)
            if not _private(folder.stat()):
                return
            # Written beside and moved into place: a reader sees all of it or nothing.
            with tempfile.NamedTemporaryFile(
                dir=folder, prefix=UNFINISHED, delete=False
            ) as file:
                try:
                    file.write(MARK + bytes(COUNTER) + digest + content)
                    file.close()
                    Path(file.name).replace(folder / key)
                finally:
                    Path(file.name).unlink(missing_ok=True)
            _make_room()


def problem() -> str | None:
    """Return why nothing can be kept on disk, None where it can."""
    try:
        for kind in KINDS:
            folder = _made(kind)
            if not _private(folder.stat()):
                return f"{folder} belongs to another user, or others can write to it"
            if not os.access(folder, os.W_OK | os.X_OK):
                return f"{folder} cannot be written to"
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
        return str(error)
    return None


def files() -> Iterator[tuple[Path, os.stat_result]]:
    """Return every file of the cache that is ours, with its size and times."""
    for kind in KINDS:
        with suppress(OSError, RuntimeError):
            entries = list(os.scandir(_config.cache_dir() / kind))
            for entry in entries:
                with suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(found.st_mode) and _ours(entry):
                        yield Path(entry.path), found


def described(path: Path) -> tuple[int, float, str] | None:
    """Return an entry's loads, when it was made and its name; None if it is damaged."""
    with suppress(OSError), _opened(path) as file:
        found = _read(file, path.parent.name, path.name)
        if found is not None:
            loads, line, _ = found
            made, _, name = line.partition(b" ")
            return loads, float(made), name.decode()
    return None


def _make_room() -> None:
    """Remove the entries that were not used for longest, where all take too much."""
    found = [(status.st_mtime, status.st_size, path) for path, status in files()]
    excess = sum(size for _, size, _ in found) - LIMIT
    if excess > 0:
        excess += ROOM
        for _, size, path in sorted(found):
            if excess <= 0:
                break
            path.unlink(missing_ok=True)
            excess -= size


def _made(kind: str) -> Path:
    """Return the folder of a kind, made where missing, for this user alone."""
    root = _config.cache_dir()
    folder = root / kind
    if not folder.is_dir():
        root.parent.mkdir(parents=True, exist_ok=True)
        for path in (root, folder):
            path.mkdir(mode=0o700, exist_ok=True)
    return folder


def _private(found: os.stat_result) -> bool:
    return found.st_uid == os.getuid() and not found.st_mode & SHARED


def _ours(entry: os.DirEntry[str]) -> bool:
    """Say whether xdev wrote a file: nothing else may be removed."""
    if entry.name.startswith(UNFINISHED):
        return True
    with open(entry.path, "rb") as file:  # noqa: PTH123 - thousands of them
        return file.read(len(MARK)) == MARK


def _opened(path: Path) -> IO[bytes]:
    """Open a file of this user's; a link is refused.

    Raises
    ------
    OSError
        It cannot be opened, or belongs to another user, or others can write to it.
    """
    try:
        file = open(path, "r+b", buffering=0, opener=_plain)  # noqa: SIM115
    except OSError:  # a folder that may only be read
        file = open(path, "rb", buffering=0, opener=_plain)  # noqa: SIM115
    if not _private(os.fstat(file.fileno())):
        file.close()
        raise PermissionError(path)
    return file


def _plain(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)


def _digest(kind: str, key: str, content: bytes) -> bytes:
    """Return the digest of an entry: machine code under a foreign name would crash."""
    return hashlib.sha256(f"{kind}/{key}\n".encode() + content).digest()


def _read(file: IO[bytes], kind: str, key: str) -> tuple[int, bytes, bytes] | None:
    """Return the loads, the line and the body of an entry.

    None if it is damaged, or was not saved under this kind and key.
    """
    data = file.read()
    start = len(MARK)
    content = data[BODY:]
    if not data.startswith(MARK):
        return None
    if _digest(kind, key, content) != data[start + COUNTER : BODY]:
        return None
    line, _, body = content.partition(b"\n")
    return int.from_bytes(data[start : start + COUNTER], "little"), line, body


def _count(file: IO[bytes], loads: int) -> None:
    with suppress(OSError):  # a folder that may only be read
        os.pwrite(file.fileno(), loads.to_bytes(COUNTER, "little"), len(MARK))
