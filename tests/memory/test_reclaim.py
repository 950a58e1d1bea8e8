"""``memory.reclaim``: at least what was asked or all there is, and the exact number."""

import gc

import pytest
from hypothesis import given, strategies as st

from xdev import memory
from xdev.device import Device
from xdev.memory import registry
from xdev.memory.policies import POLICIES
from xdev.memory.pools import Pool
from xdev.memory.sources.fake import FakeSource

MIB = 1 << 20


class Queued:
    """A fake source whose work is done only when somebody waits for all of it."""

    alignment = 512

    def __init__(self):
        self.inner, self.deferred = FakeSource(1 << 40), 0

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def record(self, stream):  # noqa: ARG002
        return self.deferred

    def done(self, event):
        return event < self.deferred

    def synchronize(self):
        self.deferred += 1


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
    policies=st.tuples(*[st.sampled_from(sorted(POLICIES))] * 4),
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
        FakeSource(1 << 40) if policy == "async" else Queued() for policy in policies
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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_pools", dict(zip(PLACES, pools, strict=True)))
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


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_fault_on_the_way_leaves_the_rest_for_the_next_call(policy):
    number, failed = 0, True
    while failed:
        source = FakeSource(1 << 40)
        pool = Pool(source, policy)
        held = [pool.acquire((n + 1) * 3 * MIB, stream=n) for n in range(6)]
        pool.state.mark(held[1].chunk, (7,))
        source.faults = {len(source.log) + number}
        del held
        before = sum(source.lent.values())
        try:
            freed, failed = pool.reclaim(), False
        except RuntimeError:
            freed, failed = before - sum(source.lent.values()), True
        source.faults = set()
        assert freed + pool.reclaim() == before
        assert source.lent == {}
        assert pool.stats().reserved == pool.budget.reserved == 0
        number += 1
    assert number > 6


def test_garbage_is_nobodys_to_reclaim():
    """A block in a reference cycle is in use until the collector runs."""
    pool = Pool(FakeSource(1 << 30))
    gc.disable()
    try:
        cycle = [pool.acquire(2 * MIB)]
        cycle.append(cycle)
        del cycle
        assert pool.reclaim() == 0
    finally:
        gc.enable()
    gc.collect()
    assert pool.reclaim() == 20 * MIB
