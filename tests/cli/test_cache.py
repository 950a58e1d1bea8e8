"""``xdev cache``: what it lists, and that it removes xdev's own files alone."""

import json
import os
import re
import time

import pytest

import xdev
from xdev.cli import main

DAY = 24 * 60 * 60
PROGRAM = """
import numpy as np, xdev

@xdev.vectorize
def blend(x):
    return 3 * x + 12345

@xdev.kernel
def saxpy(i, x, out):
    out[i] = 3 * x[i] + 12345

x = np.asarray([1.0, 2.0])
blend(x)
saxpy[2](x, np.zeros(2))
saxpy.writes(1, x, x)
"""


@pytest.fixture
def cache(python, tmp_path):
    """Return what runs ``xdev cache`` on a folder; it gives what that prints."""
    folder = tmp_path / "cache"

    def run(*words, status=0, command="cache"):
        done = python("-m", "xdev", command, *words, XDEV_CACHE_DIR=folder)
        assert (done.returncode, done.stderr) == (status, "")
        return done.stdout

    run.folder = folder
    return run


@pytest.fixture
def filled(cache, printed):
    """The same of a folder with what a program kept, as if 3 days ago, and a letter."""
    program = cache.folder.with_name("program.py")
    program.write_text(PROGRAM)
    printed(program, XDEV_CACHE_DIR=cache.folder)
    for path in cache.folder.glob("*/*"):
        then = time.time() - 3 * DAY
        os.utime(path, (then, then))
    (cache.folder / "loops" / "letter").write_text("mine")
    return cache


def test_it_lists_kind_function_size_and_age(filled):
    head, titles, *rows = filled().splitlines()

    assert re.match(rf"{filled.folder}: {len(rows)} entries, [\d.]+ KiB", head)
    assert titles.split() == ["kind", "function", "size", "age"]
    kinds = {row.split()[0] for row in rows}
    assert kinds == {"loops", "typings", "writes"}
    assert {row.split()[1] for row in rows} == {"blend", "saxpy"}
    entries = json.loads(filled("--json"))["entries"]
    assert len(entries) == len(rows)
    assert all(entry["age"] < DAY for entry in entries)
    told = filled(command="info")
    assert re.search(rf"{filled.folder}:\s+\d+ entries", told)


def test_of_many_entries_the_latest_are_listed_and_all_on_request(filled):
    path = next((filled.folder / "loops").glob("[!l]*"))
    for number in range(50):  # copies, which are damaged: another key is in them
        path.with_name(f"key{number}").write_bytes(path.read_bytes())
    few, every = filled().splitlines(), filled("--all").splitlines()
    assert "(damaged)" in few[2]
    assert len(few) == 43
    assert few[-1] == f"and {len(every) - 42} more: xdev cache --all"
    assert every[1:42] == few[1:42]


@pytest.mark.parametrize(
    ("words", "kept"), [([], 0), (["--older", "2.5"], 0), (["--older", "4"], 1)]
)
def test_clear_removes_what_was_not_used_for_so_long(filled, words, kept):
    before = len([*filled.folder.glob("*/*")]) - 1
    told = filled("clear", *words)
    assert f"{before * (1 - kept)} entries removed" in told
    left = [*filled.folder.glob("*/*")]
    assert filled.folder / "loops" / "letter" in left
    assert len(left) == 1 + kept * before


def test_a_use_is_seen_by_clear(filled, printed):
    printed(filled.folder.with_name("program.py"), XDEV_CACHE_DIR=filled.folder)
    assert "0 entries removed" in filled("clear", "--older", "2.5")


def test_an_empty_cache_is_no_error_and_its_folder_told_alone(cache):
    assert cache("path") == f"{cache.folder}\n"
    assert "0 entries" in cache()
    assert "0 entries removed" in cache("clear")


@pytest.mark.parametrize("command", ["cache", "info"])
def test_a_cache_that_cannot_be_used_is_told_once(command, cache):
    cache.folder.mkdir()
    cache.folder.chmod(0o777)
    out = cache(command=command)
    assert out.count("nothing is kept on disk") == 1
    assert "XDEV_CACHE_DIR to a folder of your own" in out


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--functions", "add,sums"], "--functions has sums; there are abs, "),
        (["--dtypes", "float32,f4"], "--dtypes has f4; there are bool, "),
    ],
)
def test_what_there_is_not_cannot_be_made_ahead(capsys, monkeypatch, words, error):
    if not xdev.Device("cuda").available:
        assert main(["cache", "warm", *words]) == 2
        assert "CUDA" in capsys.readouterr().err
    monkeypatch.setattr(xdev.Device, "require", lambda device: device)
    assert main(["cache", "warm", *words]) == 2
    assert error in capsys.readouterr().err


@pytest.mark.cuda
@pytest.mark.usefixtures("cuda")
def test_kernels_are_made_ahead(cache):
    words = ["warm", "--functions", "add,sort,sum", "--dtypes=float32,int8"]
    assert re.match(rf"{cache.folder}: [1-9]\d* kernels are new", cache(*words))
    kept = {path.name for path in cache.folder.rglob("*")}
    cache(*words)
    assert {path.name for path in cache.folder.rglob("*")} == kept
