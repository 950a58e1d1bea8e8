"""The collector runs at every line of the pools' code, inside every locked region.

At each of them it finds garbage whose finalizer uses the pools, as users' finalizers
may. Nothing may deadlock, and the accounts must be true at the end.
"""

import ast
import gc
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from memory_laws import at_lines, pools_under, registered
from running import within

from xdev import memory
from xdev.errors import OutOfMemoryError
from xdev.memory import Pool, bridges
from xdev.testing import FakeSource

ROOM = Path(memory.__file__).parent
#: The modules whose locks a pool's life passes, and those of what is about it.
MODULES = "hooks", "registry", "state", "tracking", "sources/fake"
ABOUT = "bridges/__init__", "bridges/opt_in", "history"
POLICIES = ("split", "binned", "simple", "none")
KIB, MIB = 1 << 10, 1 << 20
ROOMY = 256 * MIB  # for all that the threads want at a time [B]
WAIT = 100  # for threads that should not hang [s]


def locked_regions(modules):
    """Return {(file, lock, where): its lines} of every block under a lock."""
    regions = {}
    for module in modules:
        path = ROOM / f"{module}.py"
        # Not the driver's pool, which no finalizer uses amid its own work.
        text, _, _ = path.read_text().partition("@final\nclass FakeAsyncSource")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.With):
                lock = ast.unparse(node.items[0].context_expr)
                if lock.endswith(("_lock", ".moving")):
                    lines = range(node.body[0].lineno, node.end_lineno + 1)
                    regions[str(path), lock, node.lineno] = lines
    return regions


class Garbage:
    """A cycle whose finalizer uses a pool that may be in the middle of its work."""

    def __init__(self, pool, size):
        self.me, self.pool, self.size = self, pool, size
        self.block = pool.acquire(size)

    def __del__(self):
        pool, size = self.pool, self.size
        pool.release(pool.acquire(size + 1, stream=1))
        pool.acquire(77)
        pool.stats()
        pool.reclaim(1)
        DONE.append(size)


class Meddler(Garbage):
    """One whose finalizer also makes pools, changes settings, records and bridges."""

    def __del__(self):
        super().__del__()
        with memory.track(), memory.peak("fake"):
            memory.pool("fake").acquire(self.size)
        memory.set_limit("1 GiB", "fake")
        memory.summary("fake")
        Pool(FakeSource(MIB)).acquire(1)
        if BRIDGES:
            memory.record_history(self.size % 1200 == 0)
            memory.snapshot("fake")
            bridges.install("numpy")
            bridges.left_alone()
            if self.size % 1800 == 0:
                bridges.uninstall("numpy")


BRIDGES = []
DONE = []


def collecting(pool, lines):
    """Return what collects garbage at a line of the room that is not among those."""

    def collect(frame):
        where = frame.f_code.co_filename, frame.f_lineno
        # Where there are assignments only no collection can come: between a lock and
        # its flag, and under the budget's.
        state = pool.state
        if state._lock._is_owned() and not state._deciding:
            return
        if where not in lines and not state.budget._lock._is_owned():
            lines.add(where)
            Meddler(pool, 600 * (1 + len(lines) % 9))
            gc.collect(0)

    return collect


def life(pools):
    """Go through the locked regions; return the lines where garbage was collected."""
    (pool, _), (sibling, _) = pools
    sibling.acquire(30 * MIB)
    lines = set()
    with at_lines(ROOM, collecting(pool, lines)):
        with memory.track():
            pool.acquire(30 * MIB)
            kept = pool.acquire(2 * MIB)
            pool.acquire(8 * MIB, stream=1)
            pool.state.mark(kept.chunk, [3])
            del kept
            with pytest.raises(OutOfMemoryError):
                pool.acquire(2 * ROOMY, stream=2)
            block = pool.acquire(100 * KIB)
            pool.release(block)
            pool.release(pool.acquire(1))
            pool.state.move(pool.state.mend)
            pool.stats()
            pool.reclaim()
            memory.outstanding("fake")
        memory.outstanding("cpu")
        memory.pool("fake:1").acquire(1)
        pool.state.share()
        pool.release(pool.acquire(1))
        for _ in range(4 * len(BRIDGES)):  # a finalizer may have taken it out before
            memory.record_history()
            memory.snapshot("fake")
            bridges.install("numpy")
            bridges.installed()
            bridges.left_alone()
            bridges.uninstall("numpy")
            memory.record_history(False)
    gc.collect()
    return lines


