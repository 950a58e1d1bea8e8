"""``timeit``: arguments, counts, statements and the devices it finds."""

import gc

import numpy as np
import pytest
from hypothesis import given, strategies as st

import xdev
from xdev.errors import XdevError
from xdev.timing import timeit


@given(cost=st.floats(min_value=1e-4, max_value=10))
def test_loops_are_the_smallest_power_of_ten_that_takes_the_time(cost):
    now = [0.0]

    def call():
        now[0] += cost

    timing = timeit(call, repeat=2, device="cpu", timer=lambda: now[0])

    loops = timing.loops
    assert set(str(loops).lstrip("1")) <= {"0"}
    assert loops * cost >= 0.2 * (1 - 1e-9)
    assert loops == 1 or loops / 10 * cost < 0.2 * (1 + 1e-9)  # sums round
    assert timing.all_runs == pytest.approx([loops * cost] * 2)


@pytest.mark.parametrize("collecting", [True, False])
def test_the_collector_is_as_it_was_after_an_error_too(collecting):
    calls = iter([1])
    (gc.enable if collecting else gc.disable)()
    try:
        timeit(list, number=1, repeat=1)
        assert gc.isenabled() == collecting
        with pytest.raises(StopIteration):
            timeit(lambda: next(calls), number=1)
        assert gc.isenabled() == collecting
    finally:
        gc.enable()


def test_arguments_are_passed_and_the_counts_kept(device):
    calls = []
    x = np.ones(3)

    def call(*args):
        calls.append(args)

    how = {"number": np.int64(3), "repeat": np.array(4), "device": device}
    timing = timeit(call, x, 2, **how)

    assert (timing.loops, timing.repeat) == (3, 4)
    assert type(timing.loops) is int
    assert len(calls) >= 1 + 3 * 4
    assert all(args[0] is x and args[1] == 2 for args in calls)
    assert timing.best == min(timing.timings) <= timing.average <= timing.worst
    assert len(timing.launch) == len(timing.device) == 4
    assert all(map(np.isfinite, (*timing.launch, *timing.device)))


@pytest.mark.parametrize("as_keyword", [False, True])
def test_a_statement_takes_its_setup_as_in_the_standard_library(device, as_keyword):
    names, setup = {"seen": []}, "seen.append(7); x = 1"
    words = ["x + 1"] if as_keyword else ["x + 1", setup]
    more = {"setup": setup} if as_keyword else {}
    how = {"globals": names, "number": 2, "repeat": 3, "device": device}
    assert timeit(*words, **more, **how).loops == 2
    assert len(names["seen"]) >= 4
    with pytest.raises(NameError) as refused:
        timeit("seen", number=1)
    assert "globals=globals()" in refused.value.__notes__[0]
    seen = []
    timeit("pass", lambda: seen.append(1), number=5, repeat=2, device="cpu")
    assert len(seen) == 3  # the first call and two runs


@pytest.mark.parametrize("source", ["", "# nothing", "x = 1; y = 2", "if 1:\n  x = 1"])
def test_a_statement_is_what_the_standard_library_accepts(source):
    for statement, setup in ((source, "pass"), ("pass", source)):
        assert timeit(statement, setup, number=1, repeat=1, device="cpu")


def test_a_statement_shares_its_setups_variables_and_keeps_its_strings():
    names = {"seen": [], "x": 5}
    statement = 'global y\ny = x + z\nz += 1\nseen.append("""a\nb""")'
    timeit(statement, "z = 1", globals=names, number=3, repeat=1, device="cpu")
    assert names["y"] == 5 + 3  # z begins anew with each run
    assert set(names["seen"]) == {"a\nb"}  # the standard library's would be indented


def test_the_clock_is_read_around_the_calls_alone():
    order = []
    how = {"globals": {"order": order}, "number": 2, "repeat": 1, "device": "cpu"}
    timer = lambda: order.append("clock") or 0.0  # noqa: E731
    timeit("order.append('call')", "order.append('setup')", timer=timer, **how)
    assert order[-5:] == ["setup", "clock", "call", "call", "clock"]


def test_the_device_is_that_of_what_is_named_given_or_returned(machine):
    x = machine.launch(1e-6)
    named = {"f = lambda: x": "f()", "numbers = [1, x]": "numbers", "y = x": "y"}
    named |= {"named = {'one': 1, 'x': x}": "named", "pass": "z = x"}
    for setup, statement in named.items():
        names = {"x": x, "f": None}
        assert timeit(statement, setup, globals=names, number=1, repeat=1).queued
    for call, arguments in (
        (lambda: (1, x), ()),
        (lambda: {"one": 1, "array": x}, ()),
        (lambda _: None, (x,)),
        (lambda _: None, ([1, x],)),
    ):
        assert timeit(call, *arguments, number=1, repeat=1).queued
    with xdev.use_device("cpu"):
        assert not timeit(lambda x: [1, *x], [3], number=1, repeat=1).queued


@pytest.mark.parametrize(
    ("arguments", "options", "error", "text"),
    [
        *(
            ((list,), {name: wrong}, ValueError, f"{name} .* whole number of at least")
            for name in ("number", "repeat")
            for wrong in (0, 1.5, "3", True, np.int64(-1), np.ones(2))
        ),
        ((np.ones(3),), {}, TypeError, r"as xdev.timeit\(f, x\), not a ndarray$"),
        ((list,), {"setup": "x = 1"}, TypeError, "setup and globals are for stat"),
        ((list,), {"globals": {}}, TypeError, "setup and globals are for statements"),
        (("x", "x = 1"), {"setup": "y"}, TypeError, "no arguments but its setup"),
        ((lambda: pytest.fail("called"),), {"device": "a"}, XdevError, "no device is"),
    ],
)
def test_what_cannot_be_timed_is_refused(arguments, options, error, text):
    with pytest.raises(error, match=text):
        timeit(*arguments, **options)
