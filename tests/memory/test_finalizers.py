"""Blocks dropped at any moment, by anyone: the collector, threads, a finalizer."""

import gc
import threading

from xdev.memory import Pool
from xdev.testing import FakeSource


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
