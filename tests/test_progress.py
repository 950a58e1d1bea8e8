"""A bar on long work: in a terminal, gone when the work is done, and nowhere else."""

import io

import numpy as np
import pytest

import xdev
from xdev.cli import main
from xdev.timing import compare, sweep

X = np.ones(64)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def comparing(progress):
    compare({"one": X.sum, "two": lambda: np.sum(X)}, repeat=2, progress=progress)


def sweeping(progress):
    sweep(lambda n: {"sum": np.ones(n).sum}, [4, 8], repeat=1, progress=progress)


def moving(progress):
    list(xdev.batches([X, X, X], "cpu", progress=progress))


WORKS = {"timing": comparing, "sizes": sweeping, "batches": moving}


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr("xdev.timing.comparison.RUN_SECONDS", 1e-5)
    monkeypatch.setattr("xdev._progress.PAUSE", 0.0)


@pytest.mark.parametrize("title", WORKS)
def test_a_terminal_shows_each_step_and_is_clean_at_the_end(title, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)

    WORKS[title](progress=True)

    *steps, last, end = terminal.getvalue().split("\r")[1:]
    total = {"timing": 4, "sizes": 2, "batches": 3}[title]
    counts = [f"{title} [", *[f" {k}/{total}, " for k in range(1, total + 1)]]
    assert all(any(count in step for step in steps) for count in counts)
    assert all(len(step) <= 79 for step in steps)
    assert (last.strip(), end) == ("", "")


@pytest.mark.parametrize("title", WORKS)
@pytest.mark.parametrize("progress", [True, False])
def test_what_is_no_terminal_or_not_asked_gets_nothing(title, progress, monkeypatch):
    file = io.StringIO() if progress else Terminal()
    monkeypatch.setattr("sys.stderr", file)
    WORKS[title](progress=progress)
    assert file.getvalue() == ""


def test_bench_shows_one_beside_its_output(monkeypatch, capsys):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    main(["bench", "--n", "99", "--device", "cpu"])
    assert "timing [###" in terminal.getvalue()
    assert "timing [" not in capsys.readouterr().out
