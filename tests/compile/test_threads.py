"""Pieces of a range in several threads: each once, whoever does it."""

import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numba
import numpy as np
import pytest
from hypothesis import given, strategies as st
from running import until

from xdev import _config
from xdev.compile import threads

pytestmark = pytest.mark.usefixtures("team")


@pytest.fixture(autouse=True)
def four(monkeypatch):
    monkeypatch.setattr(_config, "num_threads", lambda: 4)


@pytest.fixture(scope="module")
def count():
    """A C function that adds one to a range of words, and 1000 in its first place."""
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
def test_every_index_is_worked_on_once_by_a_loop_of_c(count, n, start, grain, lanes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_config, "num_threads", lambda: lanes)

        times, starts = counted(count, start + n, start, grain=grain)

    assert times.tolist() == [0] * start + [1] * n + [0] * 8
    assert not ((starts - start) % grain).any()
    assert len(starts) <= threads.PIECES * lanes


def test_threads_that_have_no_time_are_not_waited_for(count):
    """All are in one call that waits for the end of another one."""
    inside, over = threading.Barrier(5, timeout=30), threading.Event()
    held = threading.local()

    def task(*_):
        if not hasattr(held, "waited"):
            held.waited = True
            inside.wait()
            over.wait(30)

    caller = threading.Thread(target=threads.run, args=(task, 10_000))
    caller.start()
    inside.wait()

    times, _ = counted(count, 10_000)
    over.set()
    caller.join()

    assert (times[:10_000] == 1).all()


def test_callers_at_the_same_time_share_the_threads(count):
    def call(seed):
        for n in np.random.default_rng(seed).integers(1, 20_000, 200).tolist():
            times, _ = counted(count, n)
            assert times.sum() == n == (times == 1).sum()

    with ThreadPoolExecutor(8) as callers:
        list(callers.map(call, range(8)))


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


@pytest.mark.parametrize("wrong", [False, True])
def test_what_a_task_uses_goes_with_the_call(wrong):
    def task(*piece):
        if wrong:
            raise KeyError(piece)

    alive = weakref.ref(task)
    with pytest.raises(KeyError) if wrong else nullcontext():
        threads.run(task, 1000)
    del task
    until(lambda: (gc.collect(), alive())[1] is None)  # a helper lets go a bit later


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


# Programs whose threads are the same.

HEAD = """
import builtins, os, random, signal, sys, threading, time, warnings
import numpy as np
from xdev.compile import threads
from xdev.errors import XdevError

warnings.simplefilter("ignore")

def works(act=lambda: None, n=10_000):
    "Compute in four threads, each of which acts once when all are there."
    seen, held = np.zeros(n, int), threading.local()
    together = threading.Barrier(4, timeout=30)
    def task(start, stop):
        if not hasattr(held, "waited"):
            held.waited = True
            together.wait()
            act()
        seen[start:stop] += 1
    threads.run(task, n)
    return (seen == 1).all()

def is_caller():
    return threading.current_thread() is threading.main_thread()

def status(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


INTERRUPTED = """
def interrupted(*_):
    if armed:
        armed.clear()  # one for each call: none in what handles it
        raise KeyboardInterrupt

def send():
    for _ in range(200):
        time.sleep(0.02 * random.random())
        os.kill(os.getpid(), signal.SIGINT)
    over.append(True)

armed, over = [], []
whole = interrupts = 0
signal.signal(signal.SIGINT, interrupted)
threading.Thread(target=send, daemon=True).start()
while not over:
    try:
        armed.append(True)
        seen = np.zeros(1000, int)
        def task(start, stop):
            seen[start:stop] += 1
        threads.run(task, 1000)
        assert (seen == 1).all()
        armed.clear()
        whole += 1
    except KeyboardInterrupt:
        interrupts += 1
assert whole and interrupts, (whole, interrupts)
armed.clear()
assert works()
"""
FORKED = """
assert works()
child = os.fork()
if not child:
    os._exit(0 if threading.active_count() == 1 and works() else 1)
assert status(child) == 0
assert works()
"""
# Where the child goes on with the call it is told, a worker's thread ends.
FORKED_INSIDE = """
waited = []

def fork():
    if is_caller() == CALLER and not waited:
        waited.append(None)
        child = os.fork()
        waited[0] = child and status(child)

try:
    works(fork)
except XdevError as error:
    assert waited == [0], "this is no child"
    assert "fork" in str(error)
    os._exit(7 if works() else 1)  # by threads of its own
assert waited == [7 if CALLER else 0], waited
"""


AT_THE_END = """
x, all_twice = np.zeros(10_000, int), [2] * 10_000

def task(start, stop, x=x):
    x[start:stop] += 1

class Late:
    def __del__(self, run=threads.run, task=task, x=x, want=all_twice, write=os.write):
        run(task, 10_000)
        write(1, b"all" if x.tolist() == want else b"not all")

threads.run(task, 10_000)
builtins.kept_to_the_end = Late()
"""
ENDED = """
def for_ever():
    while True:
        threads.run(lambda start, stop: None, 10_000)

for _ in range(2):
    threading.Thread(target=for_ever, daemon=True).start()
for _ in range(100):
    threads.run(lambda start, stop: None, 10_000)
print("ended")
"""
IDLE = """
works()
time.sleep(0.2)
before = time.process_time()
time.sleep(1)
assert time.process_time() - before < 0.2, "a thread that spins takes a second"
"""
PROGRAMS = {
    "interrupted calls leave nothing behind": (INTERRUPTED, ""),
    "a child has threads of its own": (FORKED, ""),
    "a child that the caller forks": (FORKED_INSIDE.replace("CALLER", "True"), ""),
    "a child that a worker forks": (FORKED_INSIDE.replace("CALLER", "False"), ""),
    "a finalizer at the very end waits for no thread": (AT_THE_END, "all"),
    "a program ends while threads are at work": (ENDED, "ended\n" * 5),
    "idle threads take no time": (IDLE, ""),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_threads(team, printed, name):
    tier = "0" if team is threads.PythonTeam else "1"
    settings = {"XDEV_NATIVE": tier, "XDEV_NUM_THREADS": "4"}
    text, expected = PROGRAMS[name]
    shown = [
        printed(HEAD + text, options=("-X", "dev"), **settings)
        for _ in range(expected.count("\n") or 1)
    ]
    assert "".join(shown) == expected
