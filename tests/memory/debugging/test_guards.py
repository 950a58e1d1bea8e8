"""Guarded pools: what is written where it must not be is found, and nothing else."""

from itertools import pairwise

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    rule,
)

from xdev.errors import MemoryCorruptionError, OutOfMemoryError
from xdev.memory import Pool, hooks
from xdev.memory.debugging import (
    FINDINGS,
    FREED,
    FRESH,
    INSPECTOR,
    ROOM,
    ZONE,
    FakeCells,
    GuardedSource,
    check_pools,
    with_zone,
)
from xdev.memory.policies import named
from xdev.testing import FakeSource

POLICIES = ("split", "binned", "simple", "none")
QUARANTINE = 64 << 10


def guarded(policy="split", capacity=1 << 30, quarantine=QUARANTINE):
    """Return a guarded pool on fake memory, and the memory's cells."""
    cells = FakeCells()
    source = GuardedSource(FakeSource(capacity), cells, quarantine)
    return Pool(source, with_zone(named(policy))), cells


@pytest.fixture(autouse=True)
def listening():
    hooks.subscribe(INSPECTOR)
    yield
    hooks.unsubscribe(INSPECTOR)
    FINDINGS.clear()


def found(pool):
    """Return the text of the damage that a check finds; it is told once."""
    text = ""
    try:
        check_pools([pool])
    except MemoryCorruptionError as error:  # let go of: its frames hold blocks
        text = str(error)
    check_pools([pool])
    return text


@pytest.mark.parametrize("policy", POLICIES)
def test_a_block_is_fresh_up_to_its_size_and_a_red_zone_from_there(policy):
    pool, cells = guarded(policy)
    for nbytes in (0, 1, 511, 512, 513, 100_000):
        block = pool.acquire(nbytes)
        assert block.nbytes == max(1, nbytes)
        assert cells.first_other(block.address, block.nbytes, FRESH) is None
        assert cells.first_other(block.address + block.nbytes, ROOM, ZONE) is None
        cells.fill(block.address, block.nbytes, 0)
    assert check_pools([pool]) == pool.stats().reserved
    del block
    check_pools([pool])
    pool.reclaim()
    assert pool.stats().reserved == 0


def test_a_write_before_a_block_names_the_blocks_on_both_sides():
    pool, cells = guarded()
    first, second = sorted(
        (pool.acquire(1000) for _ in range(2)), key=lambda b: b.address
    )
    cells.fill(second.address - 1, 1, 0)
    text = found(pool)
    assert f"past the end of the 1,000 B block at {first.address:#x}" in text
    assert f"1 B before the 1,000 B block at {second.address:#x}" in text


def test_damage_found_at_the_release_is_raised_by_the_next_request():
    pool, cells = guarded()
    block = pool.acquire(1000)
    cells.fill(block.address + 1000, 1, 0)
    pool.release(block)
    before = pool.stats().allocated
    with pytest.raises(MemoryCorruptionError, match="past the end"):
        pool.acquire(10)
    assert pool.stats().allocated == before
    again = pool.acquire(10)
    assert again.nbytes == 10


def test_a_write_after_the_quarantine_is_found_when_the_memory_is_handed_out():
    pool, cells = guarded(quarantine=0)
    block = pool.acquire(1000)
    address = block.address
    del block
    assert pool.stats().allocated == 0
    cells.fill(address + 10, 4, 7)
    with pytest.raises(MemoryCorruptionError, match=f"written at {address + 10:#x}"):
        pool.acquire(1000)
    assert pool.acquire(1000).address == address


def test_a_write_to_what_goes_back_to_the_source_is_found():
    pool, cells = guarded(quarantine=0)
    block = pool.acquire(1000)
    address = block.address
    pool.release(block)
    assert pool.stats().allocated == 0  # the pool takes it back
    cells.fill(address, 1, 7)
    assert pool.reclaim() == 2 << 20
    assert len(FINDINGS) == 1


@pytest.mark.usefixtures("tier")
def test_blocks_that_c_clients_hold_are_guarded_too():
    pool, cells = guarded()
    state = pool.state
    assert state.share() is not None
    chunk = pool.take(1000)
    assert state.free_lists.adopt(chunk, 0)
    address = chunk.address
    cells.fill(address + 1000, 1, 0)
    assert state.free_lists.take_back(address)
    assert pool.stats().live == 0
    assert f"0 B past the end of the 1,000 B block at {address:#x}" in found(pool)
    assert cells.first_other(address, 1024, FREED) is None


def test_blocks_wait_in_the_quarantine_first_in_first_out():
    pool, _ = guarded(quarantine=10 * 1536)
    first = pool.acquire(1000).address
    later = {pool.acquire(1000).address for _ in range(10)}
    assert first not in later
    assert len(later) == 10
    assert pool.acquire(1000).address == first


def test_a_full_memory_takes_from_the_quarantine_before_it_refuses():
    pool, _ = guarded("simple", capacity=1 << 20, quarantine=1 << 30)
    for _ in range(10):
        assert pool.acquire(900 << 10).nbytes == 900 << 10
    with pytest.raises(OutOfMemoryError):
        pool.acquire(1 << 20)


class GuardLaws(RuleBasedStateMachine):
    """Any use of blocks within their bounds is silent; any other is found."""

    blocks = Bundle("blocks")

    def __init__(self):
        super().__init__()
        self.pool, self.cells = guarded(capacity=64 << 20, quarantine=8192)
        self.live = {}

    @rule(
        target=blocks,
        nbytes=st.integers(0, 5000) | st.integers(0, 3 << 20),
        stream=st.integers(0, 2),
    )
    def acquire(self, nbytes, stream):
        block = self.pool.acquire(nbytes, stream)
        self.cells.fill(block.address, block.nbytes, 0)
        self.live[block.address] = block
        return block.address

    @rule(address=consumes(blocks))
    def drop(self, address):
        del self.live[address]

    @rule(address=blocks, stream=st.integers(0, 3))
    def use_on_another_stream(self, address, stream):
        if address in self.live:
            self.pool.state.mark(self.live[address].chunk, (stream,))

    @rule(address=blocks, offset=st.integers(0, ROOM - 1), before=st.booleans())
    def write_outside(self, address, offset, before):
        if address in self.live:
            block = self.live[address]
            at = block.address - 1 - offset if before else block.address + block.nbytes
            self.cells.fill(at + (0 if before else offset), 1, 1)
            assert f"{address:#x}" in found(self.pool)

    @rule(address=consumes(blocks), offset=st.integers(0, 10_000))
    def write_after_free(self, address, offset):
        block = self.live.pop(address)
        offset = min(offset, block.nbytes - 1)
        del block
        assert self.pool.stats().live == len(self.live)
        self.cells.fill(address + offset, 1, 1)
        assert f"{address + offset:#x}" in found(self.pool)

    @rule()
    def reclaim(self):
        self.pool.reclaim()

    @invariant()
    def all_else_is_silent(self):
        check_pools([self.pool])
        spans = sorted((b.address, b.nbytes) for b in self.live.values())
        for (start, nbytes), (after, _) in pairwise(spans):
            assert start + nbytes + ROOM <= after

    def teardown(self):
        self.live.clear()
        self.pool.reclaim()
        assert self.pool.stats().reserved == 0


TestGuardLaws = GuardLaws.TestCase
TestGuardLaws.settings = settings(max_examples=30, stateful_step_count=30)
