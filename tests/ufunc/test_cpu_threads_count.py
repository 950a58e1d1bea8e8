"""How many threads compute a call: as times say, as was asked for, in a child."""

import pytest

from xdev.compile import threads

pytestmark = pytest.mark.usefixtures("several_threads")


def went(sizes, alone, together):
    """Return which calls of these sizes several threads compute, by known times."""
    model, several = threads.CostModel(), []
    for n in sizes:
        several.append(model.is_worth_threads(n))
        add = model.add_parallel if several[-1] else model.add_serial
        add((together if several[-1] else alone)(n), n)
    return several


@pytest.mark.parametrize(("seconds", "calls"), [(0.5, 20), (1.2, 20), (1.5, 2)])
def test_several_threads_rest_where_they_are_slower(monkeypatch, seconds, calls):
    monkeypatch.setattr(threads, "REST", 15)
    found = went([5000] * 21, lambda _: 1.0, lambda _: seconds)

    assert found[:2] == [False, True]
    assert sum(found) == calls


def test_several_threads_rest_by_what_one_took_at_that_size_alone(monkeypatch):
    """Beyond the caches an element takes longer, in one thread as in several."""
    monkeypatch.setattr(threads, "REST", 15)
    slower = lambda n: n * (1e-9 if n < 10**5 else 3e-9)  # noqa: E731

    found = went([10**4] * 3 + [10**6] * 5, lambda n: n * 1e-9, slower)

    assert found == [False] + [True] * 7


def test_a_size_that_is_hardly_worth_it_is_measured_with_one_thread(monkeypatch):
    monkeypatch.setattr(threads, "CUT", 1.0)
    sizes = 3000, 3001, 2040, 2041, 1900, 9000
    assert went(sizes, lambda n: n / 2000, lambda _: 1.0) == [False, True] * 3


PROGRAM = """
import os, threading
import numpy as np, xdev
from xdev.compile import threads
threads.CUT = threads.PIECE = 1e-9
f = xdev.vectorize(lambda x, y: x * 2 - y)
x = np.random.default_rng(0).standard_normal(300_000)

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
