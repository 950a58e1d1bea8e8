"""``xdev info``: what it prints, and that it tries every device for real."""

import os
import subprocess
import sys

import numpy as np
import pytest

import xdev
from xdev import _optional
from xdev.cli import info, main


def lines_of(capsys):
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_every_device_passes_and_every_version_is_there(capsys):
    assert main(["info"]) == 0
    lines = lines_of(capsys)
    assert ["numpy", np.__version__] in lines
    assert ["xdev", xdev.__version__] in lines
    for device in xdev.devices():
        tried = [line for line in lines if line[0] == str(device) and "PASS" in line]
        assert len(tried) == len(info.OPERATIONS)


def test_a_device_that_cannot_be_used_is_named_with_the_fix(capsys):
    main(["info"])
    out = capsys.readouterr().out
    reason = xdev.Device("cuda").reason
    assert (f"cannot be used: {reason}" in out) == (reason is not None)


@pytest.mark.parametrize(
    ("operation", "words"),
    [(lambda _: False, "FAIL: the result is wrong"), (lambda _: 1 / 0, "ZeroDivision")],
)
def test_a_failure_is_told_and_ends_with_1(operation, words, monkeypatch, capsys):
    monkeypatch.setitem(info.OPERATIONS, "array", operation)
    assert main(["info"]) == 1
    assert words in capsys.readouterr().out


def test_settings_in_force_are_told(monkeypatch, capsys):
    monkeypatch.setenv("XDEV_TYPO", "1")
    monkeypatch.setenv("XDEV_NUMPY_POOL", "0")
    main(["info"])
    out = capsys.readouterr().out
    assert "XDEV_MEMORY_POOL" in out
    unknown = [line for line in out.splitlines() if "is not a setting" in line]
    assert [line.split()[0] for line in unknown] == ["XDEV_TYPO"]


def test_an_allocator_that_was_left_alone_is_named(monkeypatch, capsys):
    found = {"cupy": "an allocator of the user's"}
    monkeypatch.setattr(xdev.memory.bridges, "left_alone", lambda: found)
    main(["info"])
    assert "cupy: an allocator of the user's" in capsys.readouterr().out


def test_the_namesake_is_warned_of(monkeypatch, capsys):
    main(["info"])
    assert "pip uninstall xdev" not in capsys.readouterr().out
    monkeypatch.setitem(_optional.distributions(), "xdev", "1.2.3")
    main(["info"])
    assert "pip uninstall xdev" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["info", "bench", "memory"])
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("XDEV_DEVICE", "abacus", "auto, cpu, cuda"),
        ("XDEV_MEMORY_POOL", "puddle", "split"),
        ("XDEV_MEMORY_LIMIT", "-1", "4GiB"),
    ],
)
def test_an_invalid_setting_ends_with_2_and_the_valid_ones(command, name, value, words):
    done = subprocess.run(
        [sys.executable, "-m", "xdev", command],
        env=os.environ | {name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert name in done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_default_that_cannot_be_used_is_told_and_not_fatal():
    done = subprocess.run(
        [sys.executable, "-m", "xdev", "info"],
        env=os.environ | {"XDEV_DEVICE": "cuda:99"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "cuda:99 cannot be used" in done.stdout
