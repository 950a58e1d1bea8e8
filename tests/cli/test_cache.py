"""``xdev cache``: what it lists, and that it removes xdev's own files alone."""

import json
import os
import re
import time

import numpy as np
import pytest

import xdev
from xdev import _config
from xdev._disk_cache import DiskCache
from xdev.cli import main

DAY = 24 * 60 * 60


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(_config, "cache_dir", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def filled(folder):
    DiskCache("cubins").save("one", bytes(2000), "saxpy")
    DiskCache("loops").save("two", bytes(100), "blend")
    DiskCache("loops").load("two")
    for kind, key, days in (("cubins", "one", 40), ("loops", "two", 3)):
        then = time.time() - days * DAY
        os.utime(folder / kind / key, (then, then))
    (folder / "loops" / "letter").write_text("mine")
    return folder


@pytest.mark.usefixtures("filled")
def test_it_lists_kind_function_size_age_and_hits(capsys, folder):
    assert main(["cache"]) == 0

    head, titles, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith(f"{folder}: 2 entries, 2.")
    assert titles.split() == ["kind", "function", "size", "age", "hits"]
    assert [row.split()[:2] for row in rows] == [
        ["loops", "blend"],
        ["cubins", "saxpy"],
    ]
    assert [row.split()[-1] for row in rows] == ["1", "0"]
    assert [row.split()[-3:-1] for row in rows] == [["0.0", "d"]] * 2
    assert "2.0" in rows[1]
    assert "KiB" in rows[1]
    main(["info"])
    assert re.search(f"{folder}:\\s+\\d+ entries", capsys.readouterr().out)
    file = folder / "cubins" / "one"
    file.write_bytes(file.read_bytes()[:-1])
    main(["cache"])
    assert "(damaged)" in capsys.readouterr().out


def test_of_many_entries_the_latest_are_listed_and_all_on_request(capsys, folder):
    for number in range(45):
        DiskCache("loops").save(f"key{number}", b"body", f"function_{number}")
        os.utime(folder / "loops" / f"key{number}", (number, number))

    def printed(*words):
        main(["cache", *words])
        return capsys.readouterr().out

    few, every = printed().splitlines(), printed("--all").splitlines()
    assert [row.split()[1] for row in few[2:4]] == ["function_44", "function_43"]
    assert (len(few), few[-1]) == (43, "and 5 more: xdev cache --all")
    assert (every[:42], len(every)) == (few[:42], 47)
    assert len(json.loads(printed("--json"))["entries"]) == 45


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ([], set()),
        (["--older", "30"], {"two"}),
        (["--older", "2.5"], set()),
        (["--older", "41"], {"one", "two"}),
    ],
)
def test_clear_removes_what_was_not_used_for_so_long(filled, words, kept, capsys):
    assert main(["cache", "clear", *words]) == 0

    left = {path.name for path in filled.rglob("*") if path.is_file()}
    assert left == kept | {"letter"}
    assert f"{2 - len(kept)} entries removed" in capsys.readouterr().out


def test_an_empty_cache_is_no_error_and_its_folder_told_alone(capsys, folder):
    assert main(["cache", "path"]) == 0
    assert capsys.readouterr().out == f"{folder}\n"
    assert main(["cache"]) == 0
    assert main(["cache", "clear"]) == 0
    assert "0 entries" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["cache", "info"])
def test_a_cache_that_cannot_be_used_is_told_once(command, folder, capsys):
    folder.write_text("a file")

    assert main([command]) == 0

    out = capsys.readouterr().out
    assert out.count("nothing is kept on disk") == 1
    assert "XDEV_CACHE_DIR to a folder of your own" in out


def test_clear_removes_all_that_kernels_and_ufuncs_kept(folder):
    def scaled(i, x, out):
        out[i] = 3 * x[i] + 12345

    x = np.asarray([1.0, 2.0])
    kernel = xdev.kernel(scaled)
    kernel[2](x, np.zeros(2))
    assert kernel.writes(1, x, x) == {"out"}
    xdev.vectorize(lambda x: 3 * x + 12345)(x)
    kinds = {path.parent.name for path in folder.glob("*/*")}
    assert kinds == {"loops", "typings", "writes"}

    assert main(["cache", "clear"]) == 0

    assert not list(folder.glob("*/*"))


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--functions", "add,sums"], "--functions has sums; there are abs, "),
        (["--dtypes", "float32,f4"], "--dtypes has f4; there are bool, "),
    ],
)
def test_what_there_is_not_cannot_be_made_ahead(capsys, monkeypatch, words, error):
    monkeypatch.setattr(xdev.Device, "require", lambda device: device)

    assert main(["cache", "warm", *words]) == 2
    assert error in capsys.readouterr().err


def test_without_a_gpu_there_is_nothing_to_make_ahead(capsys):
    if xdev.Device("cuda").available:
        pytest.skip("there is a GPU")

    assert main(["cache", "warm"]) == 2
    assert "CUDA" in capsys.readouterr().err


@pytest.mark.cuda
@pytest.mark.usefixtures("cuda")
def test_kernels_are_made_ahead(capsys, folder):
    words = ["cache", "warm", "--functions", "add,sort,sum", "--dtypes=float32,int8"]
    assert main(words) == 0
    assert re.match(rf"{folder}: [1-9]\d* kernels are new", capsys.readouterr().out)
    kept = {path.name for path in folder.rglob("*")}
    assert main(words) == 0
    assert {path.name for path in folder.rglob("*")} == kept
