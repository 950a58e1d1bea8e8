"""A fork, or the end of the program, while one of xdev's threads starts."""

import os

import pytest

PROGRAM = """if 1:
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("work", ["batches", "team"])
@pytest.mark.parametrize("how", HERE)
def test_what_happens_while_a_thread_starts(python, work, how):
    code = f"{PROGRAM}\n    WORK = {work}\n    {HERE[how]}"
    done = python("-W", "ignore", "-c", code, XDEV_NUM_THREADS="3")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "starts\n")
