"""A bar on long work: in a terminal, gone when the work is done, and nowhere else."""

import io
import time

import numpy as np
import pytest

import xdev
from xdev.timing import compare, sweep

X = np.ones(64)
STEP = 0.11  # s: what comes faster is not all shown


class Terminal(io.StringIO):
    def isatty(self):
        return True


def slow():
    time.sleep(STEP)


def comparing(progress):
    compare({"one": slow, "two": slow}, number=1, repeat=2, progress=progress)


def sweeping(progress):
    sweep(lambda _: {"one": slow}, [4, 8], number=1, repeat=1, progress=progress)


def moving(progress):
    for _ in xdev.batches([X, X, X], "cpu", progress=progress):
        slow()


WORKS = {"timing": comparing, "sizes": sweeping, "batches": moving}


@pytest.mark.parametrize("title", WORKS)
def test_a_terminal_shows_the_steps_and_is_clean_at_the_end(title, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)

    WORKS[title](progress=True)

    *steps, last, end = terminal.getvalue().split("\r")[1:]
    total = {"timing": 4, "sizes": 2, "batches": 3}[title]
    assert steps[0].startswith(f"{title} [")
    assert f" 0/{total}, " in steps[0]
    assert f" {total}/{total}, " in steps[-1]
    assert all(len(step) <= 79 for step in steps)
    assert (last.strip(), end) == ("", "")


@pytest.mark.parametrize("title", WORKS)
@pytest.mark.parametrize("progress", [True, False])
def test_what_is_no_terminal_or_not_asked_gets_nothing(title, progress, monkeypatch):
    file = io.StringIO() if progress else Terminal()
    monkeypatch.setattr("sys.stderr", file)
    WORKS[title](progress=progress)
    assert file.getvalue() == ""
