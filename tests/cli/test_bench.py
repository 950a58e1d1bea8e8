"""``xdev bench``: its rows, its record, and what it says of wrong options."""

import io
import json
import re
import sys
from contextlib import redirect_stdout
from types import SimpleNamespace

import numpy as np
import pytest

import xdev
from xdev.cli import bench, main
from xdev.timing import compare

TIME = r"[\d.e+-]+ (?:s|ms|μs|ns) ± [\d.e+-]+ (?:s|ms|μs|ns)"


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Let a table take milliseconds: these tests ask what it says, not how long."""
    monkeypatch.setattr("xdev.timing.comparison.RUN_SECONDS", 1e-4)


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A record that was saved, and what was printed."""
    path = tmp_path_factory.mktemp("bench") / "saved.json"
    command = ["bench", "--n", "100", "--device", "cpu", "--json", str(path)]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as text:
        patch.setattr("xdev.timing.comparison.RUN_SECONDS", 1e-4)
        assert main(command) == 0
    return SimpleNamespace(path=path, text=text.getvalue())


@pytest.fixture
def saved(first, tmp_path):
    """Return how to change the record; it gives the command that compares with it."""

    def rewrite(times=1.0, **facts):
        record = json.loads(first.path.read_text()) | facts
        for row in record["rows"]:
            row["samples"] = [times * seconds for seconds in row["samples"]]
        path = tmp_path / "changed.json"
        path.write_text(json.dumps(record))
        return ["bench", "--n", "100", "--device", "cpu", "--baseline", str(path)]

    return rewrite


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_every_row_has_its_times_and_its_samples(real_device, dtype, tmp_path, capsys):
    path = tmp_path / "bench.json"
    command = ["bench", "--n", "1000", "--dtype", dtype, "--json", str(path)]

    assert main([*command, "--device", str(real_device)]) == 0

    record = json.loads(path.read_text())
    lines = capsys.readouterr().out.splitlines()
    names = [row["name"] for row in record["rows"]]
    for row in record["rows"]:
        line, *_ = [line for line in lines if line.startswith(row["name"] + "  ")]
        assert re.search(TIME, line)
        assert len(row["samples"]) >= 7
        assert all(seconds > 0 for seconds in row["samples"])
        moved = real_device.type == "cpu" or "host" not in row["name"]
        nbytes = 3 * np.dtype(dtype).itemsize * 1000
        assert row["nbytes"] == (nbytes if moved else None)
        assert (row["bandwidth"] is not None) == moved
    for library in ("NumPy", "xdev"):
        assert {library in name for name in names} == {True, False}
        assert any(name.startswith(library) and "out=" in name for name in names)
    assert any("Numba" in name for name in names)
    assert record["environment"]["versions"]["numpy"] == np.__version__
    assert (record["n"], record["dtype"]) == (1000, dtype)


def test_json_without_a_file_is_printed_and_nothing_else(capsys):
    main(["bench", "--n", "99", "--device", "cpu", "--json"])
    record = json.loads(capsys.readouterr().out)
    assert record.keys() >= {"rows", "environment", "left_out", "n"}


def test_what_is_left_out_is_named_with_the_reason(first):
    left_out, text = json.loads(first.path.read_text())["left_out"], first.text
    assert all(len(line) <= 80 for line in text.splitlines())
    reason = xdev.Device("cuda").reason or "they are of --device cuda"
    assert left_out["CuPy arrays out="] == reason
    assert reason in " ".join(text.split())
    assert all(name in re.sub(r"\s+", " ", text) for name in left_out)
    assert set(left_out) | {"NumPy host arrays"} <= set(bench.ROWS)


def test_a_peer_that_fails_is_left_out_and_the_rest_go_on(monkeypatch, capsys):
    def broken(_):
        raise OSError("the peer is broken")

    monkeypatch.setitem(bench.ROWS, "Numba host arrays", (("cpu",), broken))
    assert main(["bench", "--n", "100", "--device", "cpu"]) == 0
    assert "OSError: the peer is broken" in capsys.readouterr().out


def test_results_that_differ_end_it_before_any_timing(monkeypatch, capsys):
    monkeypatch.setattr(bench, "_into", lambda f, a: lambda: f(a[0], a[1]) + 1)
    assert main(["bench", "--n", "100", "--device", "cpu"]) == 1
    captured = capsys.readouterr()
    assert "return different results" in captured.err
    assert "±" not in captured.out


def test_the_default_device_is_that_of_the_environment(real_device, capsys):
    with xdev.use_device(real_device):
        main(["bench", "--n", "100"])
    assert f"on {real_device}\n" in capsys.readouterr().out


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
        (["--baseline", "/nowhere/at/all.json"], "cannot read '/nowhere"),
        (["--baseline", __file__], "is not JSON"),
        (["--speed"], "unrecognized"),
    ],
)
def test_wrong_options_end_with_2_and_say_why(options, words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["bench", *options])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_a_path_that_was_only_tried_leaves_no_file(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["bench", "--json", str(tmp_path / "new.json"), "--n", "0"])
    assert not list(tmp_path.iterdir())
    assert "at least 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("times", "status", "verdict"), [(1e-2, 1, "slower"), (1e2, 0, "faster")]
)
def test_a_row_that_is_slower_than_its_baseline_ends_it_with_1(
    saved, capsys, times, status, verdict
):
    assert main(saved(times)) == status
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
    ],
)
def test_a_baseline_of_something_else_is_refused_before_anything_is_made(
    saved, capsys, monkeypatch, facts, words
):
    command = saved(**facts)
    monkeypatch.setattr(bench, "contest", lambda *_: pytest.fail("it was timed"))
    assert main(command) == 2
    assert words in capsys.readouterr().err


def test_on_a_terminal_verdicts_are_coloured(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    comparison = compare({"one": lambda: 1, "two": lambda: sum([0] * 999, 1)}, repeat=7)
    bench.show(comparison)
    coloured = capsys.readouterr().out
    assert "\x1b[31mslower" in coloured
    plain = re.sub(r"\x1b\[\d+m", "", coloured).splitlines()
    assert [line.rstrip() for line in plain] == str(comparison).splitlines()


def test_more_elements_than_memory_is_an_error_in_words(capsys):
    assert main(["bench", "--n", str(sys.maxsize // 64), "--device", "cpu"]) == 1
    assert capsys.readouterr().err.startswith("xdev: ")


@pytest.mark.parametrize("dtype", ["float16", "complex64", "int8", "uint64"])
def test_arrays_are_random_and_never_zeros(dtype):
    """A processor draws less power on zeros, and may run faster."""
    for x in bench.Stage(10_000, np.dtype(dtype), xdev.Device("cpu")).host[:2]:
        assert np.unique(x).size >= 50
        assert np.count_nonzero(x) > 9_000
        assert x.dtype == dtype
