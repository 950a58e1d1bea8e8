"""The command line as a whole."""

import os
import subprocess
import sys

import pytest

import xdev
from xdev.cli import main


def test_memory_prints_the_summary(capsys):
    assert main(["memory"]) == 0
    assert capsys.readouterr().out.strip() == xdev.memory.summary().strip()


def test_the_module_runs_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "xdev", "memory"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("words", [[], ["sing"]])
def test_what_is_no_command_ends_with_2_and_names_the_commands(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "command" in capsys.readouterr().err


def test_help_names_the_commands(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ("info", "bench", "memory"))


def test_the_version_is_told(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"xdev {xdev.__version__}\n"


@pytest.mark.parametrize("words", [["cache"], ["cache", "path"], ["memory"], ["info"]])
def test_a_reader_that_closes_the_pipe_ends_a_command_quietly(words):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "xdev", *words],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)

    assert (done.returncode, done.stderr) == (141, "")
