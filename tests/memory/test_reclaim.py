"""``memory.reclaim``: at least what was asked or all there is, and the exact number."""

import gc

import pytest
from hypothesis import given, strategies as st
from memory_laws import Slow

from xdev import memory
from xdev.device import Device
from xdev.memory import registry
from xdev.memory.policies import POLICIES
from xdev.memory.pools import Pool
from xdev.memory.sources.fake import FakeSource

MIB = 1 << 20


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
