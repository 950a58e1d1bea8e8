"""The policy ``async``: the source keeps what is free, in the order of streams."""

import pytest
from memory_laws import output

from xdev.errors import OutOfMemoryError
from xdev.memory import Pool
from xdev.testing import FakeSource

MIB = 1 << 20


def test_reclaim_waits_only_where_it_has_to_and_returns_what_went():
    pool = Pool(FakeSource(64 * MIB), "async")
    blocks = [pool.acquire(n * MIB, stream=n) for n in (1, 2, 4)]
    pool.state.source.synchronize()
    del blocks[0]
    pool.stats()
    pool.state.source.synchronize()  # the first is known to be done with
    del blocks
    waits = pool.stats().syncs
    assert pool.reclaim(MIB) == MIB
    assert pool.stats().syncs == waits
    assert pool.reclaim(MIB) >= MIB  # somebody's work may use the others
    assert pool.stats().syncs == waits + 1
    pool.reclaim()
    assert pool.stats().reserved == 0


def test_the_limit_counts_what_the_source_keeps():
    source = FakeSource(64 * MIB)
    pool = Pool(source, "async", limit=4 * MIB)
    pool.acquire(3 * MIB, stream=1)
    assert pool.budget.reserved == 3 * MIB
    held = pool.acquire(2 * MIB, stream=2)  # in place of what was kept
    assert pool.budget.reserved == sum(source.lent.values()) == 2 * MIB
    with pytest.raises(OutOfMemoryError):
        pool.acquire(3 * MIB)
    assert sum(source.lent.values()) <= 4 * MIB
    del held


def test_host_memory_stays_on_split_when_the_setting_is_async():
    program = """
    from xdev import memory
    print([memory.pool(name).state.policy.name for name in ("cpu", "fake")])
    """
    told = output(program, XDEV_MEMORY_POOL="async")
    assert told == "['split', 'async']\n"
