"""Limits: what the pools of a device may hold; a container's is of its cgroup."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from memory_laws import MACHINE

import xdev
from xdev import memory
from xdev.errors import ConfigurationError, OutOfMemoryError
from xdev.memory import Pool
from xdev.testing import FakeSource

MIB = 1 << 20


@pytest.fixture
def unlimited():
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
        (0.25, 1 << 28),
        (1.0, 1 << 30),
        (np.float32(0.25), 1 << 28),
        (Fraction(1, 4), 1 << 28),
        (np.int64(4096), 4096),
        ("0.5", 1 << 29),
        (Decimal("0.5"), 1 << 29),
    ],
)
def test_limits_are_bytes_sizes_or_shares(limit, nbytes):
    assert Pool(FakeSource(1 << 30), limit=limit).budget.limit == nbytes


SIZES = ["-1", -1, "lots", "", "4 XB", "1e9", 2**63, "9" * 400, True, [1], b"4"]
SIZES += ["1.5", "0.5 B", "\u0663GiB", "9" * 5000, Decimal("1.5")]
SIZES.append(pytest.param(10**5000, id="a giant"))
SHARES = ["-1%", "%", "101%", "\u0668%", 1.5, -0.1, float("nan"), float("inf")]
SHARES += [np.float32(1.5), Fraction(3, 2)]


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


def test_free_memory_is_refused_too_while_what_is_in_use_is_over_the_limit(policy):
    pool = Pool(FakeSource(1 << 30), policy)
    kept = [pool.acquire(1000) for _ in range(3)]
    size = kept[0].nbytes
    kept.pop()  # the last one dropped would be the next one handed out
    pool.budget.set(2 * size)
    with pytest.raises(OutOfMemoryError, match=f"limit of {2 * size:,} B") as refusal:
        pool.acquire(1000)
    error = refusal.value
    assert (error.asked, error.limit, error.allocated) == (1000, 2 * size, 2 * size)
    assert error.reserved == pool.budget.reserved >= error.allocated
    kept.pop()
    again = pool.acquire(1000)
    with pytest.raises(OutOfMemoryError):
        pool.acquire(1)
    assert (pool.stats().allocated, pool.stats().refusals) == (2 * size, 2)
    pool.budget.set(None)
    pool.acquire(1000)
    del again


def test_free_memory_over_a_new_limit_goes_back(policy):
    source = FakeSource(1 << 30)
    pool = Pool(source, policy)
    blocks = [pool.acquire(n * MIB) for n in (40, 41, 42)]
    del blocks[1:]
    pool.stats()
    pool.state.synchronize()  # under "async" it is in use until its work is done
    pool.budget.set(81 * MIB)
    assert sum(source.lent.values()) == pool.budget.reserved <= 81 * MIB
    pool.budget.set(MIB)
    assert pool.stats().reserved == 40 * MIB
    del blocks
    pool.acquire(MIB)
    assert sum(source.lent.values()) <= MIB


@pytest.mark.usefixtures("unlimited")
def test_one_limit_holds_over_the_kinds_of_a_device():
    assert memory.pool("cpu").budget is memory.pool("cpu", "host").budget
    memory.set_limit("2 GiB", "cpu", "pinned")
    assert memory.get_limit("cpu") == memory.get_limit("cpu", "host") == 2 << 30


@pytest.mark.usefixtures("unlimited")
def test_the_limit_of_the_host_pool_refuses_arrays_and_names_the_way_out():
    memory.reclaim()
    memory.set_limit(memory.reserved("cpu") + 32 * MIB, "cpu")
    with pytest.raises(OutOfMemoryError, match="set_limit"):
        xdev.empty(64 * MIB, dtype=xdev.uint8, device="cpu")
    assert xdev.empty(16 * MIB, dtype=xdev.uint8, device="cpu").nbytes == 16 * MIB


def test_a_limit_and_a_device_the_wrong_way_round_are_refused():
    with pytest.raises(ConfigurationError, match="no device is called '80%'"):
        memory.set_limit("cpu", "80%")
    with pytest.raises(ConfigurationError, match="limit='cpu' is not valid"):
        memory.set_limit("cpu")
    assert memory.get_limit("cpu") is None


GIB = 1 << 30
V2, V1, NONE = "memory.max", "memory.limit_in_bytes", 9223372036854771712
NESTED = {f"a/b/c/{V2}": "max", f"a/b/{V2}": 8 * GIB, f"a/{V2}": 2 * GIB}
SYSTEMS = {
    "v2, in a container: its own cgroup is the top": ("0::/\n", {V2: 4 * GIB}, 4 * GIB),
    "v2, nested": ("0::/a/b\n", {**NESTED, f"a/{V2}": 16 * GIB}, 8 * GIB),
    "v2, nested, the outer one is less": ("0::/a/b/c\n", NESTED, 2 * GIB),
    "v2, outside of what is visible": ("0::/../other\n", {V2: 6 * GIB}, 6 * GIB),
    "v1, in a container that sees the host's path": (
        "5:memory:/docker/7\n3:cpu,cpuacct:/docker/7\n",
        {f"memory/{V1}": 5 * GIB},
        5 * GIB,
    ),
    "both, memory under v1": (
        "5:memory:/a\n1:name=systemd:/a\n0::/a\n",
        {f"memory/a/{V1}": 7 * GIB, f"memory/{V1}": NONE},
        7 * GIB,
    ),
    "other controllers only": ("3:cpu:/a\n", {f"memory/a/{V1}": GIB}, MACHINE),
    "no cgroups": ("", {}, MACHINE),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_total_is_the_least_limit_that_holds_for_this_process(cgroups, name):
    membership, limits, total = SYSTEMS[name]
    assert cgroups(membership, limits) == total


def test_a_share_set_by_hand_is_too(cgroups):
    cgroups("5:memory:/a\n", {f"memory/a/{V1}": GIB})
    try:
        memory.set_limit("50%", "cpu")
        assert memory.get_limit("cpu") == GIB // 2
    finally:
        memory.set_limit(None, "cpu")
