"""Blocks and streams: reuse in stream order, and marks of other uses."""

import pytest
from memory_laws import Slow

from xdev.memory.blocks import Chunk
from xdev.memory.pools import Pool
from xdev.memory.sources.fake import FakeSource
from xdev.memory.state import PoolState


def test_free_memory_stays_with_its_stream_while_there_is_other():
    pool = Pool(FakeSource(1 << 30))
    one = pool.acquire(4096, stream=1)
    address = one.address
    del one
    two = pool.acquire(4096, stream=2)
    assert two.address != address
    assert pool.acquire(4096, stream=1).address == address


def test_a_marked_block_comes_back_after_the_other_streams_work():
    source = Slow()
    pool = Pool(source)
    block = pool.acquire(4096, stream=1)
    address = block.address
    pool.state.mark(block.chunk, (5, 6))
    del block
    assert pool.stats().allocated == 0
    assert sorted(source.events) == [5, 6]
    assert pool.acquire(4096, stream=1).address != address
    source.finished.add(0)
    assert pool.acquire(4096, stream=1).address != address
    source.finished.add(1)
    taken = [pool.acquire(4096, stream=1) for _ in range(3)]
    assert address in {block.address for block in taken}


def test_a_chunk_that_no_pool_lent_goes_nowhere():
    pool = Pool(FakeSource(1 << 30))
    chunk = Chunk(4096, 512, pool.acquire(1).chunk.segment)
    chunk.release(chunk)
    assert pool.stats().live == 0


def test_what_a_reclaim_leaves_stays_with_the_stream_that_has_the_most():
    pool = Pool(FakeSource(1 << 30))
    pool.acquire(1, stream=0)
    held = [pool.acquire(100_000, stream=7) for _ in range(3)]
    del held[1]
    pool.reclaim()
    grown = pool.stats().grown
    pool.acquire(100_000, stream=7)
    assert pool.stats().grown == grown


def test_an_interrupt_amid_the_first_marks_loses_none(monkeypatch):
    pool = Pool(FakeSource(1 << 30))
    held = [pool.acquire(5000, stream=1) for _ in range(3)]
    mark, marked = PoolState.mark, []

    def interrupted(*args):
        marked.append(args)
        if len(marked) == 2:
            raise KeyboardInterrupt
        mark(*args)

    monkeypatch.setattr(PoolState, "mark", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pool.acquire(5000, stream=2)
    held.append(pool.acquire(5000, stream=2))
    assert [block.chunk.uses for block in held] == [{2}, {2}, {2}, None]
