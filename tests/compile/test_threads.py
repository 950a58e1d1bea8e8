"""Pieces of a range in several threads: each once, whoever does it."""

import threading
import time
from collections import Counter

import pytest
from hypothesis import given, strategies as st

from xdev import _config
from xdev.compile import threads


@pytest.fixture(autouse=True)
def four(monkeypatch):
    _config.num_threads.cache_clear()
    monkeypatch.setenv("XDEV_NUM_THREADS", "4")
    yield
    _config.num_threads.cache_clear()


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


def test_a_task_may_run_tasks():
    done = []

    def task(start, stop):
        threads.run(lambda a, b: done.append((stop - start) * (b - a)), 100)

    threads.run(task, 100)
    assert sum(done) == 100 * 100


def test_one_thread_takes_all_at_once(monkeypatch):
    _config.num_threads.cache_clear()
    monkeypatch.setenv("XDEV_NUM_THREADS", "1")
    calls = []

    threads.run(lambda *piece: calls.append((*piece, threading.get_ident())), 10**6)

    assert calls == [(0, 10**6, threading.get_ident())]
