"""A machine with a clock of its own: a host, and a device that works on meanwhile."""

import time
from collections import deque
from functools import partial
from types import SimpleNamespace

import pytest

import xdev
from xdev.device import registry
from xdev.testing import SimulatedDevice
from xdev.timing import comparison, environment, sampling
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
