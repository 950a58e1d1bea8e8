"""What a pool refuses, and that it names the way out."""

import numpy as np
import pytest

import xdev
from xdev import _config
from xdev.errors import ConfigurationError, UseAfterFreeError
from xdev.memory import policies
from xdev.memory.policies import POLICIES
from xdev.memory.pools import Pool
from xdev.memory.sources.fake import FakeSource


@pytest.fixture(params=sorted(POLICIES))
def policy(request):
    return request.param


@pytest.mark.parametrize("other", [3, None, "cpu", FakeSource, xdev.Device("cpu")])
def test_what_is_no_source_is_refused(other, policy):
    with pytest.raises(TypeError, match=r"not a source of memory.*allocate, free"):
        Pool(other, policy)


def test_a_policy_tells_its_rules():
    told = repr(policies.named("binned"))
    assert told.startswith("Policy('binned', ")
    assert "granted=eighth" in told
    assert "splits=False" in told


@pytest.mark.parametrize("nbytes", [-1, 1 << 63, -(1 << 70)])
def test_sizes_that_cannot_be_are_refused(nbytes, policy):
    pool = Pool(FakeSource(1 << 30), policy)
    with pytest.raises(ValueError, match="not possible"):
        pool.acquire(nbytes)
    with pytest.raises(TypeError):
        pool.acquire("4096")
    assert pool.stats().acquired == 0


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


@pytest.mark.parametrize("nbytes", [100.0, np.float64(100), [100], None, np.ones(2)])
def test_a_size_that_is_no_int_is_refused_though_a_block_of_it_is_free(nbytes, policy):
    pool = Pool(FakeSource(1 << 30), policy)
    for _ in range(2):
        with pytest.raises(TypeError):
            pool.acquire(nbytes)
        pool.acquire(100)
    assert pool.stats().live == 0
    assert pool.acquire(np.int64(100)).nbytes >= 100


def test_no_size_gets_a_block_that_needs_a_look(policy):
    pool = Pool(FakeSource(1 << 30), policy)
    block = pool.acquire(100)
    pool.state.mark(block.chunk, (3,))
    del block
    for nbytes in (-1, None):
        with pytest.raises((TypeError, ValueError)):
            pool.acquire(nbytes)


def test_the_setting_knows_the_policies_that_there_are():
    assert tuple(POLICIES) == _config.POLICIES
    assert policies._rules.keys() == set(POLICIES)


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
