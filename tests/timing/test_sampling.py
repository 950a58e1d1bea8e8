"""``timeit``: arguments, counts, statements and the devices it finds."""

import gc
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import xdev
from xdev import Device, _optional
from xdev.errors import XdevError
from xdev.timing import environment, sampling, timeit
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


def test_a_never_ending_search_ends():
    with runs_of(0.0) as candidate:
        candidate.settle(None, 0.2)
    assert candidate.number == sampling.MOST_LOOPS


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
    names, setup = {"seen": []}, "seen.append(7); x = 1"
    how = {"globals": names, "number": 2, "repeat": 3, "device": device}
    for timing in (timeit("x + 1", setup, **how), timeit("x + 1", setup=setup, **how)):
        assert timing.loops == 2
    assert len(names["seen"]) >= 2 * 4
    with pytest.raises(NameError) as refused:
        timeit("seen", number=1)
    assert "globals=globals()" in refused.value.__notes__[0]


@pytest.mark.parametrize(
    "source", ["", "pass", "# nothing", "x = 1; y = 2", "if 1:\n  x = 1"]
)
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


def test_counts_of_numpy_are_kept_as_pythons():
    timing = timeit(list, number=np.int64(3), repeat=np.array(2))
    assert (timing.loops, timing.repeat) == (3, 2)
    assert type(timing.loops) is int


@pytest.mark.parametrize(
    ("arguments", "options", "error", "text"),
    [
        *(
            ((list,), {"number": wrong}, ValueError, "whole number of at least 1")
            for wrong in (0, 1.5, "3", True, np.True_, np.ones(2))
        ),
        *(
            ((list,), {"repeat": wrong}, ValueError, "whole number of at least 1")
            for wrong in (0, None, np.int64(-1))
        ),
        ((np.ones(3),), {}, TypeError, r"its arguments, not a ndarray$"),
        ((list,), {"setup": "x = 1"}, TypeError, "setup and globals are for stat"),
        ((list,), {"globals": {}}, TypeError, "setup and globals are for statements"),
        (("x", "x = 1"), {"setup": "y"}, TypeError, "no arguments but its setup"),
        (("x", "1", "2"), {"setup": "y"}, TypeError, "no arguments but its setup"),
        ((lambda: pytest.fail("called"),), {"device": "a"}, XdevError, "no device is"),
    ],
)
def test_what_cannot_be_timed_is_refused(arguments, options, error, text):
    with pytest.raises(error, match=text):
        timeit(*arguments, **options)


def test_the_host_s_largest_cache_is_overwritten_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "CACHES", tmp_path)
    assert environment.host_cache() == environment.USUAL_CACHE  # no size is told
    for index, text in enumerate(("32K", "1024K\n", "2M", "odd", "")):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "size").write_text(text)
    probe = environment.probe(xdev.Device("cpu"))
    probe.flush()
    assert probe._buffer.nbytes == 4 << 20
    assert probe._buffer.all()  # each byte was written


@pytest.fixture
def reasons(monkeypatch):
    """Return what a probe tells of a device for which NVML is asked by a call."""

    def told(ask):
        device = SimpleNamespace(to_system_device=ask)
        core = SimpleNamespace(Device=lambda _: device)
        monkeypatch.setattr(_optional, "cuda_core", lambda: core)
        probe = environment.CudaProbe.__new__(environment.CudaProbe)
        probe.device = xdev.Device("cuda:0")
        return probe.slowed_by()

    return told


@pytest.mark.parametrize("given", ["text", "members"])
def test_reasons_are_those_that_slow_a_busy_device(reasons, given):
    names = ("gpu_idle", "sw_power_cap", "applications_clocks_setting")
    events = [
        SimpleNamespace(value=name) if given == "members" else name for name in names
    ]
    system = SimpleNamespace(current_clock_event_reasons=events)
    assert reasons(lambda: system) == ("sw_power_cap",)


def test_a_driver_that_tells_nothing_is_no_error(reasons):
    def refuse():
        raise OSError

    assert reasons(refuse) == ()


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_100"])
def test_the_kernel_compiles_and_reads_both_clocks(arch):
    core = _optional.cuda_core()
    options = core.ProgramOptions(arch=arch)
    code = core.Program(environment.HOLD, "c++", options).compile("cubin").code
    assert b"xdev_hold" in code
