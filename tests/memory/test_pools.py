"""What a pool does under every policy over every source, and what it refuses."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, strategies as st
from memory_laws import POLICIES, SOURCES, within

import xdev
from xdev.errors import ConfigurationError, UseAfterFreeError
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
    """Return what makes a pool of one policy over one source."""
    name, policy = request.param
    if name in ("device", "pinned"):
        request.getfixturevalue("cuda")
    return partial(Pool, SOURCES[name](), policy)


class TestConformance:
    """What every source under every policy does."""

    @pytest.mark.parametrize("nbytes", [0, 1, 511, 512, 513, 100_000, 3 * MIB + 1])
    def test_a_block_is_aligned_and_large_enough(self, make, nbytes):
        pool = make()
        blocks = [pool.acquire(nbytes) for _ in range(3)]
        for block in blocks:
            assert block.address % pool.state.source.alignment == 0
            assert block.nbytes >= max(nbytes, 1)
        del blocks, block
        assert pool.stats().allocated == 0
        pool.reclaim()
        assert pool.stats().reserved == 0

    def test_counts_balance(self, make):
        pool = make()
        for nbytes in (100, 100, 5000, 2 * MIB, 100):
            pool.acquire(nbytes)
        kept = pool.acquire(100)
        stats = pool.stats()
        assert (stats.acquired, stats.released, stats.live) == (6, 5, 1)
        assert stats.acquired_bytes - stats.released_bytes == kept.nbytes
        assert stats.grown - stats.returned == stats.segments
        lent = stats.grown_bytes - stats.returned_bytes
        assert lent + stats.idle == stats.reserved >= stats.allocated
        assert stats.driver_calls >= stats.grown + stats.returned
        del kept
        pool.reclaim()

    def test_what_is_reclaimed_is_what_reserved_falls_by(self, make):
        pool = make()
        blocks = [pool.acquire(n * MIB) for n in (1, 40, 3, 64, 30)]
        pool.state.mark(blocks[3].chunk, (0,))
        for wanted in (0, MIB, 41 * MIB, None):
            before = pool.stats().reserved
            del blocks[-1:]
            freed = pool.reclaim(wanted)
            assert freed == before - pool.stats().reserved
            if wanted is None:  # the driver's pool keeps what lies beside live blocks
                left = pool.stats()
                split = sum(each.split_bytes for each in left.classes)
                assert left.cached == split + left.idle
        del blocks
        before = pool.stats().reserved
        assert pool.reclaim() == before - pool.stats().reserved
        assert pool.stats().reserved == 0


def test_stream_order_is_refused_with_the_way_out_where_there_is_none():
    with pytest.raises(ConfigurationError, match=r"cpu has no .*stream order.*'split'"):
        Pool(SOURCES["host"](), "async")


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


@given(st.integers(min_value=1, max_value=1 << 40))
def test_binned_sizes_are_eighths_of_powers_of_two(nbytes):
    pool = Pool(FakeSource(1 << 50), "binned")
    size = pool.acquire(nbytes).nbytes
    assert nbytes <= size <= max(512, nbytes + nbytes // 8 + 512)
    assert pool.acquire(size).nbytes == size
    assert pool.acquire(nbytes + 1).nbytes >= size


def test_small_requests_share_segments_apart_from_large_ones():
    pool = Pool(FakeSource(1 << 40))
    big = pool.acquire(64 * MIB)
    del big
    kept = [pool.acquire(4096) for _ in range(100)]
    assert pool.stats().reserved == 64 * MIB + 2 * MIB
    del kept


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


def hammer(pool, rounds, seed, owners):
    """Take and drop blocks at random, some of them again and again."""
    generator = np.random.default_rng(seed)
    held = []
    sizes = generator.integers(1, 200_000, rounds)
    sizes[::3] = 4096
    for number, nbytes in enumerate(sizes.tolist()):
        held.append(pool.acquire(nbytes, stream=nbytes % 2))
        assert owners.setdefault(held[-1].address, seed) == seed
        if len(held) > 8 or number % 2:
            block = held.pop(nbytes % len(held))
            del owners[block.address]
            if nbytes % 3:
                pool.release(block)
        if number % 50 == 0:
            pool.reclaim()
        if number % 31 == 0:
            pool.stats()
    for block in held:
        del owners[block.address]


def test_threads_keep_the_laws_under_forced_switching(policy):
    source, owners = FakeSource(1 << 30), {}
    pool = Pool(source, policy)
    calls = [partial(hammer, pool, 600, seed, owners) for seed in range(4)]
    within(60, calls, interval=1e-6)
    stats = pool.stats()
    assert stats.allocated == stats.live == 0
    assert stats.acquired == stats.released == 2400
    pool.reclaim()
    assert source.lent == {}


@pytest.mark.parametrize("other", [3, None, "cpu", FakeSource, xdev.Device("cpu")])
def test_what_is_no_source_is_refused(other, policy):
    with pytest.raises(TypeError, match=r"not a source of memory.*allocate, free"):
        Pool(other, policy)


NO_SIZES = [(nbytes, ValueError) for nbytes in (-1, 1 << 63, -(1 << 70))]
NO_SIZES += [
    (other, TypeError)
    for other in ("4096", 100.0, np.float64(100), [100], None, np.ones(2))
]


@pytest.mark.parametrize(("nbytes", "error"), NO_SIZES)
def test_what_is_no_size_is_refused_though_a_block_of_it_is_free(nbytes, error, policy):
    pool = Pool(FakeSource(1 << 30), policy)
    for _ in range(2):
        with pytest.raises(
            error, match="not possible" if error is ValueError else None
        ):
            pool.acquire(nbytes)
        pool.acquire(100)
    assert pool.stats().live == 0
    assert pool.acquire(np.int64(100)).nbytes >= 100


@pytest.mark.parametrize(
    ("stream", "error"),
    [
        *[(other, TypeError) for other in ("a", 1.5, 0.0, None, [], np.zeros(2))],
        *[(other, ValueError) for other in (-1, 1 << 64, -(1 << 70))],
    ],
)
def test_a_stream_that_is_no_handle_is_refused_with_the_way_out(stream, error, policy):
    pool = Pool(FakeSource(1 << 30), policy)
    pool.acquire(100)
    with pytest.raises(error, match=r"stream.*use an int such as stream\.ptr"):
        pool.acquire(100, stream)
    assert pool.stats().acquired == 1
    assert pool.acquire(100, np.int64(3)).nbytes >= 100


@pytest.mark.parametrize("name", ["Async", "best", "", None, 3])
def test_an_unknown_policy_is_refused_with_those_that_exist(name):
    with pytest.raises(ConfigurationError, match="split, binned, simple, none, async"):
        Pool(FakeSource(1024), name)


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
