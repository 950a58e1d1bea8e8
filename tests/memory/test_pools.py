"""The laws of a pool, under any order of calls, for every policy and source."""

import sys
import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    rule,
)

import xdev
from xdev.errors import OutOfMemoryError, UseAfterFreeError
from xdev.memory.policies import POLICIES
from xdev.memory.pools import Block, Pool
from xdev.memory.sources.fake import FakeSource
from xdev.memory.sources.host import HostSource

MIB = 1 << 20


def laws_of(name, capacity, largest):  # noqa: C901 - one short rule a law
    """The state machine of one policy over a source of some capacity."""

    class PoolLaws(RuleBasedStateMachine):
        """A pool against the plainest model of it: the blocks that are alive."""

        live = Bundle("live")

        def __init__(self):
            super().__init__()
            self.source = FakeSource(capacity)
            self.pool = Pool(self.source, name)
            self.blocks = {}
            self.peak = 0

        @rule(
            target=live,
            nbytes=st.integers(min_value=1, max_value=largest),
            stream=st.integers(min_value=0, max_value=2),
        )
        def acquire(self, nbytes, stream):
            try:
                block = self.pool.acquire(nbytes, stream)
            except OutOfMemoryError:
                assert self.pool.reclaim() == 0, "refused while something was cached"
                assert sum(self.source.lent.values()) + nbytes > capacity
                return None
            assert block.nbytes >= nbytes
            assert block.address not in self.blocks
            self.blocks[block.address] = block
            used = sum(b.nbytes for b in self.blocks.values())
            self.peak = max(self.peak, used)
            return block.address

        @rule(address=consumes(live))
        def drop(self, address):
            self.blocks.pop(address, None)

        @rule(address=consumes(live))
        def release(self, address):
            block = self.blocks.pop(address, None)
            if block is not None:
                self.pool.release(block)
                with pytest.raises(UseAfterFreeError):
                    self.pool.release(block)

        @rule(nbytes=st.none() | st.integers(min_value=0, max_value=capacity))
        def reclaim(self, nbytes):
            before = sum(self.source.lent.values())
            freed = self.pool.reclaim(nbytes)
            assert freed == before - sum(self.source.lent.values())
            if nbytes is not None and freed < nbytes:
                assert self.pool.reclaim() == 0, "more could have gone back"

        @invariant()
        def live_blocks_never_overlap(self):
            spans = sorted((b.address, b.nbytes) for b in self.blocks.values())
            for (start, nbytes), (after, _) in pairwise(spans):
                assert start + nbytes <= after

        @invariant()
        def live_blocks_lie_in_lent_memory(self):
            for block in self.blocks.values():
                assert any(
                    start <= block.address
                    and block.address + block.nbytes <= start + nbytes
                    for start, nbytes in self.source.lent.items()
                )

        @invariant()
        def every_byte_is_accounted_for(self):
            stats = self.pool.stats()
            assert stats.allocated == sum(b.nbytes for b in self.blocks.values())
            assert stats.live == len(self.blocks)
            assert stats.reserved == sum(self.source.lent.values())
            assert stats.allocated + stats.cached == stats.reserved
            assert stats.peak_allocated == self.peak
            assert self.pool.budget.reserved == stats.reserved

        @invariant()
        def nothing_is_kept_without_a_cache(self):
            if name == "none":
                assert self.pool.stats().cached == 0

        def teardown(self):
            self.blocks.clear()
            self.pool.reclaim()
            assert self.source.lent == {}

    return PoolLaws.TestCase


SmallSplitLaws = laws_of("split", 16 * 1024, 4096)
SmallBinnedLaws = laws_of("binned", 16 * 1024, 4096)
SmallSimpleLaws = laws_of("simple", 16 * 1024, 4096)
SmallNoneLaws = laws_of("none", 16 * 1024, 4096)
LargeSplitLaws = laws_of("split", 256 * MIB, 80 * MIB)
LargeBinnedLaws = laws_of("binned", 256 * MIB, 80 * MIB)


@pytest.fixture(params=sorted(POLICIES))
def policy(request):
    return request.param


@pytest.fixture(
    params=[
        "fake",
        "host",
        pytest.param("pinned", marks=pytest.mark.cuda),
        pytest.param("device", marks=pytest.mark.cuda),
    ]
)
def source(request):
    if request.param == "fake":
        return FakeSource(1 << 40)
    if request.param == "host":
        return HostSource()
    request.getfixturevalue("cuda")
    from xdev.memory.sources.cuda import CudaSource
    from xdev.memory.sources.pinned import PinnedSource

    return PinnedSource() if request.param == "pinned" else CudaSource(0)


class TestConformance:
    """What every source under every policy does."""

    @pytest.mark.parametrize("nbytes", [0, 1, 511, 512, 513, 100_000, 3 * MIB + 1])
    def test_a_block_is_aligned_and_large_enough(self, source, policy, nbytes):
        pool = Pool(source, policy)
        blocks = [pool.acquire(nbytes) for _ in range(3)]
        for block in blocks:
            assert block.address % source.alignment == 0
            assert block.nbytes >= max(nbytes, 1)
        del blocks, block
        assert pool.stats().allocated == 0
        pool.reclaim()
        assert pool.stats().reserved == 0

    def test_counts_balance(self, source, policy):
        pool = Pool(source, policy)
        for nbytes in (100, 100, 5000, 2 * MIB, 100):
            pool.acquire(nbytes)
        kept = pool.acquire(100)
        stats = pool.stats()
        assert (stats.acquired, stats.released, stats.live) == (6, 5, 1)
        assert stats.acquired_bytes - stats.released_bytes == kept.nbytes
        assert stats.grown - stats.returned == stats.segments
        assert stats.grown_bytes - stats.returned_bytes == stats.reserved
        del kept
        pool.reclaim()

    def test_other_streams_blocks_are_usable_when_nothing_else_is(self, source, policy):
        pool = Pool(source, policy, limit=4 * MIB)
        block = pool.acquire(4 * MIB, stream=0)
        del block
        again = pool.acquire(4 * MIB, stream=0)
        assert again.nbytes >= 4 * MIB
        del again
        pool.reclaim()


