"""How many threads compute a large call: as many as was asked for, in a child too."""

import pytest

PROGRAM = """
import os, threading
import numpy as np, xdev
f = xdev.vectorize(lambda x, y: x * 2 - y)
x = np.random.default_rng(0).standard_normal(3_000_000)

def right():
    return all(np.array_equal(f(x, y), x * 2 - y) for y in (x, 1.0, x[:1]) * 5)

assert right()
print("threads", sum(t.name.startswith("xdev-") for t in threading.enumerate()))
child = os.fork()
if child == 0:
    fine = right() and right()
    os._exit(0 if fine else 1)
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), right())
"""


@pytest.mark.parametrize("count", ["1", "3"])
def test_threads_are_counted_and_a_forked_child_computes(python, count):
    command = "-W", "ignore::DeprecationWarning", "-c", PROGRAM
    ran = python(*command, XDEV_NUM_THREADS=count)
    wanted = f"threads {int(count) - 1}\nchild 0 True\n"
    assert (ran.stdout, ran.returncode) == (wanted, 0), ran.stderr
