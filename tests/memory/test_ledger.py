"""The ledger: sums, peaks, scopes that overlap in any order, sizes by class."""

import threading
from collections import Counter

import pytest
from hypothesis import given, strategies as st
from memory_laws import Slow

from xdev import memory
from xdev.memory import Pool, registry
from xdev.memory.accounting import Ledger, keys_of
from xdev.testing import FakeSource

MIB = 1 << 20

sizes = st.integers(min_value=1, max_value=99)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("take"), sizes),
        st.tuples(st.just("give"), sizes),
        st.tuples(st.just("list takes"), sizes),
        st.tuples(st.just("list gives"), sizes),
        st.tuples(st.just("drain"), st.just(0)),
        st.tuples(st.just("open"), st.just(0)),
        st.tuples(st.just("close"), sizes),
        st.tuples(st.just("reset"), st.just(0)),
    ),
    max_size=40,
)


class FreeLists:
    """What the native free lists count, in the plainest way: blocks that they keep."""

    def __init__(self, ledger):
        self.ledger, self.live, self.free = ledger, [], []
        self.least, self.rounds = 0, []
        ledger.share(self)

    @property
    def idle(self):
        return sum(self.free)

    def least_idle(self):
        least, self.least = self.least, self.idle
        return least

    def take(self, size):
        if size in self.free:
            self.free.remove(size)
            self.rounds.append(size)
            self.least = min(self.least, self.idle)
        else:
            self.ledger.take(size)  # it comes in use
        self.live.append(size)

    def take_back(self, size):
        self.free.append(size)

    def drain(self):
        for size in self.free:
            self.least -= size
        gone = [Freed(size) for size in self.free]
        self.free.clear()
        self.ledger.release_all(gone)


class Freed:
    reuses = 0

    def __init__(self, nbytes):
        self.nbytes = nbytes


def heap_counts(live, lists):
    """Return what a walk through the heap counts."""
    lives, rounds = (lists.live, lists.rounds) if lists is not None else ([], [])
    return {"live": Counter(live + lives), "reuses": Counter(rounds)}


@given(steps, st.booleans())
def test_every_scope_sees_the_peak_of_its_time(steps, with_lists):  # noqa: C901
    ledger, live, scopes, closed = Ledger(), [], [], []
    lists = FreeLists(ledger) if with_lists else None
    levels, since_reset, counts = [0], 0, Counter()
    for name, value in steps:
        if name == "take":
            ledger.take(value)
            live.append(value)
            counts["taken", (value - 1).bit_length()] += 1
        elif name == "give" and live:
            ledger.release(live.pop(value % len(live)))
        elif name == "list takes" and lists is not None:
            lists.take(value)
            counts["taken", (value - 1).bit_length()] += 1
        elif name == "list gives" and lists is not None and lists.live:
            lists.take_back(lists.live.pop(value % len(lists.live)))
        elif name == "drain" and lists is not None:
            lists.drain()
        elif name == "open":
            scopes.append((ledger.open(), len(levels) - 1))
        elif name == "close" and scopes:
            scope, start = scopes.pop(value % len(scopes))
            ledger.close(scope)
            closed.append((scope, max(levels[start:])))
        elif name == "reset":
            ledger.reset_peak()
            since_reset = len(levels) - 1
        held = live + (lists.live if lists is not None else [])
        levels.append(sum(held))

    look = ledger.look(heap_counts(live, lists))
    assert look.allocated == ledger.allocated == levels[-1]
    assert look.live == look.acquired - look.released
    assert look.acquired == sum(counts.values())
    assert look.acquired_bytes - look.released_bytes == levels[-1]
    assert look.peak_allocated == max(levels[since_reset:])
    assert ledger.peaks(ever=True).allocated == max(levels)
    for scope, highest in closed:
        assert scope.allocated == highest
    for scope, start in scopes:
        assert scope.allocated == max(levels[start:])
    for each in look.classes:
        assert each.acquired == counts["taken", each.upto.bit_length() - 1]
        assert each.live_bytes <= each.live * each.upto