def test_memory_of_the_host_holds_what_is_written():
    pool = Pool(HostSource())
    blocks = [pool.acquire(n) for n in (1, 100, 70_000, 5 * MIB)]
    for number, block in enumerate(blocks):
        view = np.ctypeslib.as_array(
            (np.ctypeslib.ctypes.c_uint8 * block.nbytes).from_address(block.address)
        )
        view[:] = number
    for number, block in enumerate(blocks):
        raw = (np.ctypeslib.ctypes.c_uint8 * block.nbytes).from_address(block.address)
        assert set(bytes(raw)) == {number}


def test_a_steady_loop_never_asks_the_source_again(policy):
    source = FakeSource(1 << 30)
    pool = Pool(source, policy)
    addresses = set()
    for _ in range(100):
        blocks = [pool.acquire(n) for n in (1000, 70_000, 3 * MIB)]
        addresses |= {block.address for block in blocks}
        del blocks
    calls = [call for call in source.log if call[0] == "allocate"]
    if policy == "none":
        assert len(calls) == 300
    else:
        assert len(calls) <= 3
        assert len(addresses) == 3


def test_split_serves_a_request_from_a_larger_free_block_and_merges_again():
    source = FakeSource(1 << 30)
    pool = Pool(source)
    large = pool.acquire(12 * MIB)
    start = large.address
    del large
    a, b = pool.acquire(11 * MIB), pool.acquire(MIB + 1)
    assert a.address == start
    del a, b
    assert pool.acquire(12 * MIB).address == start


def test_small_requests_share_segments_apart_from_large_ones():
    pool = Pool(FakeSource(1 << 40))
    big = pool.acquire(64 * MIB)
    del big
    kept = [pool.acquire(4096) for _ in range(100)]
    assert pool.stats().reserved == 64 * MIB + 2 * MIB
    del kept


@pytest.mark.parametrize("nbytes", [1, 4096, 4097, 100_000, 12_345_678])
def test_binned_wastes_at_most_an_eighth(nbytes):
    block = Pool(FakeSource(1 << 40), "binned").acquire(nbytes)
    assert nbytes <= block.nbytes <= max(512, nbytes + nbytes / 8)


def test_split_gives_back_large_free_segments_before_it_grows():
    source = FakeSource(1 << 40)
    pool = Pool(source)
    pool.acquire(64 * MIB)
    pool.acquire(100 * MIB)
    assert list(source.lent.values()) == [100 * MIB]
    assert pool.stats().trims == 1


def test_a_pool_lives_as_long_as_its_blocks():
    block = Pool(HostSource()).acquire(5 * MIB)
    raw = (np.ctypeslib.ctypes.c_uint8 * block.nbytes).from_address(block.address)
    raw[-1] = 7
    assert raw[-1] == 7


def test_a_released_block_dropped_later_is_not_given_back_twice():
    pool = Pool(FakeSource(1 << 20))
    first = pool.acquire(100)
    pool.release(first)
    second = pool.acquire(100)
    assert second.address == first.address
    del first
    assert pool.stats().live == 1
    assert pool.acquire(100).address != second.address


def hammer(pool, rounds, seed, errors):
    generator = np.random.default_rng(seed)
    held = []
    try:
        for nbytes in generator.integers(1, 200_000, size=rounds).tolist():
            held.append(pool.acquire(nbytes, stream=nbytes % 2))
            if len(held) > 8:
                block = held.pop(nbytes % 8)
                if nbytes % 3:
                    pool.release(block)
            if nbytes % 50 == 0:
                pool.reclaim()
            if nbytes % 31 == 0:
                pool.stats()
    except BaseException as error:  # noqa: BLE001 - the test shows it
        errors.append(error)


def test_threads_keep_the_laws_under_forced_switching(policy):
    source = FakeSource(1 << 30)
    pool = Pool(source, policy)
    errors = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [
            threading.Thread(target=hammer, args=(pool, 300, seed, errors))
            for seed in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []
    stats = pool.stats()
    assert stats.allocated == stats.live == 0
    assert stats.acquired == stats.released == 1200
    pool.reclaim()
    assert source.lent == {}


def test_one_block_per_thread_at_a_time():
    """No two threads ever hold the same address."""
    pool = Pool(FakeSource(1 << 30))
    owned, clashes = set(), []
    interval = sys.getswitchinterval()

    def loop():
        for _ in range(2000):
            block = pool.acquire(4096)
            if block.address in owned:
                clashes.append(block.address)
            owned.add(block.address)
            owned.discard(block.address)
            pool.release(block)

    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=loop) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert clashes == []
    assert pool.stats().acquired == 8000


def test_the_public_pool_is_this_one():
    assert xdev.memory.Pool is Pool
    assert xdev.memory.Block is Block
    assert xdev.testing.FakeSource is FakeSource
