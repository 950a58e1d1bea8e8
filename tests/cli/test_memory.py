"""``xdev memory``: a program's report and picture."""

import json
import pickle
import sys

import pytest

from xdev import memory
from xdev.cli import main

PNG = b"\x89PNG\r\n\x1a\n"
PROGRAM = """
import sys
import xdev
from beside import SIZE

kept = [xdev.zeros(SIZE, device="cpu") for _ in range(2)]
gone = xdev.zeros(10 * SIZE, device="cpu")
del gone
print(sys.argv[1:], __name__)
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "beside.py").write_text("SIZE = 100_000\n")

    def write(end=""):
        path = tmp_path / "program.py"
        path.write_text(PROGRAM + end)
        return str(path)

    yield write
    sys.modules.pop("beside", None)


def test_a_program_is_run_reported_and_drawn(program, tmp_path, capsys):
    path, png, saved = program(), tmp_path / "a.png", tmp_path / "a.pickle"
    words = ["memory", "--plot", str(png), "--snapshot", str(saved), path]
    before = list(sys.argv), list(sys.path)

    assert main([*words, "--plot", "x"]) == 0

    out = capsys.readouterr().out
    assert out.startswith("['--plot', 'x'] __main__\n")
    assert "cpu pool usage: " in out
    assert f"{path}:6: 2 blocks, 1,600,000 B of cpu" in out
    assert f"{path}:7" not in out
    assert png.read_bytes().startswith(PNG)
    found = pickle.loads(saved.read_bytes())  # noqa: S301 - our own
    assert "alloc" in {e["action"] for trace in found["device_traces"] for e in trace}
    assert (sys.argv, sys.path) == before
    assert memory.snapshot("cpu")["device_traces"][0] == []
    assert memory.outstanding("cpu") == []
    assert main(["memory", str(saved)]) == 2
    assert "give --plot" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("end", "status", "said"),
    [
        ("sys.exit()", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit('enough')", 1, "enough"),
        ("raise ValueError('wrong')", 1, "ValueError: wrong"),
        ("raise KeyboardInterrupt", 1, "KeyboardInterrupt"),
    ],
)
def test_a_program_that_ends_early_is_reported_too(
    program, tmp_path, capsys, end, status, said
):
    path, png = program(end), tmp_path / "a.png"
    assert main(["memory", "--plot", str(png), path]) == status
    told = capsys.readouterr()
    assert said in told.err
    assert f"{path}:6: 2 blocks" in told.out
    assert png.exists()


@pytest.mark.parametrize("end", ["1 / 0", "def broken(", "import json; json.loads('')"])
def test_a_programs_error_is_shown_as_python_shows_it(end, python, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(end)
    done = python("-m", "xdev", "memory", path)
    assert (done.returncode, done.stderr) == (1, python(path).stderr)


@pytest.mark.parametrize("option", ["--plot", "--snapshot", "--json"])
def test_what_is_not_there_is_named_before_anything_runs(option, capsys):
    assert main(["memory", option, "/no/such/file"]) == 1
    assert "/no/such" in capsys.readouterr().err


@pytest.mark.parametrize(
    "saved",
    [
        b"",
        pickle.dumps([1, 2]),
        pickle.dumps({"segments": []}),
        pickle.dumps({"segments": [1, 2]})[:-3],  # EOFError
        b"\x80\x63.",  # ValueError: no such protocol
        b"cos\n\xff\n.",  # UnicodeDecodeError
        b"\x95" + b"\xff" * 8,  # OverflowError, or MemoryError
        pickle.dumps(print),  # no code is run
    ],
)
def test_a_file_that_is_no_snapshot_is_refused(saved, tmp_path, capsys):
    path = tmp_path / "other.pickle"
    path.write_bytes(saved)
    assert main(["memory", "--plot", str(tmp_path / "a.png"), str(path)]) == 2
    assert "not a snapshot" in capsys.readouterr().err


def test_json_of_a_program_is_not_mixed_with_what_it_prints(python, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import xdev\nprint('mine')\nx = xdev.empty(999, device='cpu')\n"
    )

    done = python("-m", "xdev", "memory", "--json", program)

    assert (done.returncode, done.stderr) == (0, "mine\n")
    [line] = json.loads(done.stdout)["cpu"]["outstanding"]
    assert line["where"] == f"{program}:3"
    assert line["nbytes"] >= 999 * 8
