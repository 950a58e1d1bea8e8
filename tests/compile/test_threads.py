"""Pieces of a range in several threads: each once, whoever does it."""

import gc
import subprocess
import sys
import threading
import time
import weakref
from collections import Counter
from contextlib import nullcontext
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from hypothesis import given, strategies as st

from xdev import _config
from xdev.compile import threads
from xdev.compile.team import stations, threads as team


@pytest.fixture(autouse=True)
def four(monkeypatch):
    monkeypatch.setattr(_config, "num_threads", lambda: 4)


@pytest.fixture(scope="module")
def count():
    """Machine code that adds one to a range of words, and 1000 in its first place."""
    int64 = numba.types.int64

    @numba.njit
    def work(start, stop, words):
        words[start] += 1000
        for k in range(start, stop):
            words[k] += 1

    @numba.cfunc(int64(int64, int64, numba.types.CPointer(int64), int64))
    def function(start, stop, context, _lane):
        work(start, stop, numba.carray(context, stop))
        return 0

    return function


def counted(count, n, start=0, **keywords):
    """Return how often each word was worked on, and where pieces began."""
    words = np.zeros(n + 8, np.int64)
    threads.share(count.address, words.ctypes.data, start, n, **keywords)
    return words % 1000, np.flatnonzero(words >= 1000)


@given(
    n=st.integers(1, 5000),
    start=st.integers(0, 50),
    grain=st.integers(1, 700),
    lanes=st.integers(1, 9),
)
def test_every_index_is_worked_on_once_by_machine_code(count, n, start, grain, lanes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_config, "num_threads", lambda: lanes)

        times, starts = counted(count, start + n, start, grain=grain)

    assert times.tolist() == [0] * start + [1] * n + [0] * 8
    assert not ((starts - start) % grain).any()
    assert len(starts) <= threads.PIECES * lanes


def test_threads_that_never_wake_are_not_waited_for(count, monkeypatch):
    words = np.zeros((3, stations.STATION_WORDS), np.int64)
    asleep = SimpleNamespace(address=words.ctypes.data, have=lambda wanted: wanted)
    monkeypatch.setattr(team, "stations", lambda: asleep)

    n = 80 * 4 * threads.PIECES
    times, starts = counted(count, n)

    assert (times[:n] == 1).all()
    assert len(starts) == 4 * threads.PIECES
    assert not words[:, [stations.CLAIMED, stations.WORK]].any()


def test_callers_at_the_same_time_share_the_threads(count):
    right = []

    def call(seed):
        for n in np.random.default_rng(seed).integers(1, 20_000, 200):
            times, _ = counted(count, n)
            right.append(times.sum() == n == (times == 1).sum())

    callers = [threading.Thread(target=call, args=(seed,)) for seed in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()

    assert right == [True] * 8 * 200


INTERRUPTED = """
import os, signal, sys, threading, time
os.environ["XDEV_NUM_THREADS"] = "4"
import numpy as np
from xdev.compile import threads
from xdev.compile.team import stations, threads as team
sys.unraisablehook = lambda _: None  # one that came before a task began is there, too

def work():
    seen = np.zeros(1000, int)
    def task(start, stop):
        seen[start:stop] += 1
    threads.run(task, 1000)
    return (seen == 1).all()

def interrupted(*_):
    if armed:
        armed.clear()  # one for each call: none in what handles it
        raise KeyboardInterrupt

def send():
    for _ in range(200):
        time.sleep(0.002)
        os.kill(os.getpid(), signal.SIGINT)
    over.append(True)

armed, over = [], []
whole = interrupts = 0
signal.signal(signal.SIGINT, interrupted)
threading.Thread(target=send, daemon=True).start()
while not over:
    try:
        armed.append(True)
        assert work()
        armed.clear()
        whole += 1
    except KeyboardInterrupt:
        interrupts += 1
assert whole and interrupts, (whole, interrupts)
helpers = team.stations()
claimed = helpers._words[:, [stations.CLAIMED, stations.WORK, stations.DONE]]
assert not claimed.any() and work()
"""


def test_an_interrupted_call_leaves_nothing_behind():
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


@given(n=st.integers(0, 5000), grain=st.integers(1, 700))
def test_every_index_is_worked_on_once(n, grain):
    seen, starts = Counter(), []

    def task(start, stop):
        seen.update(range(start, stop))
        starts.append(start)

    threads.run(task, n, grain=grain)

    assert seen == Counter(range(n))
    assert all(start % grain == 0 for start in starts)


def test_several_threads_work_at_the_same_time():
    together = threading.Barrier(4, timeout=30)
    held = threading.local()

    def task(*_):
        if not hasattr(held, "waited"):
            held.waited = True
            together.wait()

    threads.run(task, 10_000)


def test_the_first_error_is_raised_when_all_have_ended():
    running = []

    def task(start, _):
        running.append(start)
        time.sleep(0.001)
        running.remove(start)
        raise KeyError(start)

    with pytest.raises(KeyError):
        threads.run(task, 1000)
    assert not running

    done = []
    threads.run(lambda start, stop: done.append(stop - start), 1000)
    assert sum(done) == 1000


def test_what_a_task_uses_goes_with_the_call():
    class Used:
        def __call__(self, *piece):
            if self.wrong:
                raise KeyError(piece)

    for wrong in (False, True):
        task = Used()
        task.wrong, alive = wrong, weakref.ref(task)
        gc.collect()
        gc.disable()
        try:
            with pytest.raises(KeyError) if wrong else nullcontext():
                threads.run(task, 1000)
            del task
            assert alive() is None
        finally:
            gc.enable()


def test_a_task_may_run_tasks():
    done = []

    def task(start, stop):
        threads.run(lambda a, b: done.append((stop - start) * (b - a)), 100)

    threads.run(task, 100)
    assert sum(done) == 100 * 100


def test_one_thread_takes_all_at_once(monkeypatch):
    monkeypatch.setattr(_config, "num_threads", lambda: 1)
    calls = []

    threads.run(lambda *piece: calls.append((*piece, threading.get_ident())), 10**6)

    assert calls == [(0, 10**6, threading.get_ident())]
