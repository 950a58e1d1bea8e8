"""The rules by which figures of an asynchronous device are true, on a simulated one."""

import gc
from contextlib import suppress

import pytest

import xdev
from xdev.timing import ResultsDifferError, compare, timeit

from .conftest import LAUNCH, QUEUE

WORK = 50e-6  # a call's, on the device [s]
NEAR = {"rel": 0.02}


def test_wall_time_holds_the_work(machine):
    timing = timeit(machine.launch, WORK, number=100, repeat=3)
    assert timing.wall == pytest.approx([WORK] * 3, **NEAR)
    assert timing.average == pytest.approx(WORK, **NEAR)


def test_a_run_starts_on_an_idle_device(machine):
    names = {"launch": machine.launch}
    how = {"globals": names, "device": "simulated", "number": 1, "repeat": 2}
    assert timeit("launch(1e-6)", "launch(1.0)", **how).worst < 1e-3


def test_device_time_is_that_of_the_stream_of_the_work(machine):
    with xdev.Stream("simulated"):
        timing = timeit(machine.launch, WORK, number=100, repeat=3)
    assert timing.device == pytest.approx([WORK] * 3, **NEAR)


def test_launch_time_is_not_that_of_a_full_queue(machine):
    def call():
        for _ in range(20):  # five calls' work would fill the queue of a long run
            array = machine.launch(WORK)
        return array

    timing = timeit(call, number=QUEUE, repeat=2)
    assert timing.launch == pytest.approx([20 * LAUNCH] * 2, **NEAR)
    assert not timing.launch_bound


def test_the_first_call_is_apart(machine):
    costs = [2.0]  # the first call compiles

    def call():
        machine.now += costs.pop() if costs else 0.0
        return machine.launch(1e-3)

    timing = timeit(call, number=1, repeat=2)
    assert timing.compile_time == pytest.approx(2.001, rel=1e-3)
    assert timing.worst < 2e-3
    assert any("first call took 2 s" in note for note in timing.notes)


def test_the_collector_is_off_in_a_run(machine):
    seen = []

    def call():
        seen.append(gc.isenabled())
        return machine.launch(WORK)

    timeit(call, number=2, repeat=2)
    assert not any(seen[-4:])  # before the runs are calls that are in none
    assert gc.isenabled()


def test_a_call_that_waits_is_known(machine):
    waiting = timeit(machine.fetch, WORK, number=10, repeat=2)
    assert waiting.waits is True
    assert any("waits for the device" in note for note in waiting.notes)
    assert not waiting.launch_bound
    asking = timeit(machine.launch, WORK, number=10, repeat=2)
    assert asking.waits is False


def test_a_host_that_was_busy_elsewhere_is_no_call_that_waits(machine):
    pauses = {4: 0.1}  # the call on the held stream is late for once
    calls = []

    def call():
        calls.append(None)
        machine.now += pauses.pop(len(calls), 0.0)
        return machine.launch(WORK)

    assert timeit(call, number=1, repeat=1).waits is False
    assert not pauses


def test_a_row_whose_device_waits_for_the_host_is_launch_bound(machine):
    table = compare(
        {
            "short work": lambda: machine.launch(1e-6),
            "long work": lambda: machine.launch(1e-3),
        },
        repeat=1,
    )
    assert table["short work"].timing.launch_bound
    assert any("launch-bound" in note for note in table["short work"].timing.notes)
    assert not table["long work"].timing.launch_bound
    assert table["long work"].ratio.middle == pytest.approx(1e-3 / LAUNCH, rel=0.02)


def test_work_of_other_streams_is_reported(machine):
    other = xdev.Stream("simulated")

    def call():
        with other:
            return machine.launch(WORK)

    timing = timeit(call, number=100, repeat=3)
    assert timing.wall == pytest.approx([WORK] * 3, **NEAR)
    assert any("`with stream:`" in note for note in timing.notes)


def test_candidates_run_in_turn(machine):
    """Also none is always the second, on a device that slows down call by call."""
    calls = []

    def call():
        calls.append(None)
        return machine.launch(WORK * (1 + len(calls) / 1000))

    table = compare({"one": call, "same": call}, number=100, repeat=10)
    assert table["same"].ratio.middle == pytest.approx(1, rel=0.01)


def test_results_are_compared_before_anything_is_timed(machine):
    calls = []

    def call(result):
        calls.append(result)
        machine.launch(WORK)
        return result

    with suppress(ResultsDifferError):
        compare({"one": lambda: call(1), "other": lambda: call(2)}, repeat=1)
    assert calls == [1, 2]


def test_steady_figures_need_no_notes(machine):
    assert timeit(machine.launch, WORK, number=100, repeat=3).notes == []


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_100"])
def test_the_kernel_that_holds_a_stream_compiles(arch, holding_source, imported):
    core = imported("cuda.core")
    options = core.ProgramOptions(arch=arch)
    code = core.Program(holding_source, "c++", options).compile("cubin").code
    assert b"xdev_hold" in code
