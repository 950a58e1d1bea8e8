"""``xdev timeit`` beside ``python -m timeit``, on the same clock."""

import io
import re
import sys
import timeit
import traceback
import warnings
from contextlib import redirect_stdout
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st
from running import Clock

from xdev.cli import main


def output(program, clock):
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(io.StringIO()) as text,
        warnings.catch_warnings(record=True, action="always") as caught,
    ):
        patch.setattr(timeit, "tick", clock.tick, raising=False)
        patch.setattr("builtins.tick", clock.tick, raising=False)
        patch.setattr("time.perf_counter", clock)
        patch.setattr("time.process_time", clock)
        patch.setattr("sys.path", list(sys.path))
        status = program()
    return text.getvalue(), [str(one.message) for one in caught], status or 0


def ours(flags, costs):
    clock = Clock(costs)
    return output(lambda: main(["timeit", *flags, "tick()"]), clock)


def theirs(flags, costs):
    clock = Clock(costs)
    return output(
        lambda: timeit.main([*flags, "tick()"], _wrap_timer=lambda _: clock), clock
    )


@given(
    cost=st.one_of(st.floats(1e-4, 1e-3), st.floats(0.01, 500.0)),
    n=st.sampled_from([[], ["-n1"], ["-n", "20"], ["--number=3"], ["-n0"]]),
    r=st.sampled_from([[], ["-r1"], ["--repeat", "3"], ["-r-2"]]),
    process=st.sampled_from([[], ["-p"], ["--process"]]),
    unit=st.sampled_from([[], ["-u", "sec"], ["-unsec"], ["--unit=usec"]]),
    verbose=st.sampled_from([[], ["-v"], ["-vv"], ["--verbose", "-v", "-v"]]),
)
def test_prints_what_the_standard_library_prints(cost, n, r, process, unit, verbose):
    cost = 2.0**-20 * max(1, round(cost * 2**20))  # so that sums are exact
    flags = [*n, *r, *process, *unit, *verbose]
    assert ours(flags, [cost]) == theirs(flags, [cost])


def test_warns_of_a_wide_spread_as_the_standard_library_does():
    flags = ["-n1", "-r3"]
    mine = ours(flags, [9.0, 1.0, 1.0, 9.0])  # the first call is in no figure
    assert mine == theirs(flags, [1.0, 1.0, 9.0])
    assert "likely unreliable" in mine[1][0]


@pytest.fixture(name="run")
def fixture_run(capsys, monkeypatch):
    """Run ``xdev timeit``, or the standard library's; return how it ended."""
    monkeypatch.setattr(sys, "path", [*sys.path])  # both look in the current folder

    def run(*arguments, program=lambda words: main(["timeit", *words])):
        try:
            status = program(["-n2", "-r1", *arguments])
        except SystemExit as end:  # argparse's
            status = end.code
        except SyntaxError:  # the standard library's leave it to Python
            traceback.print_exc()
            status = 1
        told = capsys.readouterr()
        return SimpleNamespace(returncode=status, stdout=told.out, stderr=told.err)

    return run


@pytest.mark.parametrize(
    "words",
    [
        *(["--", "-1"], ["1", "-3"], ["--"], []),
        ["-s", "x = []", "-s", "y = 2", "for i in range(3):", "  x.append(y)"],
    ],
)
def test_setups_and_words_from_the_first_that_is_no_option_are_lines(words, run):
    done = run("-u", "nsec", *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("2 loops, best of 1: ")


def test_modules_of_the_current_directory_can_be_imported(tmp_path, python):
    (tmp_path / "only_here.py").write_text("x = 1")
    words = "-m", "xdev", "timeit", "-n1", "-s", "import only_here", "only_here.x"
    assert python(*words, cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    "words",
    [["x+"], ["-s", "y +", "x"], ["return"], ["-s", "break"], ["for x in (1", "pass"]],
)
def test_what_is_no_statement_is_shown_alone_as_the_standard_library_shows_it(
    words, run
):
    """Its text ends with the same lines; the calls that led there are ours and its."""
    done = run(*words)
    theirs = run(*words, program=timeit.main).stderr
    first, *lines = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert first.startswith('  File "<timeit>"')
    assert lines == theirs.splitlines()[-len(lines) :]
    assert lines[-1].startswith("SyntaxError: ")


FUNCTION = ["-s", "x = 1", "-s", "def f():", "-s", "    return x / 0"]
SIGNALS = "import signal; signal.signal(2, signal.default_int_handler)"


@pytest.mark.parametrize(
    ("words", "calls"),
    [
        (["1/0"], 1),
        (["x = 1", "x / 0"], 1),
        (["exec('1 +')"], 1),
        (["-s", "x = 1", "-s", "x / 0", "x"], 1),
        ([*FUNCTION, "x", "f()"], 2),
        ([*FUNCTION, "try: f()", "except Exception as e:", " 0 + '' "], 3),
        (["import sys; sys.exit(3)"], 1),
        (["-s", "raise SystemExit", "pass"], 1),
        ([SIGNALS, "signal.raise_signal(2)"], 1),
    ],
)
def test_an_error_is_shown_by_its_source_with_its_own_calls_alone(words, calls, run):
    """The same lines as the standard library shows, without those of a library."""
    done, theirs = run(*words), run(*words, program=timeit.main)
    assert (done.returncode, done.stdout) == (theirs.returncode, "") == (1, "")
    line = r'(?m)^  File "<{}>", .*\n    (\S.*)$'
    shown = re.findall(line.format("timeit"), done.stderr)
    assert shown == re.findall(line.format("timeit-src"), theirs.stderr)
    assert len(shown) == calls
    assert done.stderr.splitlines()[-1] == theirs.stderr.splitlines()[-1]


def test_a_device_that_cannot_be_used_is_no_error_of_the_code(run, python):
    done = python("-m", "xdev", "timeit", "1", XDEV_DEVICE="cuda:99")
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("xdev: cuda:99 cannot be used: ")
    done = run("-s", "import xdev", "xdev.ones(3, device='cuda:99')")
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
