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


WORKS = {comparing: "timing 4", sweeping: "sizes 2", moving: "batches 3"}


@pytest.mark.parametrize("work", WORKS)
def test_a_terminal_alone_shows_the_steps_and_is_clean_at_the_end(work, monkeypatch):
    def shown(file, progress):
        with monkeypatch.context() as patch:
            patch.setattr("sys.stderr", file)
            work(progress=progress)
        return file.getvalue()

    assert shown(io.StringIO(), progress=True) == ""
    assert shown(Terminal(), progress=False) == ""
    *steps, last, end = shown(Terminal(), progress=True).split("\r")[1:]
    title, total = WORKS[work].split()
    assert steps[0].startswith(f"{title} [")
    assert f" 0/{total}, " in steps[0]
    assert f" {total}/{total}, " in steps[-1]
    assert all(len(step) <= 79 for step in steps)
    assert (last.strip(), end) == ("", "")