def check(pools):
    gc.collect()  # each thread's last one may have found the other's under way
    for pool, source in pools:
        stats = pool.stats()
        assert stats.live == stats.allocated == 0
        assert stats.reserved == sum(source.lent.values())
        pool.reclaim()
        assert source.lent == {}
    assert pools[0][0].budget.reserved == 0


@pytest.fixture(autouse=True)
def afresh(few_objects, no_fake_pools, untold):  # noqa: ARG001
    """Start with no fake pool, and no finalizer run; collections are forced."""
    DONE.clear()
    installed = bridges.installed()
    gc.disable()
    yield
    gc.enable()
    memory.record_history(False)
    bridges.install("numpy") if "numpy" in installed else bridges.uninstall("numpy")


@pytest.mark.parametrize("bridged", [False, True])
def test_a_collection_in_every_locked_region_neither_hangs_nor_miscounts(
    bridged, request, monkeypatch
):
    if bridged:
        request.getfixturevalue("tier")
        monkeypatch.setattr(sys.modules[__name__], "BRIDGES", ["numpy"])
    seen, other = set(), Pool(FakeSource(MIB))
    listeners = other.state.listeners
    for policy in POLICIES[: 1 if bridged else None]:
        sources = [FakeSource(ROOMY) for _ in range(2)]
        pools = list(zip(pools_under(ROOMY, policy, sources), sources, strict=True))
        [lines] = within(WAIT, [lambda pools=pools: life(pools)])
        gc.collect()
        memory.record_history(False)
        bridges.uninstall("numpy")
        check(pools)
        seen |= lines
    assert len(DONE) >= len(seen)
    assert other.state.listeners == listeners
    assert memory.pool("cpu").find(np.ones(100_000).ctypes.data) is None
    missed = [
        region
        for region, lines in locked_regions(MODULES + ABOUT * bridged).items()
        if not any((region[0], line) in seen for line in lines)
    ]
    assert missed == [], "no collection was forced there"


class Maker:
    """A cycle whose finalizer uses the pool that is being made."""

    def __init__(self, blocks):
        self.me, self.blocks = self, blocks

    def __del__(self):
        self.blocks.append(memory.pool("fake:1").acquire(1000))


def first_pool(path, line, blocks):
    """Make the first pool of a device, with a collection before one line of a file."""

    def collect(frame):
        if frame.f_lineno == line:
            gc.collect(0)

    Maker(blocks)
    with at_lines(path, collect):
        return memory.pool("fake:1")


def test_a_pool_that_a_finalizer_makes_meanwhile_is_the_only_one():
    regions = locked_regions(["registry"])
    for path, line in {(path, n) for (path, *_), ns in regions.items() for n in ns}:
        blocks = []
        with registered({}):
            pool = first_pool(path, line, blocks)
            gc.collect()  # where that line was not reached
            assert memory.pool("fake:1") is pool
        assert blocks[0].chunk.segment.owner is pool.state
        assert pool.allocated == blocks[0].nbytes
        assert pool.budget.reserved == pool.reserved > 0


def test_dropping_a_block_waits_for_no_lock():
    """Another thread holds the lock; a drop returns all the same."""
    pool = Pool(FakeSource(1 << 30))
    block = [pool.acquire(100)]
    inside, leave = threading.Event(), threading.Event()

    def hold(heap):  # noqa: ARG001
        inside.set()
        assert leave.wait(30)

    def drop():
        assert inside.wait(30)
        block.clear()
        leave.set()

    within(40, [lambda: pool.state.decide(hold), drop])
    assert pool.stats().live == 0


def test_a_finalizer_that_looks_during_a_decision_waits_for_no_other_thread():
    pool = Pool(FakeSource(1 << 30))
    deciding, moving, seen = threading.Event(), threading.Event(), []

    def finalizer(_):
        deciding.set()
        moving.wait(30)
        seen.append(pool.stats().live)

    def mover():
        deciding.wait(30)
        with pool.state.moving:
            moving.set()
            pool.state.decide(lambda _: None)

    within(10, [lambda: pool.state.decide(finalizer), mover])
    assert seen == [0]


def test_a_block_served_during_a_decision_is_found_like_others():
    pool, served = Pool(FakeSource(1 << 30)), []
    first = pool.acquire(100, stream=1)
    pool.state.decide(lambda _: served.append(pool.acquire(5000, stream=1)))
    assert pool.find(served[0].address) is served[0].chunk
    address = served.pop().address
    again = pool.acquire(5000, stream=1)
    assert again.address == address
    pool.acquire(100, stream=2)
    assert first.chunk.uses == again.chunk.uses == {2}
