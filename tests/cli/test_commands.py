"""The command line as a whole, and ``xdev info``: it tries every device for real."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import xdev
from xdev.cli import main

COMMANDS = ("bench", "cache", "doctor", "info", "memory", "timeit")
ACTIONS = ("cache clear", "cache path", "cache warm")


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        ([], 0, ["doctor", "Examples", "xdev memory program.py"]),
        (["sing"], 2, "command"),
        (["--help"], 0, ["info", "bench", "timeit", "memory", "cache", "doctor"]),
        (["--version"], 0, f"xdev {xdev.__version__}\n"),
    ],
)
def test_what_ends_before_a_command_tells_the_way(words, status, told, ended):
    found, *texts = ended(*words)
    assert found == status
    text = "".join(texts)
    assert all(word in text for word in ([told] if isinstance(told, str) else told))


@pytest.mark.parametrize("command", ["", *COMMANDS, *ACTIONS])
def test_an_unknown_option_is_told_with_the_usage_of_its_command(command, ended):
    status, _, text = ended(*command.split(), "--size", "5")
    assert status == 2
    assert text.startswith(f"usage: {f'xdev {command}'.strip()} [-h]")


@pytest.mark.parametrize("words", [["cache", "path"], ["info"]])
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


@pytest.mark.parametrize(
    ("command", "name", "value", "words"),
    [
        ("info", "XDEV_DEVICE", "abacus", "auto, cpu, cuda"),
        ("bench", "XDEV_MEMORY_POOL", "puddle", "split"),
        ("memory", "XDEV_MEMORY_LIMIT", "-1", "4GiB"),
        ("info", "XDEV_NATIVE", "perhaps", "1, true, on"),  # the import reads it
    ],
)
def test_an_invalid_setting_is_told_with_the_valid_ones(
    command, name, value, words, python
):
    done = python("-m", "xdev", command, **{name: value})
    assert (done.returncode, done.stdout) == (2, "")
    last = done.stderr.splitlines()[-1]
    assert f": {name}={value!r} is not valid: use " in last
    assert words in last


def test_a_default_that_cannot_be_used_is_told_and_not_fatal(python):
    done = python("-m", "xdev", "info", XDEV_DEVICE="cuda:99")
    assert (done.returncode, done.stderr) == (0, "")
    assert "cuda:99 cannot be used" in done.stdout


def test_every_device_passes_and_every_version_is_there(capsys):
    assert main(["info"]) == 0
    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines()]
    assert ["numpy", np.__version__] in lines
    assert ["xdev", xdev.__version__] in lines
    for device in xdev.devices():
        tried = [line for line in lines if line[0] == str(device) and "PASS" in line]
        assert len(tried) == 2  # a function and a ufunc
    reason = xdev.Device("cuda").reason
    told = f"cannot be used: {reason}" in " ".join(out.split())
    assert told == (reason is not None)
    assert "pip uninstall xdev" not in out


@pytest.mark.parametrize(
    ("add", "words"),
    [(lambda x, _: x, "FAIL: the result is wrong"), (lambda *_: 1 / 0, "ZeroDivision")],
)
def test_a_failure_is_told_and_ends_with_1(add, words, monkeypatch, capsys):
    monkeypatch.setattr(xdev, "add", add)
    assert main(["info"]) == 1
    assert words in capsys.readouterr().out


def test_what_differs_from_a_plain_machine_is_told(monkeypatch, capsys):
    monkeypatch.setenv("XDEV_TYPO", "1")
    monkeypatch.setenv("XDEV_NUMPY_POOL", "0")
    found = {"cupy": "an allocator of the user's"}
    monkeypatch.setattr(xdev.memory.bridges, "left_alone", lambda: found)
    main(["info"])
    out = capsys.readouterr().out
    assert "XDEV_MEMORY_POOL" in out
    unknown = [line for line in out.splitlines() if "is not a setting" in line]
    assert [line.split()[0] for line in unknown] == ["XDEV_TYPO"]
    assert "cupy: an allocator of the user's" in out


def test_the_site_lists_the_settings_that_info_prints(capsys):
    main(["info", "--json"])
    settings = json.loads(capsys.readouterr().out)["settings"]
    page = Path(__file__).parents[2] / "docs" / "doctor.md"
    listed = re.findall(r"^\| `(XDEV_\w+)`", page.read_text(), re.MULTILINE)
    assert {name for name in settings if "is not" not in settings[name]} == {*listed}


@pytest.mark.parametrize("command", ["", *COMMANDS, *ACTIONS])
def test_help_teaches_by_examples_in_80_columns(command, ended, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    _, text, _ = ended(*command.split(), "--help")

    assert all(len(line) <= 80 for line in text.splitlines())
    assert "--json" in text
    assert f"xdev {command}" in text.partition("Examples\n")[2]


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (["cache"], {"folder", "count", "nbytes", "problem", "entries"}),
        (["cache", "path"], {"folder"}),
        (["info"], {"versions", "devices", "settings", "operations", "memory pools"}),
        (["memory"], {str(xdev.default_device())}),
        (["timeit", "-n", "9", "-v", "pass"], {"all_runs", "best", "notes", "loops"}),
    ],
)
def test_every_command_prints_json_and_nothing_else(words, keys, capsys):
    places = (1, 2) if words[0] == "cache" else (1,)
    for place in places[: len(words)]:
        main([*words[:place], "--json", *words[place:]])

        assert json.loads(capsys.readouterr().out).keys() >= keys
