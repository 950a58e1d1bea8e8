"""``timeit`` on a simulated device that works while the host goes on."""

import gc
from collections import deque
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from xdev import Device
from xdev.device import registry
from xdev.errors import XdevError
from xdev.timing import compare, sampling, timeit

LAUNCH = 3e-6
QUEUE = 1000


class Machine:
    """A host with a clock of its own, and a device with a queue of launches [s]."""

    libraries = ()

    def __init__(self):
        self.now = 0.0
        self.queued = deque()  # when each launch will be done

    def launch(self, work):
        """Queue work; wait for room, as a driver does."""
        if len(self.queued) == QUEUE:
            self.now = max(self.now, self.queued.popleft())
        self.now += LAUNCH
        last = self.queued[-1] if self.queued else 0.0
        self.queued.append(max(self.now, last) + work)
        return SimpleNamespace(device=Device("simulated"))

    def perf_counter(self):
        return self.now

    def count(self):
        return 1

    def reason(self, index):
        return None if index == 0 else "there is one"

    def current(self):
        return 0

    def use(self, _):
        return nullcontext()

    def synchronize(self, _):
        self.now = max([self.now, *self.queued])
        self.queued.clear()

    def current_stream(self, _):
        return self

    def record(self):
        return SimpleNamespace(
            at=max([self.now, *self.queued]), synchronize=lambda: None, done=True
        )

    def elapsed(self, start, end):
        return end.at - start.at


@pytest.fixture
def machine(monkeypatch):
    simulated = Machine()
    monkeypatch.setitem(registry._backends, "simulated", simulated)
    monkeypatch.setattr(sampling.time, "perf_counter", simulated.perf_counter)
    return simulated


def test_wall_and_device_time_hold_the_work_and_launch_time_does_not(machine):
    work = 50e-6

    timing = timeit(machine.launch, work, number=100, repeat=3)

    assert timing.wall == pytest.approx([work] * 3, rel=0.01)
    assert timing.device == pytest.approx([work] * 3, rel=0.01)
    assert timing.launch == pytest.approx([LAUNCH] * 3)
    assert timing.average == pytest.approx(work, rel=0.01)


def test_launch_time_is_not_that_of_a_full_queue(machine):
    timing = timeit(machine.launch, 50e-6, number=5 * QUEUE, repeat=2)
    assert timing.launch == pytest.approx([LAUNCH] * 2)


def test_work_left_by_others_is_in_no_run(machine):
    def call(work):
        return machine.launch(work)

    candidate, _ = sampling.begin(lambda: call(1e-6), None)
    machine.launch(1.0)
    candidate.sample()

    assert candidate.timing().worst < 1e-3


def test_the_first_call_is_apart(machine):
    costs = [2.0]  # the first call compiles

    def call():
        machine.now += costs.pop() if costs else 0.0
        return machine.launch(1e-3)

    timing = timeit(call, number=10, repeat=2)

    assert timing.compile_time == pytest.approx(2.001, rel=1e-3)
    assert timing.worst < 2e-3


@given(cost=st.floats(min_value=1e-8, max_value=10))
def test_loops_are_the_smallest_power_of_ten_that_takes_the_time(cost):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            sampling, "run", lambda _, n, __: sampling.Run(n * cost, n * cost, n * cost)
        )
        loops = sampling.choose_number(lambda: None, Device("cpu"), 0.2)
    assert loops * cost >= 0.2
    assert loops == 1 or loops / 10 * cost < 0.2


def test_a_row_whose_device_waits_for_the_host_is_launch_bound(machine):
    table = compare(
        {
            "short work": lambda: machine.launch(1e-6),
            "long work": lambda: machine.launch(1e-3),
        },
        repeat=1,
    )
    assert table["short work"].launch_bound
    assert not table["long work"].launch_bound
    assert "launch-bound" in str(table).splitlines()[1]
    assert table["long work"].ratio.middle == pytest.approx(1e-3 / LAUNCH, rel=0.01)


def test_the_collector_is_off_inside_a_run_and_as_before_after_it():
    seen = []
    timeit(lambda: seen.append(gc.isenabled()), number=2, repeat=2)
    assert seen == [True, False, False, False, False]  # the first call is no run
    assert gc.isenabled()


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


def test_arguments_are_passed_and_the_counts_kept(device):
    calls = []
    x = np.ones(3)

    timing = timeit(
        lambda *args: calls.append(args), x, 2, number=3, repeat=4, device=device
    )

    assert (timing.loops, timing.repeat) == (3, 4)
    assert len(calls) >= 1 + 3 * 4
    assert all(args[0] is x and args[1] == 2 for args in calls)
    assert timing.best == min(timing.timings) <= timing.average <= timing.worst
    assert len(timing.launch) == len(timing.device) == 4


@pytest.mark.parametrize("counts", [{"number": 0}, {"number": 1.5}, {"repeat": 0}])
def test_counts_that_are_no_positive_whole_numbers_are_refused(counts):
    with pytest.raises(ValueError, match="whole number of at least 1"):
        timeit(list, **counts)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match="a function and its arguments"):
        timeit(np.ones(3))


def test_an_unknown_device_is_refused():
    with pytest.raises(XdevError, match="no device is called"):
        timeit(list, device="abacus")
