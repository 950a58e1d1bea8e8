"""What a pool does under every policy over every source, and what it refuses."""

from functools import partial

import numpy as np
import pytest
from memory_laws import POLICIES, SOURCES

from xdev.errors import ConfigurationError, OutOfMemoryError, UseAfterFreeError
from xdev.memory import Pool
from xdev.testing import FakeSource

MIB = 1 << 20


def pairs():
    """Every policy with every source; ``async`` with those that have an order."""
    for source in ("fake", "device", "host", "pinned"):
        ordered = source in ("fake", "device")
        marks = pytest.mark.cuda if source in ("device", "pinned") else ()
        for policy in POLICIES:
            if ordered or policy != "async":
                pair = source, policy
                yield pytest.param(pair, marks=marks, id="-".join(pair))


@pytest.fixture(params=pairs())
def make(request):
    name, policy = request.param
    if name in ("device", "pinned"):
        request.getfixturevalue("cuda")
    return partial(Pool, SOURCES[name](), policy)


@pytest.mark.parametrize("nbytes", [0, 1, 511, 512, 513, 100_000, 3 * MIB + 1])
def test_a_block_is_aligned_and_large_enough(make, nbytes):
    pool = make()
    blocks = [pool.acquire(nbytes) for _ in range(3)]
    for block in blocks:
        assert block.address % pool.state.source.alignment == 0
        assert block.nbytes >= max(nbytes, 1)
    del blocks, block
    assert pool.stats().allocated == 0
    pool.reclaim()
    assert pool.stats().reserved == 0


def test_counts_balance_and_what_is_reclaimed_is_what_reserved_falls_by(make):
    pool = make()
    blocks = [pool.acquire(n * MIB) for n in (1, 40, 3, 64, 30)]
    pool.state.mark(blocks[3].chunk, (0,))
    for wanted in (0, MIB, 41 * MIB, None):
        before = pool.stats().reserved
        del blocks[-1:]
        freed = pool.reclaim(wanted)
        stats = pool.stats()
        assert freed == before - stats.reserved
        assert stats.acquired - stats.released == stats.live == len(blocks)
        used = sum(block.nbytes for block in blocks)
        assert stats.acquired_bytes - stats.released_bytes == stats.allocated == used
        assert stats.grown - stats.returned == stats.segments
        lent = stats.grown_bytes - stats.returned_bytes
        assert lent + stats.idle == stats.reserved >= stats.allocated
        assert stats.driver_calls >= stats.grown + stats.returned
        if wanted is None:  # the driver's pool keeps what lies beside live blocks
            split = sum(each.split_bytes for each in stats.classes)
            assert stats.cached == split + stats.idle
    del blocks
    before = pool.stats().reserved
    assert pool.reclaim() == before
    assert pool.stats().reserved == 0


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
    else:  # under async it is the driver's pool that keeps
        assert len(calls) <= 3
        assert len(addresses) == 3


def test_split_gives_back_large_free_segments_before_it_grows():
    source = FakeSource(1 << 40)
    pool = Pool(source)
    pool.acquire(64 * MIB)
    pool.acquire(100 * MIB)
    assert list(source.lent.values()) == [100 * MIB]
    assert pool.stats().trims == 1


def test_a_pool_lives_as_long_as_its_blocks():
    block = Pool(SOURCES["host"]()).acquire(5 * MIB)
    raw = (np.ctypeslib.ctypes.c_uint8 * block.nbytes).from_address(block.address)
    raw[-1] = 7
    assert raw[-1] == 7


NO_SIZES = {
    ValueError: (-1, 1 << 63, -(1 << 70)),
    TypeError: ("4096", 100.0, np.float64(100), [100], None, np.ones(2)),
}
NO_STREAMS = {
    TypeError: ("a", 1.5, 0.0, None, [], np.zeros(2)),
    ValueError: (-1, 1 << 64, -(1 << 70)),
}


def test_what_is_no_size_or_stream_is_refused_though_a_block_is_free(policy):
    pool = Pool(FakeSource(1 << 30), policy)
    pool.acquire(100)
    for error, sizes in NO_SIZES.items():
        for nbytes in sizes:
            text = "not possible" if error is ValueError else None
            with pytest.raises(error, match=text):
                pool.acquire(nbytes)
    for error, streams in NO_STREAMS.items():
        for stream in streams:
            way = r"stream.*use an int such as stream\.ptr"
            with pytest.raises(error, match=way):
                pool.acquire(100, stream)
    assert (pool.stats().live, pool.stats().acquired) == (0, 1)
    assert pool.acquire(np.int64(100), np.int64(3)).nbytes >= 100


def test_what_is_no_source_or_policy_is_refused():
    for other in (3, None, "cpu", FakeSource):
        with pytest.raises(TypeError, match=r"not a source of memory.*allocate, free"):
            Pool(other)
    for name in ("Async", "best", None):
        known = "split, binned, simple, none, async"
        with pytest.raises(ConfigurationError, match=known):
            Pool(FakeSource(1024), name)
    with pytest.raises(ConfigurationError, match=r"no .*stream order.*'split'"):
        Pool(Plain(), "async")


class Plain:
    """Only the protocol: odd addresses, no name, no alignment, no total."""

    def __init__(self):
        source = FakeSource(64 * MIB)
        self.allocate = lambda nbytes: source.allocate(nbytes) + 80
        self.free = lambda address, nbytes: source.free(address - 80, nbytes)
        self.record, self.wait = source.record, source.wait
        self.done, self.synchronize = source.done, source.synchronize
        self.lent = source.lent


@pytest.mark.parametrize("policy", POLICIES[1:])
def test_a_source_of_the_six_methods_serves(policy):
    source = Plain()
    pool = Pool(source, policy)
    held = []
    for nbytes in np.random.default_rng(0).integers(1, 200_000, 200).tolist():
        held.append(pool.acquire(nbytes, nbytes % 2))
        del held[: len(held) > 8]
    held.clear()
    with pytest.raises(OutOfMemoryError, match="Plain"):
        pool.acquire(64 * MIB + 1)
    pool.reclaim()
    assert source.lent == {}
    assert pool.stats().reserved == 0
    with pytest.raises(ConfigurationError, match=r"in total.*in bytes"):
        Pool(Plain(), policy, "50%")


def test_release_takes_blocks_of_this_pool_only():
    pool, other = Pool(FakeSource(1 << 20)), Pool(FakeSource(1 << 20))
    block = other.acquire(10)
    for foreign in (block, "block", 4096, None):
        with pytest.raises(ValueError, match="not a block of this pool"):
            pool.release(foreign)
    other.release(block)
    with pytest.raises(UseAfterFreeError, match="released before"):
        other.release(block)
    assert other.stats().live == 0
