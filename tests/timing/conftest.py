"""A machine with a clock of its own: a host, and a device that works on meanwhile."""

import sys
import time
from collections import deque
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace

import pytest

import xdev
from xdev.device import registry
from xdev.testing import SimulatedDevice
from xdev.timing import comparison, environment, result, sampling
from xdev.timing.comparison import Footprint as Footprint  # noqa: PLC0414 - for tests

LAUNCH = 3e-6  # what a launch takes on the host [s]
QUEUE = 1000  # launches that fit; the next waits


class Machine(registry.Backend):
    """A backend of :mod:`xdev.device`, and what tests do on it; times in seconds."""

    libraries = ()

    def __init__(self):
        self.simulated = SimulatedDevice()
        self.queued = deque()  # when each launch will be done

    @property
    def now(self):
        return self.simulated.now

    @now.setter
    def now(self, seconds):
        self.simulated.now = seconds

    def perf_counter(self):
        return self.simulated.now

    def launch(self, work):
        """Queue work, wait for room as a driver does, return an array of the device."""
        stream = self.simulated.current_stream()
        while self.queued and self.queued[0] <= self.now:
            self.queued.popleft()
        if len(self.queued) == QUEUE:
            self.now = self.queued.popleft()
        before = self.now
        stream.launch(work)
        self.queued.append(stream.record().seconds)
        self.now = before + LAUNCH
        return SimpleNamespace(device=xdev.Device("simulated"))

    def fetch(self, work):
        """Queue work and wait for it, as a copy to the host does."""
        array = self.launch(work)
        self.simulated.current_stream().synchronize()
        return array

    # -- the backend ------------------------------------------------------------------

    def synchronize(self, _):
        self.simulated.synchronize()

    def stream(self, _):
        return self.simulated.stream()

    def current_stream(self, _):
        return self.simulated.current_stream()


@pytest.fixture
def small_copies(monkeypatch):
    """Let a measurement of a copy take milliseconds; return what it copies, and took.

    None was made before.
    """
    taken = SimpleNamespace(nbytes=1 << 22, seconds=[], copy=comparison._copy_seconds)
    monkeypatch.setattr(comparison, "SIZE", taken.nbytes)
    monkeypatch.setattr(comparison, "_measured", {})

    def copied(device):
        taken.seconds.append(taken.copy(device))
        return taken.seconds[-1]

    monkeypatch.setattr(comparison, "_copy_seconds", copied)
    return taken


@pytest.fixture
def measured(monkeypatch):
    """Return a function that says what copies reach, by device [B/s]."""
    return lambda rates: monkeypatch.setattr(comparison, "_measured", dict(rates))


@pytest.fixture
def compare_by(monkeypatch):
    """Return a function that lets ``compare`` read a clock, and no environment."""
    monkeypatch.setattr(comparison, "environment", dict)  # slow, and asked each time

    def read(clock):
        begin = partial(sampling.begin, clock=clock)
        monkeypatch.setattr(comparison, "begin", begin)

    return read


@pytest.fixture
def machine(monkeypatch):
    """The machine, as the device ``"simulated"``; its clock is everybody's."""
    simulated = Machine()
    monkeypatch.setitem(registry._backends, "simulated", simulated)

    def hold(_, seconds):
        simulated.current_stream(0).launch(seconds)

    monkeypatch.setitem(environment.HOLDS, "simulated", hold)
    monkeypatch.setattr(time, "perf_counter", simulated.perf_counter)
    return simulated


@pytest.fixture
def holding_source():
    return environment.HOLD


# -- the rules of test_truth.py, switched off -----------------------------------------


def wait_at_the_end_alone(device):
    """Wait for a device, but where a run starts."""
    if sys._getframe(1).f_code.co_name != "start_idle":
        xdev.synchronize(device)


def no_first_call(patch):
    def begin(call, *_, **__):
        device, (loop, _) = (
            xdev.Device("simulated"),
            sampling.compiled(call, "pass", {}),
        )
        how = {"queued": True, "first": 0.0, "clock": time.perf_counter}
        return sampling.Candidate(loop, device, **how), None

    patch.setattr(sampling, "begin", begin)
    patch.setattr(sampling.Candidate, "get_ready", lambda _: None)


def one_after_the_other(patch):
    def all_rounds(turns, rounds, _):
        for one in turns:
            for _ in range(rounds):
                one.sample()

    patch.setattr(comparison, "_take_turns", all_rounds)


OFF = {
    "wall_time_holds_the_work": {(sampling, "synchronize"): lambda _: None},
    "a_run_starts_on_an_idle_device": {
        (sampling, "synchronize"): wait_at_the_end_alone
    },
    "device_time_is_that_of_the_stream_of_the_work": {
        (environment, "current_stream"): xdev.Stream
    },
    "launch_time_is_not_that_of_a_full_queue": {
        (sampling, "BURST_SECONDS"): 1e9,
        (sampling, "MOST_IN_BURST"): 10**9,
    },
    "the_first_call_is_apart": no_first_call,
    "the_collector_is_off_in_a_run": {(sampling, "collector_off"): nullcontext},
    "a_call_that_waits_is_known": {(sampling, "TRIALS"): 0},
    "a_host_that_was_busy_elsewhere_is_no_call_that_waits": {(sampling, "TRIALS"): 1},
    "a_row_whose_device_waits_for_the_host_is_launch_bound": {
        (result, "LAUNCH_BOUND"): float("inf")
    },
    "work_of_other_streams_is_reported": {(result, "ENDING"): float("inf")},
    "candidates_run_in_turn": one_after_the_other,
    "results_are_compared_before_anything_is_timed": {
        (comparison, "check_agreement"): lambda *_: None
    },
}


@pytest.fixture
def switch_off(monkeypatch):
    """Return what switches a rule off, by the name of its check."""

    def switch(rule):
        if callable(off := OFF[rule]):
            off(monkeypatch)
        else:
            for place, value in off.items():
                monkeypatch.setattr(*place, value)

    return switch