def test_what_cannot_go_back_is_told_apart_from_what_can():
    pool = Pool(FakeSource(1 << 30))
    kept = pool.acquire(MIB)  # half of a small segment
    pool.acquire(64 * MIB)
    stats = pool.stats()
    split = sum(each.split_bytes for each in stats.classes)
    assert (split, stats.cached) == (MIB, 65 * MIB)
    assert pool.reclaim() == 64 * MIB
    assert pool.stats().cached == split
    del kept
    assert sum(each.split for each in pool.stats().classes) == 0


def test_what_waits_for_a_stream_is_neither_in_use_nor_free():
    source = Slow()
    pool = Pool(source)
    block = pool.acquire(3 * MIB)
    pool.state.mark(block.chunk, (1, 2))
    del block
    stats = pool.stats()
    assert (stats.live, stats.waiting, stats.waiting_bytes) == (0, 1, 3 * MIB)
    assert stats.allocated == 0
    assert (stats.events, stats.syncs) == (2, 0)
    keys = keys_of([stats])
    assert keys["active.all.current"] == keys["active.large_pool.current"] == 1
    assert keys["active_bytes.all.current"] == 3 * MIB
    assert keys["allocation.all.current"] == 0
    assert pool.reclaim() == 20 * MIB  # after the one wait that it needs
    stats = pool.stats()
    assert (stats.waiting, stats.syncs, stats.reserved) == (0, 1, 0)


def test_calls_of_the_source_are_counted_as_the_source_counts_them():
    source = FakeSource(4 * MIB)
    pool = Pool(source, "simple")
    one = pool.acquire(2 * MIB, stream=1)
    held = pool.acquire(2 * MIB, stream=2)
    del one
    pool.acquire(2 * MIB, stream=3)
    del held
    pool.reclaim()
    stats = pool.stats()
    called = [call for call in source.log if call[0] != "done"]
    assert stats.driver_calls == len(called)
    assert stats.failures > 0


def test_a_peak_counts_what_other_threads_use():
    with memory.peak("fake") as most:
        block = memory.pool("fake").acquire(5 * MIB)
        thread = threading.Thread(target=lambda: memory.pool("fake").acquire(7 * MIB))
        thread.start()
        thread.join()
    assert most.nbytes >= 12 * MIB
    del block


@pytest.fixture
def no_pools(monkeypatch):
    """Start as a fresh process does."""
    monkeypatch.setattr(registry, "_pools", {})
    monkeypatch.setattr(registry, "_budgets", {})


@pytest.mark.usefixtures("no_pools")
def test_a_peak_follows_a_pool_that_is_made_inside_it():
    with memory.peak("fake") as outer:
        with memory.peak("fake") as inner:
            assert inner.nbytes == 0
            memory.pool("fake").acquire(MIB)
        memory.reset_peak("fake")
        memory.pool("fake").acquire(4096)
        with memory.peak("fake") as late:
            memory.pool("fake").acquire(8192)
    assert (outer.nbytes, inner.nbytes, late.nbytes) == (MIB, MIB, 8192)
    assert outer.reserved == 2 * MIB


@pytest.mark.usefixtures("no_pools")
def test_peaks_of_two_devices_are_apart_and_may_overlap():
    one, two = memory.peak("fake:0"), memory.peak("fake:1")
    first = one.__enter__()
    memory.pool("fake:0").acquire(MIB)
    second = two.__enter__()
    memory.pool("fake:1").acquire(2 * MIB)
    one.__exit__(None, None, None)
    memory.pool("fake:1").acquire(3 * MIB)
    memory.pool("fake:0").acquire(9 * MIB)
    two.__exit__(None, None, None)
    assert (first.nbytes, second.nbytes) == (MIB, 3 * MIB)
