"""``xdev bench``: its rows, its record, and what it says of wrong options."""

import json
import re
import sys

import numpy as np
import pytest

import xdev
from xdev.cli import main

TIME = r"[\d.e+-]+ (?:s|ms|μs|ns) ± [\d.e+-]+ (?:s|ms|μs|ns)"
COMMAND = ["bench", "--n", "100", "--device", "cpu"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("bench") / "saved.json"
    assert main([*COMMAND, "--json", str(path)]) == 0
    return json.loads(path.read_text())


@pytest.fixture
def since(saved, tmp_path):
    """Return how to change the record; it gives the command that compares with it."""

    def rewrite(times=1.0, **facts):
        rows = [
            row | {"samples": [times * seconds for seconds in row["samples"]]}
            for row in saved["rows"]
        ]
        path = tmp_path / "changed.json"
        path.write_text(json.dumps(saved | {"rows": rows} | facts))
        return [*COMMAND, "--baseline", str(path)]

    return rewrite


def test_every_row_has_its_times_and_its_samples(real_device, tmp_path, capsys):
    path, dtype = tmp_path / "bench.json", "complex128"
    command = ["bench", "--n", "1000", "--dtype", dtype, "--json", str(path)]

    with xdev.use_device(real_device):  # what --device is, left out
        assert main(command) == 0

    record, out = json.loads(path.read_text()), capsys.readouterr().out
    names = [row["name"] for row in record["rows"]]
    lines = out.splitlines()
    assert f"on {real_device}\n" in out
    assert all(len(line) <= 80 for line in lines)
    for row in record["rows"]:
        line, *_ = [line for line in lines if line.startswith(row["name"] + "  ")]
        assert re.search(TIME, line)
        assert len(row["samples"]) >= 7
        assert all(seconds > 0 for seconds in row["samples"])
        moved = real_device.type == "cpu" or "host" not in row["name"]
        assert row["nbytes"] == (3 * 16 * 1000 if moved else None)
        assert (row["bandwidth"] is not None) == moved
    for library in ("NumPy", "xdev"):
        assert {library in name for name in names} == {True, False}
        assert any(name.startswith(library) and "out=" in name for name in names)
    assert any("Numba" in name for name in names)
    assert record["environment"]["versions"]["numpy"] == np.__version__
    assert (record["n"], record["dtype"]) == (1000, dtype)
    assert all(name in re.sub(r"\s+", " ", out) for name in record["left_out"])


def test_what_is_left_out_has_its_reason(saved):
    reason = xdev.Device("cuda").reason or "they are of --device cuda"
    assert saved["left_out"]["CuPy arrays out="] == reason


def test_json_is_printed_alone_and_a_peer_that_fails_is_left_out(monkeypatch, capsys):
    monkeypatch.setattr("numba.from_dtype", lambda _: 1 / 0)
    assert main([*COMMAND, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["left_out"]["Numba host arrays"].startswith("ZeroDivisionError")
    assert record.keys() >= {"rows", "environment", "n"}


@pytest.mark.parametrize("dtype", ["float16", "complex64", "int8", "uint64"])
def test_arrays_are_random_and_results_that_differ_end_it(dtype, monkeypatch, capsys):
    """A processor draws less power on zeros, and may run faster."""
    seen = []

    def wrong(_):
        return lambda x, y, out=None: seen.append((x, y)) or np.subtract(x, y, out)

    monkeypatch.setattr(xdev, "vectorize", wrong)
    command = ["bench", "--n", "10000", "--device", "cpu", "--dtype", dtype]
    assert main(command) == 1
    captured = capsys.readouterr()
    assert "return different results" in captured.err
    assert "±" not in captured.out
    for x in seen[0]:
        assert np.unique(x).size >= 50
        assert np.count_nonzero(x) > 9_000
        assert x.dtype == dtype


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--n", "0"], "at least 1"),
        (["--n", "many"], "at least 1"),
        (["--dtype", "float31"], "invalid choice"),
        (["--device", "abacus"], "no device is called 'abacus'"),
        (["--device", "cuda:99"], "cuda:99 cannot be used"),
        (["--device", "fake"], "fake:0 is not timed"),
        (["--json", "/nowhere/at/all.json"], "cannot write"),
        (["--json", "new.json", "--n", "0"], "at least 1"),
        (["--baseline", "/nowhere/at/all.json"], "cannot read '/nowhere"),
        (["--baseline", __file__], "is not a record of compare"),
        (["--speed"], "unrecognized"),
    ],
)
def test_wrong_options_end_with_2_and_say_why(
    options, words, ended, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    status, _, error = ended("bench", *options)
    assert status == 2
    assert words in error
    assert not list(tmp_path.iterdir())  # a path that was only tried leaves no file


@pytest.mark.parametrize(
    ("times", "status", "verdict"), [(1e-2, 1, "slower"), (1e2, 0, "faster")]
)
def test_a_row_that_is_slower_than_its_baseline_ends_it_with_1(
    since, capsys, times, status, verdict
):
    assert main(since(times)) == status
    _, _, changes = capsys.readouterr().out.partition("since the baseline")
    lines = changes.splitlines()[1:]
    assert len(lines) >= 7
    assert all(line.endswith(verdict) for line in lines)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"n": 101}, "the baseline has n 101, not 100"),
        ({"dtype": "int8"}, "the baseline has dtype int8, not float32"),
        ({"device": "cuda:0"}, "the baseline has device cuda:0, not cpu"),
        ({"environment": {"cores": 0}}, "another machine, the cores being 0"),
    ],
)
def test_a_baseline_of_something_else_is_refused_before_anything_is_made(
    since, capsys, monkeypatch, facts, words
):
    monkeypatch.setattr(xdev, "vectorize", lambda _: pytest.fail("it was timed"))
    assert main(since(**facts)) == 2
    assert words in capsys.readouterr().err


def test_more_elements_than_memory_is_an_error_in_words(capsys):
    assert main(["bench", "--n", str(sys.maxsize // 64), "--device", "cpu"]) == 1
    assert capsys.readouterr().err.startswith("xdev: ")
