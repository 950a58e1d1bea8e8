"""Limits: what the pools of a device may hold."""

import pytest

import xdev
from xdev import memory
from xdev.errors import ConfigurationError, OutOfMemoryError
from xdev.memory.pools import Pool
from xdev.memory.sources.fake import FakeSource

MIB = 1 << 20


@pytest.fixture
def unlimited():
    """Take the limit of the CPU off afterwards."""
    yield
    memory.set_limit(None, "cpu")


@pytest.mark.parametrize(
    ("limit", "nbytes"),
    [
        (None, None),
        (0, 0),
        (4096, 4096),
        ("4096", 4096),
        ("4GiB", 4 << 30),
        ("1.5 MiB", 3 << 19),
        ("500 MB", 500_000_000),
        ("80%", int(0.8 * (1 << 30))),
        ("100 %", 1 << 30),
    ],
)
def test_limits_are_bytes_sizes_or_shares(limit, nbytes):
    assert Pool(FakeSource(1 << 30), limit=limit).budget.limit == nbytes


SIZES = ["-1", -1, "lots", "", "4 XB", "1e9", 2**63, "9" * 400, True, [1], b"4"]
SHARES = ["-1%", "%", "101%", 1.5, -0.1, float("nan"), float("inf")]


@pytest.mark.parametrize("limit", SIZES + SHARES)
def test_other_limits_are_refused_with_the_forms(limit):
    with pytest.raises(ConfigurationError, match=r"80%|share"):
        Pool(FakeSource(1 << 30), limit=limit)


@pytest.mark.parametrize("policy", ["split", "none", "binned", "simple"])
def test_a_pool_never_holds_more_than_its_limit(policy):
    source = FakeSource(1 << 40)
    pool = Pool(source, policy, limit=10 * MIB)
    held = [pool.acquire(3 * MIB) for _ in range(3)]
    with pytest.raises(OutOfMemoryError, match="limit of 10,485,760"):
        pool.acquire(3 * MIB)
    assert sum(source.lent.values()) <= 10 * MIB
    del held
    assert pool.acquire(10 * MIB).nbytes == 10 * MIB


def test_a_limit_below_what_is_in_use_takes_nothing_and_gives_nothing():
    pool = Pool(FakeSource(1 << 30))
    block = pool.acquire(8 * MIB)
    pool.budget.set(MIB)
    with pytest.raises(OutOfMemoryError):
        pool.acquire(64 * MIB)
    assert block.nbytes == 8 * MIB
    assert pool.stats().allocated == 8 * MIB
    del block
    assert pool.acquire(MIB).nbytes == MIB


@pytest.mark.usefixtures("unlimited")
def test_one_limit_holds_over_the_kinds_of_a_device():
    assert memory.pool("cpu").budget is xdev.memory.registry.budget(xdev.Device("cpu"))
    memory.set_limit("2 GiB", "cpu", "pinned")
    assert memory.get_limit("cpu") == memory.get_limit("cpu", "host") == 2 << 30


@pytest.mark.usefixtures("unlimited")
def test_the_limit_of_the_host_pool_refuses_arrays_and_names_the_way_out():
    memory.reclaim()
    memory.set_limit(memory.reserved("cpu") + 32 * MIB, "cpu")
    with pytest.raises(OutOfMemoryError, match="set_limit"):
        xdev.empty(64 * MIB, dtype=xdev.uint8, device="cpu")
    assert xdev.empty(16 * MIB, dtype=xdev.uint8, device="cpu").nbytes == 16 * MIB


def test_a_kind_that_the_device_has_not_is_refused():
    with pytest.raises(ConfigurationError, match="'host', 'pinned'"):
        memory.set_limit(1, "cpu", "device")
    with pytest.raises(ConfigurationError, match="'device'"):
        memory.pool("fake:0", "host")
