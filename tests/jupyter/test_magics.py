"""``%xtimeit`` beside the installed IPython's ``%timeit``, on the same clock."""

import doctest
import io
import re
import sys
import timeit
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from running import Clock

import xdev
from xdev.timing import Timing


@pytest.fixture(scope="module")
def shell():
    main = sys.modules["__main__"]  # the shell puts its own there: nothing can spawn
    made = InteractiveShell()
    made.run_line_magic("load_ext", "xdev")
    yield made
    made.history_manager.enabled = False
    made.reset()  # what cells left would live on
    InteractiveShell.clear_instance()
    sys.modules["__main__"] = main


def printed(shell, magic, line, cell, costs):
    # Ours makes a first call more, which is in no figure.
    clock = Clock(costs, free=magic == "xtimeit")
    names = {"tick": clock.tick, "stored": None}
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as text:
        patch.setattr(timeit, "default_timer", clock)
        for name in ("perf_counter", "time"):
            patch.setattr(f"time.{name}", clock)
        shell.user_ns.update(names)
        if cell is None:
            result = shell.run_line_magic(magic, line)
        else:
            result = shell.run_cell_magic(magic, line, cell)
        stored = shell.user_ns["stored"]
    return text.getvalue(), result, stored


FIGURES = ("loops", "repeat", "best", "worst", "all_runs", "timings", "average")


@given(
    costs=st.lists(st.one_of(st.floats(0, 1e-3), st.floats(0.01, 500.0)), min_size=2),
    n=st.sampled_from(["", "-n1", "-n 2", "-n10"]),
    r=st.sampled_from(["", "-r1", "-r 3"]),
    p=st.sampled_from(["", "-p2", "-p 0", "-p9"]),
    clock=st.sampled_from(["", "-t"]),
    quiet=st.sampled_from(["", "-q"]),
    out=st.sampled_from(["", "-o", "-v stored", "-o -v stored"]),
    cell=st.sampled_from([None, "tick()", "\ntick()\n"]),
)
def test_prints_returns_and_stores_what_timeit_does(
    shell, costs, n, r, p, clock, quiet, out, cell
):
    if not n:  # calls enough for 0.2 s are made in earnest, of one cost
        costs = [max(0.01, *costs)]
    costs = [2.0**-30 * round(cost * 2**30) for cost in costs]  # so sums are exact
    flags = " ".join(filter(None, (n, r, p, clock, quiet, out)))
    line = f"{flags} tick()" if cell is None else flags
    theirs = printed(shell, "timeit", line, cell, costs)
    ours = printed(shell, "xtimeit", line, cell, costs)
    assert ours[0] == theirs[0]
    for one, other in zip(ours[1:], theirs[1:], strict=True):
        assert (one is None) == (other is None)
        for name in FIGURES if other is not None else ():
            assert getattr(one, name) == pytest.approx(getattr(other, name))


def test_a_wide_spread_is_warned_of_as_timeit_does(shell):
    costs = [1.0, 1.0, 9.0]
    theirs, *_ = printed(shell, "timeit", "-n1 -r3 tick()", None, costs)
    ours, *_ = printed(shell, "xtimeit", "-n1 -r3 tick()", None, costs)
    assert "9.00 times longer" in ours
    assert ours == theirs


def test_the_cell_s_line_is_its_setup(shell):
    line, cell = "-o -n2 -r2 x = [3, 1]", "x.sort()\nx.append(2)"
    result = shell.run_cell_magic("xtimeit", line, cell)
    assert (result.loops, result.repeat) == (2, 2)
    assert shell.user_ns.get("x") != [1, 3, 2]


def test_variables_of_a_function_are_seen_and_leak_nowhere(shell):
    shell.user_ns["y"] = 5
    shell.run_cell(
        "def inside():\n"
        "    y, own = 7, 8\n"
        "    seen = []\n"
        "    line = '-q -n1 -r1 seen.append(y * own)'\n"
        "    get_ipython().run_line_magic('xtimeit', line)\n"
        "    return seen\n"
        "found = inside()"
    )
    assert set(shell.user_ns["found"]) == {56}
    assert shell.user_ns["y"] == 5
    assert "own" not in shell.user_ns


@pytest.mark.parametrize("line", ["-x 1", "-n"])
def test_wrong_options_are_refused_as_timeit_refuses_them(shell, line):
    for magic in ("timeit", "xtimeit"):
        with pytest.raises(UsageError):
            shell.run_line_magic(magic, line)


def test_process_time_leaves_sleep_out(shell):
    line = "-c -n1 -r2 -v slept -q import time; time.sleep(0.05)"
    shell.run_line_magic("xtimeit", line)
    assert shell.user_ns["slept"].worst < 0.04


def test_notes_follow_the_line(shell, capsys, device):
    shell.user_ns["x"] = xdev.asarray(np.arange(3.0), device=device)
    timing = shell.run_line_magic("xtimeit", "-o -n3 -r2 x + x")
    assert isinstance(timing, Timing)
    lines = capsys.readouterr().out.splitlines()
    assert lines[lines.index(str(timing)) + 1 :] == timing.notes


DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"```python\n(>>> .*?)```", re.DOTALL)


@pytest.mark.parametrize("page", ["ufunc.md", "memory.md", "tutorials/ufuncs.md"])
def test_a_block_that_is_pasted_whole_runs_and_fails_as_on_the_page(page, shell):
    """What it shows is for the page's doctest."""
    for block in BLOCK.findall((DOCS / page).read_text()):
        examples = doctest.DocTestParser().get_examples(block)
        cell = "\n".join(each.source for each in examples)
        with xdev.use_device("cpu"):
            result = shell.run_cell(cell)
        fails = any(each.exc_msg for each in examples)
        assert (result.error_in_exec is None) != fails, cell
        assert result.error_before_exec is None
