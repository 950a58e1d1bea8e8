"""Blocks dropped at any moment, by anyone: the collector, threads, a finalizer."""

import gc
import sys
import threading

import pytest

from xdev.memory.pools import Pool
from xdev.memory.sources.fake import FakeSource


@pytest.fixture
def eager_collector():
    """Collect at nearly every allocation of a container."""
    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    yield
    gc.set_threshold(*before)


class Garbage:
    """A cycle whose finalizer uses the pool, as users' finalizers may."""

    def __init__(self, pool, done, size):
        self.me, self.pool, self.done, self.size = self, pool, done, size
        self.block = pool.acquire(size)

    def __del__(self):
        block = self.pool.acquire(self.size + 1)
        self.pool.release(block)
        self.pool.acquire(77)
        self.pool.stats()
        self.pool.reclaim(1)
        self.done.append(self.size)


@pytest.mark.usefixtures("eager_collector")
@pytest.mark.parametrize("policy", ["split", "binned", "none"])
def test_finalizers_may_use_the_pool_in_the_middle_of_its_own_work(policy):
    source = FakeSource(1 << 40)
    pool = Pool(source, policy)
    done = []
    for size in range(1, 400):
        Garbage(pool, done, size * 700)
        held = [pool.acquire(size * k) for k in (1, 300, 9000)]
        del held
    gc.collect()
    assert len(done) == 399
    stats = pool.stats()
    assert stats.live == stats.allocated == 0
    pool.reclaim()
    assert source.lent == {}
    assert pool.stats().reserved == pool.budget.reserved == 0


def test_a_call_inside_a_decision_is_served_past_the_heap():
    source = FakeSource(1 << 30)
    pool = Pool(source)
    outer = pool.acquire(100)
    seen = []

    def inside(heap):  # noqa: ARG001
        seen.append(pool.acquire(3000))
        seen.append(pool.acquire(100))
        assert pool.reclaim() == 0

    pool.state.decide(inside)
    assert len({outer.address, *(block.address for block in seen)}) == 3
    stats = pool.stats()
    assert stats.live == 3
    assert stats.reserved == sum(source.lent.values())
    del seen[:]
    del outer
    assert pool.stats().allocated == 0
    pool.reclaim()
    assert source.lent == {}


def test_dropping_a_block_waits_for_no_lock():
    """Another thread holds the lock; a drop returns all the same."""
    pool = Pool(FakeSource(1 << 30))
    block = [pool.acquire(100)]
    inside, leave = threading.Event(), threading.Event()

    def hold(heap):  # noqa: ARG001
        inside.set()
        assert leave.wait(30)

    holder = threading.Thread(target=pool.state.decide, args=(hold,))
    holder.start()
    assert inside.wait(30)
    dropper = threading.Thread(target=block.clear)
    dropper.start()
    dropper.join(30)
    dropped = not dropper.is_alive()
    leave.set()
    holder.join(30)
    dropper.join(30)
    assert dropped
    assert pool.stats().live == 0


@pytest.mark.usefixtures("eager_collector")
def test_threads_and_the_collector_together():
    source = FakeSource(1 << 40)
    pool = Pool(source)
    done, errors = [], []

    def loop(seed):
        try:
            for size in range(1, 60):
                Garbage(pool, done, size * 700 + seed)
                pool.acquire(size * 1000 + seed)
        except BaseException as error:  # noqa: BLE001 - the test shows it
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=loop, args=(seed,)) for seed in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads), "deadlock"
    finally:
        sys.setswitchinterval(interval)
    gc.collect()
    assert errors == []
    assert len(done) == 3 * 59
    assert pool.stats().live == 0
    pool.reclaim()
    assert source.lent == {}


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

    threads = [
        threading.Thread(target=pool.state.decide, args=(finalizer,), daemon=True),
        threading.Thread(target=mover, daemon=True),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads), "deadlock"
    assert seen == [0]


def test_a_finalizer_that_looks_during_a_decision_loses_no_marked_block():
    source = FakeSource(1 << 30)
    pool = Pool(source)
    block = pool.acquire(4096)
    pool.state.mark(block.chunk, (5,))
    del block
    pool.state.decide(lambda _: pool.stats())
    pool.reclaim()
    assert source.lent == {}


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


def test_what_a_finalizer_grew_and_used_is_not_fresh():
    """Memory that is said to be fresh is not filled with zeros."""
    pool = Pool(FakeSource(1 << 30), "binned", limit=4 << 20)
    used = []

    class Holder:
        def __init__(self):
            self.me, self.block = self, pool.acquire(4 << 20)

        def __del__(self):
            self.block = None
            used.append(pool.acquire(3 << 20).address)

    gc.disable()
    try:
        Holder()
        chunk, _, fresh = pool.take_for_c(3 << 20, 0)
    finally:
        gc.enable()
    assert used == [chunk.address]
    assert not fresh
    chunk.release(chunk)
