"""How many threads compute a call: as times say, as was asked for, in a child."""

import numpy as np
import pytest

from xdev.compile import threads
from xdev.ufunc import cpu_threads

pytestmark = pytest.mark.usefixtures("several_threads")


@pytest.fixture
def timed(monkeypatch):
    """Make a ufunc with known times; it tells how many threads computed a call."""
    now, went = [0.0], []

    def make(alone, together):
        class Ufunc:
            __name__, nin = "one", 1

            def __call__(self, x, out):
                now[0] += alone(x.size)
                went.append("alone")
                return out[0]

        def elements(_, shape, *__, **___):
            now[0] += together(shape[0])
            went.append("together")
            return 0

        monkeypatch.setattr(threads, "elements", elements)
        made = cpu_threads.Threaded(Ufunc(), 0, (np.dtype("f8"),) * 2)

        def call(size):
            made([np.ones(size)], (np.ones(size),), size)
            return went[-1]

        return call

    monkeypatch.setattr(cpu_threads, "perf_counter", lambda: now[0])
    return make


@pytest.mark.parametrize(("seconds", "calls"), [(0.5, 20), (1.2, 20), (1.5, 2)])
def test_several_threads_rest_where_they_are_slower(timed, monkeypatch, seconds, calls):
    monkeypatch.setattr(threads, "REST", 15)
    call = timed(lambda _: 1.0, lambda _: seconds)

    went = [call(5000) for _ in range(21)]

    assert went[:2] == ["alone", "together"]
    assert went.count("together") == calls


def test_several_threads_rest_by_what_one_took_at_that_size_alone(timed, monkeypatch):
    """Beyond the caches an element takes longer, in one thread as in several."""
    monkeypatch.setattr(threads, "REST", 15)
    call = timed(lambda n: n * 1e-9, lambda n: n * (1e-9 if n < 10**5 else 3e-9))

    assert [call(10**4) for _ in range(3)] == ["alone", "together", "together"]
    assert [call(10**6) for _ in range(5)] == ["together"] * 5


def test_a_size_that_is_hardly_worth_it_is_measured_with_one_thread(timed, monkeypatch):
    monkeypatch.setattr(threads, "CUT", 1.0)
    call = timed(lambda n: n / 2000, lambda _: 1.0)

    sizes = 3000, 3001, 2040, 2041, 1900, 9000
    assert [call(n) for n in sizes] == [
        *("alone", "together", "alone", "together", "alone", "together")
    ]


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


COMMAND = ("-W", "ignore::DeprecationWarning", "-c", PROGRAM)


@pytest.mark.parametrize("count", ["1", "3"])
def test_threads_are_counted_and_a_forked_child_computes(python, count):
    ran = python(*COMMAND, XDEV_NUM_THREADS=count)
    wanted = f"threads {int(count) - 1}\nchild 0 True\n"
    assert (ran.stdout, ran.returncode) == (wanted, 0), ran.stderr


def test_a_wrong_number_of_threads_is_refused(python):
    ran = python(*COMMAND, XDEV_NUM_THREADS="many")
    assert "XDEV_NUM_THREADS='many' is not valid" in ran.stderr
