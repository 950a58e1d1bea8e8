"""What the module functions say; scopes of peaks that overlap in any order."""

import functools

import pytest
from hypothesis import given, strategies as st
from memory_laws import registered

import xdev
from xdev import memory
from xdev.errors import ConfigurationError

MIB = 1 << 20


def test_the_functions_agree_with_the_pool():
    x = xdev.empty(MIB, dtype=xdev.float32, device="cpu")
    look = memory.pool("cpu").stats()
    assert memory.allocated("cpu", "host") == look.allocated
    assert memory.reserved("cpu", "host") == look.reserved
    assert memory.max_allocated("cpu", "host") == look.peak_allocated
    assert memory.max_reserved("cpu", "host") == look.peak_reserved
    keys = memory.stats("cpu", "host")
    assert keys["allocated_bytes.all.current"] == look.allocated
    assert keys["allocated_bytes.all.peak"] == look.peak_allocated
    assert keys["reserved_bytes.all.current"] == look.reserved
    assert keys["segment.all.current"] == look.segments
    assert keys["allocation.all.allocated"] == look.acquired
    assert keys["allocation.all.current"] == look.live
    for name in ("allocation", "segment", "allocated_bytes", "reserved_bytes"):
        taken, freed = keys[f"{name}.all.allocated"], keys[f"{name}.all.freed"]
        assert taken - freed == keys[f"{name}.all.current"]
    del x


TORCHS = ["allocation", "segment", "active", "inactive_split"]
TORCHS += [f"{name}_bytes" for name in ("allocated", "reserved", *TORCHS[2:])]
TORCHS.append("requested_bytes")


def test_the_keys_are_pytorchs():
    """Those of ``torch.cuda.memory_stats`` that can be told, and a few of our own."""
    torchs = {
        f"{name}.{pool}.{what}"
        for name in TORCHS
        for pool in ("all", "small_pool", "large_pool")
        for what in ("current", "peak", "allocated", "freed")
    }
    keys = set(memory.stats("cpu"))
    ours = {key for key in keys - torchs if not key.startswith("num_")}
    assert ours == {"cached_bytes.all.current", "idle_bytes.all.current"}
    assert {
        "num_alloc_retries",
        "num_device_alloc",
        "num_device_free",
        "num_ooms",
        "num_sync_all_streams",
    } <= keys


def test_reclaim_of_all_devices_returns_what_went_back():
    x = xdev.empty(40 * MIB, dtype=xdev.uint8, device="cpu")
    del x
    before = memory.reserved("cpu")
    freed = memory.reclaim(MIB, "cpu")
    assert freed >= MIB
    assert memory.reserved("cpu") == before - freed
    memory.reclaim()
    assert memory.reclaim() == 0
    for device in (None, "cpu", "fake"):  # a device without a pool too
        with pytest.raises(ValueError, match="-1"):
            memory.reclaim(-1, device)
        named = {"1GiB": "cpu", "fake:1": "fake:1", xdev.Device("fake:1"): "fake:1"}
        for wrong, name in named.items():
            text = (
                f"bytes as an int.*None for all; and a device by name, device='{name}'$"
            )
            with pytest.raises(TypeError, match=text):
                memory.reclaim(wrong, device)


@pytest.mark.parametrize(
    "call",
    [
        memory.allocated,
        memory.reserved,
        memory.max_allocated,
        memory.max_reserved,
        memory.reset_peak,
        memory.stats,
        memory.summary,
        memory.get_limit,
        memory.outstanding,
        memory.snapshot,
        memory.pool,
        functools.partial(memory.set_limit, None),
        functools.partial(memory.reclaim, None),
    ],
)
def test_an_unknown_device_or_kind_is_refused(call):
    with pytest.raises(ConfigurationError, match="no device is called"):
        call("gpu")
    for device, kinds in {"cpu": "'host', 'pinned'", "fake:0": "'device'"}.items():
        with pytest.raises(ConfigurationError, match=rf"no memory of kind.*{kinds}"):
            call(device, "shared")


def test_a_kind_without_a_device_is_of_all_devices():
    assert memory.reclaim(kind="device") >= 0
    with pytest.raises(ConfigurationError, match=r"no memory of kind 'gpu'.*'device'"):
        memory.reclaim(kind="gpu")


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["take", "give", "open", "close", "reset"]),
        st.integers(min_value=1, max_value=99),
    ),
    max_size=40,
)


@given(STEPS)
def test_every_scope_sees_the_peak_of_its_time(steps):
    with registered({}):
        pool = memory.pool("fake")
        live, scopes, closed = [], [], []
        levels, since_reset = [0], 0
        for name, value in steps:
            if name == "take":
                live.append(pool.acquire(value << 10))
            elif name == "give" and live:
                live.pop(value % len(live))
            elif name == "open":
                context = memory.peak("fake")
                scopes.append((context, len(levels) - 1, context.__enter__()))
            elif name == "close" and scopes:
                context, start, scope = scopes.pop(value % len(scopes))
                context.__exit__(None, None, None)
                closed.append((scope, max(levels[start:])))
            elif name == "reset":
                memory.reset_peak("fake")
                since_reset = len(levels) - 1
            levels.append(sum(block.nbytes for block in live))
        assert memory.max_allocated("fake") == max(levels[since_reset:])
        assert pool.stats().acquired_bytes - pool.stats().released_bytes == levels[-1]
        assert [scope.nbytes for scope, _ in closed] == [most for _, most in closed]
        for _, start, scope in scopes:
            assert scope.nbytes == max(levels[start:])


@pytest.mark.usefixtures("no_pools")
def test_a_peak_follows_a_pool_that_is_made_inside_it():
    with memory.peak("fake") as outer:
        with memory.peak("fake") as inner:
            assert inner.nbytes == 0
            memory.pool("fake").acquire(MIB)
        memory.reset_peak("fake")
        memory.pool("fake").acquire(4096)
        with memory.peak("fake") as late:
            memory.pool("fake").acquire(8192)
    assert (outer.nbytes, inner.nbytes, late.nbytes) == (MIB, MIB, 8192)
    assert outer.reserved == 2 * MIB
