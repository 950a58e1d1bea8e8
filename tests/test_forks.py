"""Forks: locks that a child finds free, and threads that start meanwhile."""

import ast
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from running import in_child

import xdev
from xdev._forks import module_lock

PACKAGE = Path(xdev.__file__).parent
pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"),
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),  # JAX's, if loaded
]


def test_a_lock_that_another_thread_holds_is_free_in_a_child():
    lock, held, done = module_lock(), threading.Event(), threading.Event()

    def hold():
        with lock, lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert not lock.acquire(blocking=False)
    assert in_child(lambda: lock.acquire(timeout=5))
    done.set()
    thread.join()


def test_a_lock_that_the_forking_thread_holds_stays_its_own():
    def leave():
        lock.release()
        with ThreadPoolExecutor() as other:
            return other.submit(lock.acquire, timeout=5).result()

    lock = module_lock()
    with lock:
        assert in_child(leave)


def test_modules_have_no_other_locks():
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign | ast.AnnAssign):
                text = ast.unparse(node)
                assert "Lock()" not in text, f"{path.name}: {text}"


# A fork, or the end of the program, while one of xdev's threads starts.

PROGRAM = """
    import _thread, os, sys, threading, time
    import numpy as np, xdev

    @xdev.kernel
    def add_one(i, x, out):
        out[i] = x[i] + 1

    def batches():
        return [x.sum() for x in xdev.batches([np.ones(3)] * 3, "fake")] == [3, 3, 3]

    def team():
        x = np.ones(1 << 22)
        out = np.empty_like(x)
        add_one[len(x)](x, out)
        return (out == 2).all()

    name = "_start_new_thread"
    if sys.version_info >= (3, 13):
        name = "_start_joinable_thread"
    real = getattr(threading, name)

    def in_the_middle(during, work):
        def start(*arguments, **options):
            setattr(threading, name, real)
            print("starts", flush=True)
            during()
            return real(*arguments, **options)

        setattr(threading, name, start)
        assert work()

    def ended(child):
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def a_child_ends():
        child = os.fork()
        if not child:
            sys.exit(3)
        assert ended(child) == 3

    def another_thread_forks():
        done = threading.Event()

        def fork():
            child = os.fork()
            if not child:
                os._exit(3 if WORK() else 1)
            assert ended(child) == 3
            done.set()

        _thread.start_new_thread(fork, ())
        assert done.wait(60)

    def never():
        begun.set()
        time.sleep(1000)

    begun = threading.Event()
"""
HERE = {
    "a child ends": "in_the_middle(a_child_ends, WORK)",
    "another thread forks": "in_the_middle(another_thread_forks, WORK)",
    "the program ends": (
        "threading.Thread(target=in_the_middle, args=(never, WORK), daemon=True)"
        ".start(); begun.wait()"
    ),
}


@pytest.mark.parametrize("work", ["batches", "team"])
@pytest.mark.parametrize("how", HERE)
def test_what_happens_while_a_thread_starts(printed, work, how):
    code = f"{PROGRAM}\n    WORK = {work}\n    {HERE[how]}"
    told = printed(code, options=("-W", "ignore"), XDEV_NUM_THREADS=3)
    assert told == "starts\n"
