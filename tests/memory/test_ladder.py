"""What a pool does before it refuses, and that it refuses only then."""

import gc
import pickle

import pytest

from xdev.errors import OutOfMemoryError
from xdev.memory import hooks
from xdev.memory.policies import POLICIES
from xdev.memory.pools import Pool
from xdev.memory.sources.fake import FakeSource
from xdev.memory.streams import live_streams
from xdev.memory.tracking import track

MIB = 1 << 20


def names(source):
    return [call[0] for call in source.log]


@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("capacity", [1000, 1024, 3 * MIB, 25 * MIB])
def test_a_request_of_the_whole_capacity_is_served(policy, capacity):
    source = FakeSource(capacity)
    block = Pool(source, policy).acquire(capacity)
    assert block.nbytes == capacity


def test_other_streams_memory_is_taken_after_a_wait():
    source = FakeSource(2 * MIB)
    pool = Pool(source)
    alive = pool.acquire(4096, stream=1)
    block = pool.acquire(MIB, stream=1)
    address = block.address
    del block
    taken = pool.acquire(MIB, stream=2)
    assert taken.address == address
    record = source.log.index(("record", 1))
    wait = next(n for n, call in enumerate(source.log) if call[:2] == ("wait", 2))
    assert record < wait
    assert pool.stats().steals == 1
    del alive


def test_a_large_free_segment_of_another_stream_is_no_reason_to_call_the_driver():
    source = FakeSource(1 << 30)
    pool = Pool(source)
    address = pool.acquire(64 * MIB, stream=1).address

    taken = pool.acquire(62 * MIB, stream=2)

    assert taken.address == address
    assert names(source).count("allocate") == 1
    assert "free" not in names(source)
    record = source.log.index(("record", 1))
    assert record < next(n for n, c in enumerate(source.log) if c[:2] == ("wait", 2))
    assert pool.stats().steals == 1


@pytest.mark.parametrize("nbytes", [40 * MIB, 66 * MIB, 4 * MIB])
def test_a_segment_of_another_size_is_not_taken_over(nbytes):
    source = FakeSource(1 << 30)
    pool = Pool(source)
    pool.acquire(64 * MIB, stream=1)

    pool.acquire(nbytes, stream=2)

    assert pool.stats().steals == 0
    assert names(source)[-2:] == ["free", "allocate"], "it went back before the growth"


def test_no_segment_is_taken_over_while_a_graph_is_captured(monkeypatch):
    source = FakeSource(1 << 30)
    pool = Pool(source)
    pool.acquire(64 * MIB, stream=1)
    monkeypatch.setattr(live_streams, "captured", {3})

    pool.acquire(64 * MIB, stream=2)

    assert "wait" not in names(source)


def test_garbage_is_collected_before_a_refusal():
    source = FakeSource(4096)
    pool = Pool(source)
    gc.disable()
    try:
        cycle = [pool.acquire(4096)]
        cycle.append(cycle)
        del cycle
        assert pool.acquire(4096).nbytes == 4096
    finally:
        gc.enable()


def test_live_objects_are_spilled_last_and_no_more_than_needed(monkeypatch):
    pool = Pool(FakeSource(1 << 30), limit=8 * MIB)
    kept = [pool.acquire(MIB) for _ in range(8)]
    spilled = []

    def spill():
        if kept:
            spilled.append(kept.pop(0).nbytes)
        return bool(spilled)

    monkeypatch.setattr(hooks, "spillers", [spill])
    assert pool.acquire(2 * MIB).nbytes == 2 * MIB
    assert spilled == [MIB, MIB]
    monkeypatch.setattr(hooks, "spillers", [lambda: False])
    held = [*kept, pool.acquire(2 * MIB)]
    with pytest.raises(OutOfMemoryError):
        pool.acquire(2 * MIB)
    assert len(held) == 7


def test_a_refusal_says_what_is_held_and_pickles():
    pool = Pool(FakeSource(1 << 30), limit=8192)
    with track():
        block = pool.acquire(4096)
        with pytest.raises(OutOfMemoryError) as refusal:
            pool.acquire(8192)
    error = refusal.value
    assert isinstance(error, MemoryError)
    assert (error.asked, error.limit, error.allocated) == (8192, 8192, block.nbytes)
    assert error.reserved == pool.stats().reserved
    assert len(error.holders) == 1
    assert "test_ladder.py:" in error.holders[0]
    assert "8,192" in str(error)
    assert "set_limit" in str(error)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert str(again) == str(error)
    assert pool.stats().refusals == 1


def test_a_fresh_pool_takes_no_call_but_one():
    source = FakeSource(1 << 30)
    Pool(source).acquire(100)
    assert names(source) == ["allocate"]
