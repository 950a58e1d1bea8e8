"""Results on the memory of earlier ones: what is seen of it, and who has it back."""

import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from spare_results import CONTAINERS, VIEWS, add, subtract

import xdev
from xdev import memory
from xdev.memory.spares import KEPT, MOST, PLACES

LARGE = (10_000,)


def known(f, shape, dtype):
    """Call until machine code does."""
    x = np.ones(shape, dtype)
    for _ in range(3):
        f(x, x)
    return x


pytestmark = pytest.mark.skipif(not MOST, reason="this Python has no lock")


def stats():
    return memory.pool("cpu", "host").stats()


def chunk(x):
    return x.base.base.chunk


def test_a_dropped_results_memory_is_the_next_ones_and_each_is_counted():
    x = known(add, LARGE, "f8")
    known(subtract, LARGE, "f8")
    before = stats()
    places = {add(x, x).ctypes.data for _ in range(50)}
    places |= {subtract(x, x).ctypes.data for _ in range(50)}
    (kept,) = KEPT

    assert len(places) == 1
    assert kept.base.chunk.reuses == 99
    del kept
    after = stats()
    assert after.acquired == before.acquired + 100
    assert after.released == before.released + 100
    assert after.allocated == before.allocated


def test_a_loop_takes_turns():
    x = known(add, LARGE, "f8")
    places, z = set(), None
    for _ in range(20):
        z = add(subtract(x, x), subtract(x, x))
        places.add(z.ctypes.data)

    assert len(places) <= PLACES
    assert len(KEPT) == PLACES
    assert not z.any()


def test_few_are_kept():
    x = known(add, LARGE, "f8")
    for _ in range(2):  # the second time the pool has the blocks without a look
        results = [add(x, x) for _ in range(3 * PLACES)]
        assert all((r == 2).all() for r in results)
        del results
    assert len(KEPT) == PLACES


@pytest.mark.parametrize(
    "shape", [LARGE, (1, 10_000), (10_000, 1), (10, 10, 100), (1,) * 20 + LARGE]
)
def test_every_result_is_as_the_first(shape):
    x = known(add, shape, "f8")
    stats()  # nothing is kept
    first = add(x, x)
    expected = str(first.flags), first.strides, first.shape, first.dtype
    before = chunk(first)
    del first
    again = add(x, x)

    assert chunk(again) is before
    assert before.reuses == 1
    assert (str(again.flags), again.strides, again.shape, again.dtype) == expected
    assert again.base.base.array() is again
    assert again[1:].base is again.base
    again[...] = 3
    memory.free(again)


def test_what_uses_the_memory_keeps_it_without_the_result():
    x = known(add, LARGE, "f8")
    users = [view(add(x, x)) for view in (*VIEWS, *CONTAINERS, lambda x: x.base)]
    others = [subtract(x, x) for _ in range(20)]

    assert not any(o.any() for o in others)
    for user in users[:4]:
        assert (user == 2).all()
    assert (np.asarray(users[5]) == 2).all()


def test_a_result_dies_with_its_last_reference():
    x = known(add, LARGE, "f8")
    told = []
    for _ in range(5):
        result = add(x, x)
        died = weakref.ref(result, told.append)
        assert died() is result
        del result
        assert died() is None
        assert told.pop() is died


@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")  # NumPy 2.5's
def test_a_base_that_was_changed_is_left_alone():
    x = known(add, LARGE, "f8")
    for change in (
        lambda h: h.__setstate__((1, h.shape, h.dtype, False, bytes(h.nbytes))),
        lambda h: setattr(h, "shape", (100, 100)),
        lambda h: setattr(h, "dtype", "i8"),
    ):
        change(add(x, x).base)
        assert (add(x, x) == 2).all()
        assert type(add(x, x).base.base).__name__ == "HostLease"


def test_large_results_are_the_pools_at_once():
    n = MOST // 8
    x = known(add, (n,), "f8")
    y = known(add, (n + 1,), "f8")
    stats()
    assert add(y, y)[-1] == 2
    assert not KEPT
    assert add(x, x)[-1] == 2
    assert len(KEPT) == 1


