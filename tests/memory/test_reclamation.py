"""What a pool does before it refuses, and what ``memory.reclaim`` gives back."""

import gc

import pytest
from hypothesis import given, strategies as st
from memory_laws import POLICIES, Slow, output, registered

from xdev import memory
from xdev.device import Device
from xdev.errors import OutOfMemoryError
from xdev.memory import Pool
from xdev.testing import FakeSource

MIB = 1 << 20


@pytest.mark.parametrize(
    ("capacity", "nbytes", "wanted"),
    [(2 * MIB, MIB, MIB), (1 << 30, 64 * MIB, 62 * MIB)],
)
def test_other_streams_memory_is_taken_after_a_wait(capacity, nbytes, wanted):
    """A large segment, too: it is no reason to call the driver."""
    source = FakeSource(capacity)
    pool = Pool(source)
    alive = pool.acquire(4096, stream=1)
    address = pool.acquire(nbytes, stream=1).address
    calls = len(source.log)

    assert pool.acquire(wanted, stream=2).address == address
    taken = source.log[calls:]
    assert taken.index(("record", 1)) < [call[:2] for call in taken].index(("wait", 2))
    asked = {"allocate", "free"} & {call[0] for call in taken}
    assert asked == ({"allocate"} if capacity < 1 << 30 else set())
    assert pool.stats().steals == 1
    del alive


def test_no_segment_is_taken_over_while_a_graph_is_captured(capturing):
    source = FakeSource(1 << 30)
    pool = Pool(source)
    pool.acquire(64 * MIB, stream=1)
    capturing(3)

    pool.acquire(64 * MIB, stream=2)

    assert "wait" not in [call[0] for call in source.log]


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


def test_live_objects_are_spilled_last_and_no_more_than_needed(spillers):
    pool = Pool(FakeSource(1 << 30), limit=8 * MIB)
    kept = [pool.acquire(MIB) for _ in range(8)]
    spilled = []

    def spill():
        if kept:
            spilled.append(kept.pop(0).nbytes)
        return bool(spilled)

    spillers.append(spill)
    assert pool.acquire(2 * MIB).nbytes == 2 * MIB
    assert spilled == [MIB, MIB]
    spillers[:] = [lambda: False]
    held = [*kept, pool.acquire(2 * MIB)]
    with pytest.raises(OutOfMemoryError):
        pool.acquire(2 * MIB)
    assert len(held) == 7


PLACES = [
    (Device("cpu"), "host"),
    (Device("cpu"), "pinned"),
    (Device("fake:0"), "device"),
    (Device("fake:1"), "device"),
]
CHOICES = [
    (None, None),
    (None, "device"),
    ("cpu", None),
    ("cpu", "pinned"),
    ("fake:0", None),
    ("fake:1", "device"),
]
sizes = st.integers(min_value=1, max_value=40 * MIB)
blocks = st.tuples(
    st.integers(min_value=0, max_value=3), sizes, st.integers(min_value=0, max_value=2)
)


@given(
    policies=st.tuples(*[st.sampled_from(POLICIES)] * 4),
    wanted=st.lists(blocks, max_size=12),
    dropped=st.sets(st.integers(min_value=0, max_value=11)),
    used_elsewhere=st.sets(st.integers(min_value=0, max_value=11)),
    choice=st.sampled_from(CHOICES),
    nbytes=st.none() | st.integers(min_value=0, max_value=200 * MIB),
)
def test_what_went_back_is_what_was_said(
    policies, wanted, dropped, used_elsewhere, choice, nbytes
):
    where, kind = choice
    sources = [
        FakeSource(1 << 40) if policy == "async" else Slow() for policy in policies
    ]
    pools = [Pool(*pair) for pair in zip(sources, policies, strict=True)]
    held = {}
    for number, (which, size, stream) in enumerate(wanted):
        held[number] = pools[which].acquire(size, stream)
        if number in used_elsewhere:
            pools[which].state.mark(held[number].chunk, (stream + 1,))
    meant = [
        number
        for number, (device, name) in enumerate(PLACES)
        if where in (None, str(device)) and kind in (None, name)
    ]
    reserved = [pool.stats().reserved for pool in pools]
    held = {n: block for n, block in held.items() if n not in dropped}
    lent = [sum(source.lent.values()) for source in sources]
    with registered(zip(PLACES, pools, strict=True)):
        freed = memory.reclaim(nbytes, where, kind)
        left = [sum(source.lent.values()) for source in sources]
        assert freed == sum(lent[n] - left[n] for n in meant)
        assert freed == sum(lent) - sum(left), "others gave something back"
        if nbytes is not None and freed >= nbytes:
            return
        assert memory.reclaim(None, where, kind) == 0
    for number in meant:  # what is left is in use, or beside what is
        stats = pools[number].stats()
        assert reserved[number] - stats.reserved == lent[number] - left[number]
        assert stats.cached == sum(each.split_bytes for each in stats.classes)


# The policy ``async``: the source keeps what is free, in the order of streams.


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


def test_host_memory_stays_on_split_when_the_setting_is_async():
    program = """
    from xdev import memory
    print([memory.pool(name).state.policy.name for name in ("cpu", "fake")])
    """
    told = output(program, XDEV_MEMORY_POOL="async")
    assert told == "['split', 'async']\n"
