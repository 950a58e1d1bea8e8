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

from xdev.cli import main


class Clock:
    """A clock that moves by given costs, one a call [s]."""

    def __init__(self, costs):
        self.costs, self.now, self.calls = costs, 0.0, 0

    def __call__(self):
        return self.now

    def tick(self):
        """Be the statement that is timed."""
        self.now += self.costs[self.calls % len(self.costs)]
        self.calls += 1


def output(program, clock):
    """Return what a program prints, and the texts of its warnings."""
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(io.StringIO()) as text,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
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


def test_setups_and_statements_are_lines(run):
    done = run("-s", "x = []", "-s", "y = 2", "for i in range(3):", "  x.append(y)")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("2 loops, best of 1: ")


@pytest.mark.parametrize("words", [["--", "-1"], ["1", "-3"], ["--"], []])
def test_words_after_the_first_that_is_no_option_are_the_statement(words, run):
    done = run("-u", "nsec", *words)
    assert (done.returncode, done.stdout.split(" ")[0]) == (0, "2")


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
    name = "setup" if words[0] == "-s" else "statement"
    assert first.startswith(f'  File "<{name}>"')
    assert lines == theirs.splitlines()[-len(lines) :]
    assert lines[-1].startswith("SyntaxError: ")


@pytest.mark.parametrize(
    ("words", "error", "calls"),
    [
        (["1/0"], "ZeroDivisionError", ["loop"]),
        (["-s", "1/0"], "ZeroDivisionError", ["loop"]),
        (["undefined"], "NameError", ["loop"]),
        (["def f(): undefined", "f()"], "NameError", ["loop", "f"]),
        (["exec('1 +')"], "SyntaxError", ["loop"]),
    ],
)
def test_an_error_of_the_code_is_shown_with_its_own_calls_alone(
    words, error, calls, run
):
    done = run(*words)
    assert (done.returncode, done.stdout) == (1, "")
    first, *lines = done.stderr.splitlines()
    assert first.startswith("Traceback")
    places = [line.split()[-1] for line in lines if ", in " in line]
    assert places == calls
    assert lines[-1].startswith(error)


@pytest.mark.parametrize(
    ("words", "places"),
    [
        (["1/0"], [("<statement>", 1)]),
        (["x = 1", "x / 0"], [("<statement>", 2)]),
        (["-s", "x = 1", "-s", "x / 0", "x"], [("<setup>", 2)]),
        (
            ["-s", "x = 1", "-s", "def f():", "-s", "    return x / 0", "x", "f()"],
            [("<statement>", 2), ("<setup>", 3)],
        ),
        (
            ["-s", "def f(): 1/0", "try: f()", "except Exception as e:", " 0 + '' "],
            [("<statement>", 1), ("<setup>", 1), ("<statement>", 3)],
        ),
        (["import sys; sys.exit(3)"], [("<statement>", 1)]),
        (["-s", "raise SystemExit", "pass"], [("<setup>", 1)]),
        (
            [
                "import signal; signal.signal(2, signal.default_int_handler)",
                "signal.raise_signal(2)",
            ],
            [("<statement>", 2)],
        ),
    ],
)
def test_an_error_is_shown_by_its_source_as_the_standard_library_shows_it(
    words, places, run
):
    done, theirs = run(*words), run(*words, program=timeit.main)
    assert (done.returncode, done.stdout) == (theirs.returncode, "") == (1, "")

    def blocks(text, names):
        """Return what is shown below each line of a place that has such a name."""
        _, *found = re.split(r'(?m)^  File ("[^"]*", line \d+), in \w+\n', text)
        pairs = zip(found[::2], found[1::2], strict=True)
        return {place: below for place, below in pairs if re.match(names, place)}

    ours = blocks(done.stderr, ".*")
    assert list(ours) == [f'"{name}", line {line}' for name, line in places]
    assert list(ours.values()) == list(blocks(theirs.stderr, '"<t').values())


def test_a_device_that_cannot_be_used_is_no_error_of_the_code(run, python):
    done = python("-m", "xdev", "timeit", "1", XDEV_DEVICE="cuda:99")
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("xdev: cuda:99 cannot be used: ")
    done = run("-s", "import xdev", "xdev.ones(3, device='cuda:99')")
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")


@pytest.mark.parametrize("words", [["-u", "hours"], ["-n", "x"], ["-z"]])
def test_wrong_options_end_in_2(words, run):
    assert run(*words).returncode == 2


def test_help_names_every_flag(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["timeit", "-h"])
    text = capsys.readouterr().out
    for flag in ("--number", "--repeat", "--setup", "--process", "--unit", "--verbose"):
        assert flag in text
