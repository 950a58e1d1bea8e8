"""``timeit``: arguments, counts, statements and the devices it finds."""

import gc
from contextlib import contextmanager
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st

import xdev
from xdev import Device
from xdev.errors import XdevError
from xdev.timing import compare, sampling, timeit
from xdev.timing.sampling import Run


@contextmanager
def runs_of(cost):
    """Let every run take so long a call [s]."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            sampling.Candidate,
            "run_hot",
            lambda _, n: Run(n * cost, n * cost, n * cost, n * cost),
        )
        yield sampling.begin(lambda: None, "cpu")[0]


@given(cost=st.floats(min_value=1e-8, max_value=10))
def test_loops_are_the_smallest_power_of_ten_that_takes_the_time(cost):
    with runs_of(cost) as candidate:
        candidate.settle(None, 0.2, steps=(1,))
    loops = candidate.number
    assert loops * cost >= 0.2
    assert loops == 1 or loops / 10 * cost < 0.2


@given(cost=st.floats(min_value=1e-8, max_value=10))
def test_with_more_steps_a_run_is_at_most_two_and_a_half_times_longer(cost):
    told = []
    with runs_of(cost) as candidate:
        candidate.settle(None, 0.01, tell=lambda *tried: told.append(tried))
    loops = candidate.number
    assert str(loops).rstrip("0") in {"1", "2", "5"}
    assert loops == 1 or 0.01 <= loops * cost < 0.0251
    assert told[-1] == (loops, loops * cost)
    assert all(spent < 0.01 for _, spent in told[:-1])


@given(
    costs=st.lists(st.floats(min_value=1e-7, max_value=1e-3), min_size=3, max_size=3)
)
def test_three_rows_are_compared_within_three_seconds(costs):
    """On whatever machine: up to a millisecond a call, as the host arrays' row."""
    spent = 0.0

    def run(candidate, number):
        nonlocal spent
        seconds = number * candidate.loop._function.__defaults__[0].cost
        spent += seconds
        return Run(seconds, seconds, seconds, seconds)

    def row(cost):
        def call():
            return 1

        call.cost = cost
        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling.Candidate, "run_hot", run)
        compare({str(i): row(cost) for i, cost in enumerate(costs)}, device="cpu")
    assert 0 < spent < 3


def test_a_never_ending_search_ends():
    with runs_of(0.0) as candidate:
        candidate.settle(None, 0.2)
    assert candidate.number == sampling.MOST_LOOPS


def test_the_collector_is_back_after_an_error():
    calls = []

    def fail_later():
        calls.append(1)
        if len(calls) > 1:
            raise KeyError

    with pytest.raises(KeyError):
        timeit(fail_later, number=1)
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        timeit(list, number=1, repeat=1)
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("cold", [False, True])
def test_arguments_are_passed_and_the_counts_kept(device, cold):
    calls = []
    x = np.ones(3)

    def call(*args):
        calls.append(args)

    timing = timeit(call, x, 2, number=3, repeat=4, device=device, cold=cold)

    assert (timing.loops, timing.repeat, timing.cold) == (3, 4, cold)
    assert len(calls) >= 1 + 3 * 4
    assert all(args[0] is x and args[1] == 2 for args in calls)
    assert timing.best == min(timing.timings) <= timing.average <= timing.worst
    assert len(timing.launch) == len(timing.device) == 4
    assert all(map(np.isfinite, (*timing.launch, *timing.device)))


def test_a_statement_takes_its_setup_as_in_the_standard_library(device):
    names = {"seen": []}
    for given_setup in (("seen.append(7); x = 1",), ()):
        keyword = {} if given_setup else {"setup": "seen.append(7); x = 1"}
        timing = timeit(
            "x + 1",
            *given_setup,
            globals=names,
            number=2,
            repeat=3,
            device=device,
            **keyword,
        )
        assert timing.loops == 2
    assert len(names["seen"]) >= 2 * 4
    with pytest.raises(NameError) as refused:
        timeit("seen", number=1)
    assert "globals=globals()" in refused.value.__notes__[0]


def test_a_setup_may_be_a_function():
    seen = []
    timeit("pass", lambda: seen.append(1), number=5, repeat=2)
    assert len(seen) == 3  # the first call and two runs


@pytest.mark.parametrize(
    ("statement", "setup"),
    [
        ("x", "pass"),
        ("y", "y = x"),
        ("z = x", "pass"),
        ("f()", "f = lambda: x"),
        ("numbers", "numbers = [1, x]"),
        ("named", "named = {'one': 1, 'x': x}"),
    ],
)
def test_a_statement_s_device_is_that_of_its_arrays(machine, statement, setup):
    array = machine.launch(1e-6)
    candidate = sampling.begin_code(statement, setup, {"x": array, "f": None})
    assert candidate.device == Device("simulated")
    assert candidate.queued


def test_a_function_s_device_is_that_of_its_arguments_or_result(machine):
    array = machine.launch(1e-6)
    for call, arguments in (
        (lambda: array, ()),
        (lambda: (1, array), ()),
        (lambda: {"one": 1, "array": array}, ()),
        (lambda: None, (array,)),
        (lambda: None, ([1, array],)),
    ):
        candidate = sampling.begin(call, None, arguments)[0]
        assert (candidate.device, candidate.queued) == (Device("simulated"), True)
    with xdev.use_device("cpu"):
        candidate = sampling.begin(lambda: [1, 2], None, ([3],))[0]
    assert (candidate.device, candidate.queued) == (Device("cpu"), False)


def test_the_time_is_the_clock_s():
    readings = iter(range(100))
    timing = timeit(
        lambda: None, number=1, repeat=2, device="cpu", timer=readings.__next__
    )
    assert timing.all_runs == [1, 1]


@pytest.mark.parametrize(
    "counts",
    [
        *({"number": wrong} for wrong in (0, 1.5, "3", True, np.True_, np.ones(2))),
        *({"repeat": wrong} for wrong in (0, None, np.int64(-1))),
    ],
)
def test_counts_that_are_no_positive_whole_numbers_are_refused(counts):
    with pytest.raises(ValueError, match="whole number of at least 1"):
        timeit(list, **counts)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match=r"its arguments, not a ndarray$"):
        timeit(np.ones(3))


def test_counts_of_numpy_are_kept_as_pythons():
    timing = timeit(list, number=np.int64(3), repeat=np.array(2))
    assert (timing.loops, timing.repeat) == (3, 2)
    assert type(timing.loops) is int


@pytest.mark.parametrize("wrong", [{"setup": "x = 1"}, {"globals": {}}])
def test_a_function_takes_no_setup(wrong):
    with pytest.raises(TypeError, match="setup and globals are for statements"):
        timeit(list, **wrong)


@pytest.mark.parametrize(
    ("more", "keyword"), list(product([("x = 1",), ("1", "2")], [{"setup": "y"}]))
)
def test_a_statement_takes_one_setup(more, keyword):
    with pytest.raises(TypeError, match="no arguments but its setup"):
        timeit("x", *more, **keyword)


def test_an_unknown_device_is_refused_before_the_call():
    calls = []
    with pytest.raises(XdevError, match="no device is called"):
        timeit(lambda: calls.append(1), device="abacus")
    assert not calls
