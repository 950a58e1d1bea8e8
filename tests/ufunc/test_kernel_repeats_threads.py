"""Calls of kernels that came before, in threads and in other processes."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import xdev
from xdev import _config
from xdev.compile import threads
from xdev.ufunc.kernels import cpu


def axpy(i, a, x, out):
    out[i] = a * x[i]


def count(i, out):
    out[i] += 1


@pytest.mark.parametrize("telling", [0.0, 3e-6, 1e9])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 1000, 99_991])
def test_every_point_is_computed_once(monkeypatch, n, telling):
    for name in ("LONG", "PIECE"):
        monkeypatch.setattr(threads, name, 1e-9)
    monkeypatch.setattr(threads, "TELLING", telling)
    monkeypatch.setattr(_config, "num_threads", lambda: 4)
    out, bound = np.zeros(max(n, 1), np.int64), xdev.kernel(count)[n]
    for _ in range(20):
        bound(out)
    assert (out[:n] == 20).all()


def test_one_thread_asks_for_no_help(monkeypatch):
    monkeypatch.setattr(_config, "num_threads", lambda: 1)
    monkeypatch.setattr(threads, "team", None)  # which would be asked
    out = np.zeros(1_000_000, np.int64)
    bound = xdev.kernel(count)[out.size]
    for _ in range(3):
        bound(out)
    assert (out == 3).all()


def test_threads_call_one_kernel_at_once():
    bound, wrong = xdev.kernel(axpy)[50_000], []
    x = np.arange(50_000.0)

    def use(a):
        out = np.zeros_like(x)
        for k in range(200):
            bound(float(a + k), x, out)
            if not (out == (a + k) * x).all():
                wrong.append((a, k))

    users = [threading.Thread(target=use, args=(1000 * a,)) for a in range(4)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert not wrong


@pytest.fixture
def hurried_threads():
    """Threads that take turns as often as can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hurried_threads")
def test_calls_are_forgotten_while_threads_call():
    bound, wrong, x = xdev.kernel(axpy)[3], [], np.arange(999.0)

    def use(first):
        out = np.zeros(3)
        for step in range(first, first + 3 * cpu.MOST):
            for _ in range(3):
                few = x[:: step % 300 + 1][:3]
                bound(2.0, few, out)
                if out.tolist() != (2 * few).tolist():
                    wrong.append(step)

    users = [threading.Thread(target=use, args=(70 * k,)) for k in range(4)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert not wrong


FORKED = """
import os, threading, warnings
warnings.simplefilter("ignore")
os.environ["XDEV_NUM_THREADS"] = "4"
import numpy as np
import xdev
from xdev.compile import threads
threads.LONG = threads.PIECE = 1e-9

@xdev.kernel
def count(i, out):
    out[i] += 1

out, calls = np.zeros(300_000, int), 0
def works():
    global calls
    for _ in range(5):
        count[out.size](out)
        calls += 1
    return (out == calls).all() and threading.active_count() == 4

assert works()
child = os.fork()
if not child:
    fresh = threading.active_count() == 1
    os._exit(0 if fresh and works() and works() else 1)
assert os.waitpid(child, 0)[1] == 0
assert works()
"""


def test_a_forked_child_has_threads_of_its_own():
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=120)


CHECKED = """
import os
os.environ["XDEV_DEBUG"] = "1"
import numpy as np
import xdev

@xdev.kernel
def count(i, index, out):
    out[index[i]] += 1

index, out = np.arange(9), np.zeros(10)
for _ in range(5):
    count[9](index, out)
index[3] = 10
for _ in range(4):
    try:
        count[9](index, out)
    except IndexError as error:
        print("refused")
"""


def test_bounds_are_checked_in_every_call(tmp_path):
    program = tmp_path / "checked.py"
    program.write_text(CHECKED, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "refused\n" * 4


ENDED = """
import os, threading
os.environ["XDEV_NUM_THREADS"] = "4"
import numpy as np
import xdev
from xdev.compile import threads
threads.LONG = threads.PIECE = 1e-9

@xdev.kernel
def count(i, out):
    out[i] += 1

bound = count[30_000]

def for_ever():
    out = np.zeros(30_000)
    while True:
        bound(out)

out = np.zeros(30_000)
bound(out)
for _ in range(3):
    threading.Thread(target=for_ever, daemon=True).start()
for _ in range(300):
    bound(out)
print(set(out.tolist()))
"""


def test_a_program_ends_while_threads_call(tmp_path):
    program = tmp_path / "ended.py"
    program.write_text(ENDED, encoding="utf-8")
    for _ in range(5):
        command = [sys.executable, "-X", "dev", program]
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=120, check=False
        )
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "{301.0}\n", "")
