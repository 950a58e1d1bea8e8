"""Compiled code on disk: what was saved comes back, and nothing else ever does."""

import os
import stat
import subprocess
import sys

import pytest
from hypothesis import given, settings, strategies as st

from xdev import _config, _disk_cache
from xdev._disk_cache import DiskCache

BODY = b"\x7fELF\n\x00code"


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(_config, "cache_dir", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def cache(root):  # noqa: ARG001
    return DiskCache("cubins")


def test_an_entry_comes_back_from_private_folders(root, cache):
    cache.save("key", BODY, "f")

    assert cache.load("key") == BODY
    for folder in (root, root / "cubins"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((root / "cubins" / "key").stat().st_mode) == 0o600
    assert [file.name for file in (root / "cubins").iterdir()] == ["key"]


@pytest.mark.usefixtures("root")
@given(body=st.binary(max_size=100), name=st.text())
@settings(max_examples=25, deadline=None)
def test_any_bytes_and_any_name_come_back(body, name):
    cache = DiskCache("typings")
    cache.save("key", body, name)

    assert cache.load("key") == body
    path = next(path for path, _ in _disk_cache.files())
    assert _disk_cache.described(path)[2] == " ".join(name.split())


def test_an_unknown_key_is_none(cache):
    assert cache.load("nothing") is None


def test_a_later_entry_takes_the_place_of_the_former(cache):
    cache.save("key", b"one", "f")
    cache.save("key", b"two", "f")

    assert cache.load("key") == b"two"


def test_every_change_of_a_byte_but_the_count_of_loads_is_seen(root, cache):
    cache.save("key", BODY, "f")
    file = root / "cubins" / "key"
    whole = file.read_bytes()
    counter = range(len(_disk_cache.MARK), len(_disk_cache.MARK) + 8)
    for at in set(range(len(whole))) - set(counter):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert cache.load("key") is None


def test_a_truncated_or_prolonged_entry_is_none_and_written_anew(root, cache):
    cache.save("key", BODY, "f")
    file = root / "cubins" / "key"
    whole = file.read_bytes()
    for spoilt in (*(whole[:n] for n in range(len(whole))), whole + b"x"):
        file.write_bytes(spoilt)
        assert cache.load("key") is None
    cache.save("key", BODY, "f")

    assert cache.load("key") == BODY


def test_a_link_is_not_followed_and_replaced(root, cache, tmp_path):
    cache.save("key", BODY, "f")
    file = root / "cubins" / "key"
    target = tmp_path / "elsewhere"
    file.rename(target)
    file.symlink_to(target)

    assert cache.load("key") is None
    cache.save("key", b"new", "f")
    assert cache.load("key") == b"new"
    assert not file.is_symlink()


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(_config, "cache_dir", lambda: tmp_path / "file")
    cache = DiskCache("cubins")

    cache.save("key", BODY, "f")

    assert cache.load("key") is None
    assert _disk_cache.problem() is not None


def test_a_user_without_a_home_folder_has_no_cache(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(_config, "cache_dir", homeless)
    cache = DiskCache("cubins")

    cache.save("key", BODY, "f")

    assert cache.load("key") is None
    assert "home" in _disk_cache.problem()


def test_a_full_disk_leaves_nothing_behind(root, cache, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    cache.save("key", BODY, "f")

    assert list((root / "cubins").iterdir()) == []


def test_a_folder_that_may_only_be_read_is_read(cache, monkeypatch):
    cache.save("key", BODY, "f")
    real = os.open

    def refusing(path, flags, *rest, **named):
        if flags & (os.O_RDWR | os.O_WRONLY):
            raise PermissionError(path)
        return real(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", refusing)
    assert cache.load("key") == BODY


def test_loads_are_counted_and_are_uses(root, cache):
    cache.save("key", BODY, "name")
    file = root / "cubins" / "key"
    os.utime(file, (0, 0))
    for count in range(3):
        assert _disk_cache.described(file)[::2] == (count, "name")
        cache.load("key")

    assert file.stat().st_mtime > 0


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


def test_only_our_own_files_are_ours(root, cache):
    cache.save("key", BODY, "f")
    (root / "cubins" / "notes.txt").write_text("mine")
    (root / "cubins" / ".xdev-abc").write_bytes(b"half")
    (root / "letters").mkdir()
    (root / "letters" / "key").write_bytes(_disk_cache.MARK)

    names = {path.name for path, _ in _disk_cache.files()}
    assert names == {"key", ".xdev-abc"}


PROGRAM = """
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


def test_processes_that_save_load_and_evict_at_once_see_whole_entries(tmp_path):
    environment = {**os.environ, "XDEV_CACHE_DIR": str(tmp_path)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(number)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for process in started:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    left = sum(path.stat().st_size for path in (tmp_path / "loops").iterdir())
    assert 0 < left <= 200_000
    assert not list((tmp_path / "loops").glob(".xdev-*"))


# A process that compiles, or finds on disk, one code of each kind.
USER = """
import numpy as np
from xdev import kernel, vectorize

@vectorize
def one(x, y):
    return x + 2 * y

@vectorize
def two(x):
    return x * x + 1

@kernel
def three(i, x, out):
    out[i] = 3 * x[i]

x = np.arange(6.0)
for _ in range(3):
    assert np.array_equal(one(x, x), 3 * x)
    assert np.array_equal(two(x), x * x + 1)
    assert np.array_equal(one.reduce(x[:2]), 2)
out = np.empty(6)
three[6](x, out)
assert np.array_equal(out, 3 * x)
"""


def test_an_entry_under_another_key_or_of_another_kind_is_none(root, cache):
    cache.save("key", BODY, "f")
    DiskCache("loops").save("key", b"loop", "f")
    whole = (root / "cubins" / "key").read_bytes()
    (root / "cubins" / "other").write_bytes(whole)
    (root / "loops" / "key").write_bytes(whole)

    assert cache.load("other") is None
    assert DiskCache("loops").load("key") is None
    assert _disk_cache.described(root / "cubins" / "other") is None
    assert cache.load("key") == BODY


def test_code_whose_entries_change_places_is_never_run(tmp_path):
    script, folder = tmp_path / "user.py", tmp_path / "cache"
    script.write_text(USER)

    def run():
        environment = {**os.environ, "XDEV_CACHE_DIR": str(folder)}
        command = [sys.executable, str(script)]
        return subprocess.run(
            command, env=environment, check=False, capture_output=True, text=True
        )

    assert run().returncode == 0
    entries = [path for path in folder.rglob("*") if path.is_file()]
    assert len(entries) > 3
    bodies = [path.read_bytes() for path in entries]
    for path, body in zip(entries, bodies[1:] + bodies[:1], strict=True):
        path.write_bytes(body)

    again = run()
    assert again.returncode == 0, again.stderr
