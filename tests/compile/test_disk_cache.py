"""Compiled code on disk: what was saved comes back, and nothing else ever does.

It is read from private folders and plain files of this user, or not.
"""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from xdev import _config, _disk_cache
from xdev._disk_cache import DiskCache
from xdev.compile import digests

BODY = b"\x7fELF\n\x00code"


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(_config, "cache_dir", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def cache(root):  # noqa: ARG001
    made = DiskCache("cubins")
    made.save("key", BODY, "f")
    assert made.load("key") == BODY
    return made


@pytest.fixture
def file(root, cache):  # noqa: ARG001
    return root / "cubins" / "key"


def test_every_folder_of_our_own_sources_is_in_the_keys():
    room = Path(digests.__file__).parent
    files = [*room.rglob("*"), *(room.parent / "ufunc").rglob("*")]
    folders = {each.parent for each in files if each.suffix in digests.SOURCES}
    assert folders == {(room / name).resolve() for name in digests.ROOMS}


def test_an_entry_comes_back_from_private_folders(root, cache, file):
    assert cache.load("nothing") is None
    for folder in (root, root / "cubins"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in (root / "cubins").iterdir()] == ["key"]
    cache.save("key", b"another", "f")
    assert cache.load("key") == b"another"


def test_every_change_is_seen(cache, file):
    whole = file.read_bytes()
    spoilt = [whole[:n] for n in range(len(whole))] + [whole + b"x"]
    for k, byte in enumerate(whole):
        spoilt.append(whole[:k] + bytes([byte ^ 1]) + whole[k + 1 :])
    for each in spoilt:
        file.write_bytes(each)
        assert cache.load("key") is None
    cache.save("key", BODY, "f")
    assert cache.load("key") == BODY


def test_an_entry_under_another_key_or_of_another_kind_is_none(root, cache, file):
    others = root / "cubins" / "other", root / "loops" / "key"
    DiskCache("loops").save("key", b"loop", "f")
    for other in others:
        other.write_bytes(file.read_bytes())
        assert DiskCache(other.parent.name).load(other.name) is None
        assert _disk_cache.described(other) is None
    assert cache.load("key") == BODY


def test_a_cache_that_cannot_be_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setattr(_config, "cache_dir", lambda: tmp_path / "file")
    (tmp_path / "file").touch()
    cache = DiskCache("cubins")
    cache.save("key", BODY, "f")

    assert cache.load("key") is None
    assert "file" in _disk_cache.problem()


def test_a_full_disk_is_no_error_and_nothing_is_left_on_it(root):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, before[1]))
    try:
        DiskCache("cubins").save("key", BODY, "f")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list((root / "cubins").iterdir()) == []


def test_a_folder_that_may_only_be_read_is_read(cache, monkeypatch):
    real = os.open

    def refusing(path, flags, *rest, **named):
        if flags & (os.O_RDWR | os.O_WRONLY):
            raise PermissionError(path)
        return real(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", refusing)
    assert cache.load("key") == BODY


def test_the_longest_unused_go_when_all_take_too_much(root, monkeypatch):
    one = len(_disk_cache.MARK) + 40 + len("1700000000 f\n") + 1000
    monkeypatch.setattr(_disk_cache, "LIMIT", 8 * one)
    monkeypatch.setattr(_disk_cache, "ROOM", 2 * one)
    caches = DiskCache("cubins"), DiskCache("loops")
    for number in range(8):
        caches[number % 2].save(str(number), bytes(1000), "f")
        file = root / ("cubins", "loops")[number % 2] / str(number)
        os.utime(file, (number, number))
    assert caches[0].load("0") is not None  # used now: 1, 2 and 3 are the oldest

    caches[0].save("8", bytes(1000), "f")

    kept = {path.name for path, _ in _disk_cache.files()}
    assert kept == {"0", "4", "5", "6", "7", "8"}


# What is not this user's alone.


def is_a_link(path, _):
    other = path.rename(path.with_name("elsewhere"))
    path.symlink_to(other)


def has_mode(mode):
    def change(path, _):
        path.chmod(mode)

    return change


def looks_anothers(path, monkeypatch):
    real, foreign = os.fstat, path.stat().st_ino

    def fstat(descriptor):
        found = real(descriptor)
        user = found.st_uid + (found.st_ino == foreign)
        return os.stat_result((*found[:4], user, *found[5:]))

    monkeypatch.setattr(os, "fstat", fstat)


def the_effective_user_is_another(_, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)


FOREIGN = [is_a_link, looks_anothers, the_effective_user_is_another]
FOREIGN += map(has_mode, (0o770, 0o702))


@pytest.mark.parametrize("place", ["", "cubins", "cubins/key"])
@pytest.mark.parametrize("spoil", FOREIGN)
def test_a_folder_that_is_not_this_users_alone_is_refused(
    root, cache, place, spoil, monkeypatch
):
    """Nor a file. Nothing is read or written, and people are told why."""
    spoil(root / place, monkeypatch)
    before = sorted(root.rglob("*"))

    assert cache.load("key") is None
    assert root / "cubins" / "key" not in [path for path, _ in _disk_cache.files()]
    if place == "cubins/key":
        return
    cache.save("other", BODY, "f")
    assert sorted(root.rglob("*")) == before
    assert list(_disk_cache.files()) == []
    assert str(root) in _disk_cache.problem()


# What is there instead of a plain file of ours.
OTHERS = {
    "a pipe": lambda file: os.mkfifo(file, 0o600),
    "a folder": lambda file: file.mkdir(mode=0o700),
    "a device": lambda file: file.symlink_to("/dev/zero"),
    "20 GiB of a hole": lambda file: (file.touch(0o600), os.truncate(file, 20 * 2**30)),
}


@pytest.mark.parametrize("other", OTHERS)
def test_what_is_no_plain_file_of_ours_is_not_read(cache, file, other):
    cache.save("another", b"code of another", "f")
    file.unlink()
    OTHERS[other](file)

    assert cache.load("key") is None
    assert "another" in {path.name for path, _ in _disk_cache.files()}
    cache.save("key", BODY, "f")
    assert cache.load("key") == (None if other == "a folder" else BODY)
    assert not file.is_symlink()


def test_no_descriptor_is_left_open(root, cache):
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(3):
        cache.load("key")
        cache.load("nothing")
        cache.save("key", BODY, "f")
        list(_disk_cache.files())
        _disk_cache.problem()
    (root / "cubins").chmod(0o777)
    cache.load("key")

    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


# Processes: several at once.

TURNS = """
import sys
from xdev import _disk_cache
_disk_cache.LIMIT, _disk_cache.ROOM = 200_000, 50_000
cache = _disk_cache.DiskCache("loops")
mine = int(sys.argv[1])
for turn in range(150):
    key = str((turn * 7 + mine) % 20)
    found = cache.load(key)
    assert found in (None, key.encode() * 5_000), (key, found)
    cache.save(key, key.encode() * 5_000, "f")
"""


def test_processes_that_save_load_and_evict_at_once_see_whole_entries(
    tmp_path, printed
):
    def turns(number):
        return printed(TURNS, number, XDEV_CACHE_DIR=tmp_path)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(turns, range(4))) == [""] * 4
    left = sum(path.stat().st_size for path in (tmp_path / "loops").iterdir())
    assert 0 < left <= 200_000
    assert not list((tmp_path / "loops").glob(".xdev-*"))
