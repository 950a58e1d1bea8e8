"""Code on disk is read from private folders and plain files of this user, or not."""

import os
import resource
import shutil
import stat
import subprocess
import sys
import threading

import pytest

from xdev import _config, _disk_cache
from xdev._disk_cache import DiskCache

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
BODY = b"\x7fELF\n\x00code"
NOBODY = 65534
AS_ROOT = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root gives files to another user"
)


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


def refused(root, cache):
    """Say whether nothing is read or written, and people are told why."""
    before = sorted(path for path in root.rglob("*"))
    cache.save("other", BODY, "f")
    after = sorted(path for path in root.rglob("*"))
    problem = _disk_cache.problem()
    assert list(_disk_cache.files()) == []
    assert problem is not None
    assert str(root) in problem
    return cache.load("key") is None and before == after


@pytest.mark.parametrize("place", ["", "cubins"])
def test_a_folder_that_is_a_link_is_refused(root, cache, place, tmp_path):
    folder = root / place
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")

    assert refused(root, cache)


@pytest.mark.parametrize("place", ["", "cubins"])
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o1777])
def test_a_folder_that_others_can_write_is_refused(root, cache, place, mode):
    (root / place).chmod(mode)

    assert refused(root, cache)


def another_users(monkeypatch, path):
    """Make a file look like another user's."""
    real, foreign = os.fstat, path.stat().st_ino

    def fstat(descriptor):
        found = real(descriptor)
        user = found.st_uid + (found.st_ino == foreign)
        return os.stat_result((*found[:4], user, *found[5:]))

    monkeypatch.setattr(os, "fstat", fstat)


@pytest.mark.parametrize("place", ["", "cubins"])
def test_a_folder_of_another_user_is_refused(root, cache, place, monkeypatch):
    another_users(monkeypatch, root / place)

    assert refused(root, cache)


def test_a_file_of_another_user_is_not_read(root, cache, monkeypatch):
    another_users(monkeypatch, root / "cubins" / "key")

    assert cache.load("key") is None
    assert list(_disk_cache.files()) == []


def test_the_effective_user_counts(root, cache, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)

    assert refused(root, cache)


@AS_ROOT
@pytest.mark.parametrize("place", ["", "cubins"])
def test_root_does_not_run_what_others_own(root, cache, place):
    os.chown(root / place, NOBODY, NOBODY)

    assert refused(root, cache)


@AS_ROOT
def test_root_does_not_run_anothers_file(root, cache):
    os.chown(root / "cubins" / "key", NOBODY, NOBODY)

    assert cache.load("key") is None


@pytest.mark.parametrize("mode", [0o666, 0o660, 0o602])
def test_a_file_that_others_can_write_is_not_read(root, cache, mode):
    (root / "cubins" / "key").chmod(mode)

    assert cache.load("key") is None


def within(seconds, function, *args):
    """Return what a function returns; it must not take longer."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function(*args)), daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, "it hangs"
    return found[0]


def fifo(file):
    os.mkfifo(file, 0o600)


def folder(file):
    file.mkdir(mode=0o700)


def device(file):
    file.symlink_to("/dev/zero")


def huge(file):
    file.touch(mode=0o600)
    os.truncate(file, 20 * 2**30)  # a hole


def hard_link_to_itself(file):
    other = file.with_name("another")
    os.link(other, file)


@pytest.mark.parametrize("make", [fifo, folder, device, huge, hard_link_to_itself])
def test_what_is_no_plain_file_of_ours_is_not_read(root, cache, make):
    cache.save("another", b"code of another", "f")
    file = root / "cubins" / "key"
    file.unlink()
    make(file)

    assert within(10, cache.load, "key") is None
    listed = {path.name for path, _ in within(10, lambda: list(_disk_cache.files()))}
    assert "another" in listed
    within(10, lambda: cache.save("key", BODY, "f") or True)
    assert cache.load("key") == (None if make is folder else BODY)


def test_what_is_too_large_is_not_kept(root, cache, monkeypatch):
    monkeypatch.setattr(_disk_cache, "LARGEST", 1000)
    cache.save("large", bytes(1001), "f")

    assert not (root / "cubins" / "large").exists()


def test_a_file_that_grows_while_it_is_read_is_read_no_further(
    root, cache, monkeypatch
):
    real = os.fstat

    def fstat(descriptor):
        found = real(descriptor)
        if stat.S_ISREG(found.st_mode):
            os.truncate(root / "cubins" / "key", 20 * 2**30)
        return found

    monkeypatch.setattr(os, "fstat", fstat)
    assert within(10, cache.load, "key") is None


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


PROGRAM = """
import numpy as np, xdev

@xdev.vectorize
def f(x):
    return x * 2 + 1

assert np.array_equal(f(np.arange(3.0)), [1, 3, 5])
print("right")
"""


@pytest.fixture
def program(tmp_path):
    """Return what runs a program with a cache, and a limit to the size of its files."""
    script = tmp_path / "user.py"
    script.write_text(PROGRAM)

    def run(cache, limit=None):
        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        return subprocess.run(
            [sys.executable, "-W", "error", script],
            env={**os.environ, "XDEV_CACHE_DIR": str(cache)},
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=None if limit is None else limited,
        )

    return run


def test_a_program_runs_without_a_cache(tmp_path, program):
    """With a link, a folder in no folder, one of others, a full disk."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    (tmp_path / "file").touch()
    places = [shared, tmp_path / "link", "/proc/nowhere/xdev", tmp_path / "file" / "x"]
    for place in places if DEEP else places[:1]:  # the laws above are of each
        done = program(place)
        assert (done.stdout, done.stderr) == ("right\n", ""), place
    assert list((tmp_path / "real").iterdir()) == []
    assert list(shared.iterdir()) == []
    done = program(tmp_path / "full", limit=50)
    assert (done.stdout, done.stderr) == ("right\n", "")
    assert [path for path in (tmp_path / "full").rglob("*") if path.is_file()] == []


def test_a_program_runs_with_any_of_its_code_forged(tmp_path, program):
    cache = tmp_path / "cache"
    assert program(cache).returncode == 0
    entries = [path for path in cache.rglob("*") if path.is_file()]
    assert len(entries) > 1
    spoils = [
        lambda path: path.write_bytes(path.read_bytes()[:-100]),
        lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\xcc"),
        lambda path: path.write_bytes(path.read_bytes() * 2),
        lambda path: path.write_bytes(b""),
        lambda path: path.unlink() or os.mkfifo(path),
    ]
    for turn in range(len(spoils) if DEEP else 1):  # each entry in another way
        for k, path in enumerate(entries):
            spoils[(k + turn) % len(spoils)](path)
        done = program(cache)
        assert (done.stdout, done.stderr) == ("right\n", "")
        for path in entries:
            assert path.is_file()  # written anew
    shutil.rmtree(cache)