def test_peaks_hold_what_was_alive_at_once():
    x, y = known(add, LARGE, "f8"), known(add, (20_000,), "f8")
    with memory.peak("cpu") as most:
        start = most.nbytes
        for _ in range(4):
            add(x, x)
        for _ in range(4):
            z = add(y, y)
    assert most.nbytes == start + 2 * chunk(z).nbytes


def test_a_ufunc_leaves_nothing_behind():
    x = np.ones(LARGE)
    before = memory.allocated("cpu")
    for k in range(10):
        f = xdev.vectorize(lambda x, k=k: x + k)
        for _ in range(4):
            f(x)
    del f
    assert memory.allocated("cpu") == before


def test_a_call_that_raises_keeps_nothing():
    x = known(add, LARGE, "f8") * 1e308
    before = memory.allocated("cpu")
    for _ in range(5):
        with np.errstate(over="raise"), pytest.raises(FloatingPointError):
            add(x, x)
    assert memory.allocated("cpu") == before


def test_every_block_is_seen_while_somebody_tracks():
    x = known(add, LARGE, "f8")
    with memory.track():
        result = add(x, x)
        (block,) = (b for b in memory.outstanding() if b.address == result.ctypes.data)
        assert __file__ in str(block)
        del result
        assert not [b for b in memory.outstanding() if __file__ in str(b)]


def test_threads_never_share():
    x = known(add, LARGE, "f8")
    wrong, done = [], threading.Event()

    def work(k):
        z, y = None, np.full(LARGE, float(k))
        while not done.is_set():
            z = add(add(y, x), subtract(y, x))
            if not (z == 2 * k).all():
                wrong.append(k)

    def look():
        while not done.is_set():
            memory.allocated("cpu")
            memory.free(add(x, x))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        threads.append(threading.Thread(target=look))
        for thread in threads:
            thread.start()
        done.wait(1)
    finally:
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert not wrong


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # JAX's, if loaded
def test_a_childs_results_are_its_own():
    x = known(add, LARGE, "f8")
    add(x, x)
    child = os.fork()
    if not child:
        result = add(x, x)
        counted = memory.allocated("cpu") == chunk(result).nbytes
        memory.free(result)
        os._exit(not counted)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert (add(x, x) == 2).all()


START = """
import os
import numpy as np
import xdev
from xdev import memory
from xdev.memory.spares import KEPT

x = np.ones(10_000)
add = xdev.vectorize(lambda x, y: x + y)
for _ in range(5):
    add(x, x)
"""
LIMITED = """
assert KEPT
held = memory.reserved("cpu")
memory.set_limit(held, "cpu")
add(x, x)
assert KEPT
everything = memory.host_array((held,), np.dtype("u1"))
assert memory.allocated("cpu") == memory.reserved("cpu") == held
try:
    add(x, x)
except xdev.OutOfMemoryError:
    del everything
add(x, x)
add(x, x)
assert KEPT
memory.set_limit(1000, "cpu")
try:
    add(x, x)
except xdev.OutOfMemoryError:
    assert memory.reserved("cpu") == 0
    print("done")
"""
UNPOOLED = """
assert not KEPT
assert memory.reserved("cpu") == 0
print("done")
"""
# A finalizer that runs when most modules are empty.
LATE = """
class Late:
    def __init__(self):
        self.add, self.x, self.write = add, x, os.write
    def __del__(self):
        for _ in range(3):
            self.write(1, b"%d " % self.add(self.x, self.x)[-1])
os.late = Late()
"""


@pytest.mark.parametrize(
    ("policy", "text", "said"),
    [
        ("split", LIMITED, "done"),
        ("binned", LIMITED, "done"),
        ("none", UNPOOLED, "done"),
        ("split", LATE, "2 2 2"),
    ],
)
def test_in_a_process_of_its_own(policy, text, said):
    done = subprocess.run(
        [sys.executable, "-c", START + text],
        capture_output=True,
        text=True,
        env=os.environ | {"XDEV_MEMORY_POOL": policy},
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, said), done.stderr
