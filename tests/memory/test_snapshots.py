"""The record of what happened, in PyTorch's format."""

import threading
from contextlib import ExitStack
from itertools import zip_longest

import numpy as np
import pytest
from memory_laws import Slow, here, registered
from running import pickled

import xdev
from xdev import memory
from xdev.errors import OutOfMemoryError
from xdev.memory import Pool
from xdev.testing import FakeSource

MIB = 1 << 20
# As PyTorch's documentation of `torch.cuda.memory._snapshot` and its viewer have them.
SIZES = "total_size", "allocated_size", "active_size", "requested_size"
SEGMENT = dict.fromkeys(("address", "stream", "device", *SIZES), int)
SEGMENT |= {"segment_type": str, "segment_pool_id": tuple, "is_expandable": bool}
SEGMENT |= {"frames": list, "blocks": list}
BLOCK = {"address": int, "size": int, "requested_size": int}
BLOCK |= {"state": str, "frames": list}
FRAME = {"filename": str, "line": int, "name": str}
EVENT = {"action": str, "frames": list}
EVENT |= dict.fromkeys(("addr", "size", "stream", "time_us"), int)
STATES = {"active_allocated", "active_pending_free", "inactive"}
ACTIONS = {"alloc", "free_requested", "free_completed"}
ACTIONS |= {"segment_alloc", "segment_free", "oom"}


@pytest.fixture
def record():
    memory.record_history()
    yield
    memory.record_history(enabled=False)


def has(item, keys):
    return all(type(item[key]) is kind for key, kind in keys.items())


def assert_is_pytorchs(found):
    """Assert what PyTorch's viewer and its `_memory_viz` rely on."""
    for segment in found["segments"]:
        assert has(segment, SEGMENT)
        assert segment["segment_type"] in {"small", "large"}
        at, sums = segment["address"], dict.fromkeys(STATES, 0)
        for block in segment["blocks"]:
            assert has(block, BLOCK)
            assert block["address"] == at  # the viewer counts on from the start
            assert block["requested_size"] <= block["size"]
            assert all(has(frame, FRAME) for frame in block["frames"])
            sums[block["state"]] += block["size"]
            at += block["size"]
        assert at == segment["address"] + segment["total_size"]
        assert segment["allocated_size"] == sums["active_allocated"]
        assert segment["active_size"] == sum(sums.values()) - sums["inactive"]
    for trace in found["device_traces"]:
        for event, following in zip_longest(trace, trace[1:]):
            assert event["action"] in ACTIONS
            absent = "addr" if event["action"] == "oom" else "device_free"
            assert absent not in event
            assert has({"addr": 0, **event}, EVENT)
            if event["action"] == "free_requested":
                assert following == event | {"action": "free_completed"}
        times = [event["time_us"] for event in trace]
        assert times == sorted(times)
    assert pickled(found) == found


@pytest.fixture
def fresh():
    """Return a function that lets a new pool be the fake device's; with its source."""
    with ExitStack() as stack:

        def make(source, limit=None):
            pool = Pool(source, limit=limit)
            stack.enter_context(registered({(xdev.Device("fake"), "device"): pool}))
            return pool

        yield make


def places(frames):
    return [(frame["filename"], frame["line"]) for frame in frames]


@pytest.mark.usefixtures("record")
def test_events_are_in_order_and_name_their_lines():
    memory.reclaim()
    x = memory.host_array((50 * MIB,), np.dtype("u1"))
    line = here() - 1
    y = memory.host_array((60 * MIB,), np.dtype("u1"))
    del y
    memory.reclaim()
    found = memory.snapshot("cpu", "host")
    assert_is_pytorchs(found)
    (trace,) = found["device_traces"]
    grow, free = ["segment_alloc", "alloc"], ["free_requested", "free_completed"]
    actions = [event["action"] for event in trace]
    assert actions[-7:] == [*grow, *grow, *free, "segment_free"]
    event = trace[-6]
    assert (event["size"], event["thread"]) == (50 * MIB, threading.get_ident())
    assert (__file__, line) in places(event["frames"])
    blocks = [block for s in found["segments"] for block in s["blocks"]]
    [block] = [block for block in blocks if block["address"] == x.ctypes.data]
    assert (__file__, line) in places(block["frames"])
    assert block["requested_size"] == 50 * MIB


def test_without_a_record_the_blocks_alone_are_shown():
    with memory.track():
        x = xdev.empty(100, device="cpu")
        line = here() - 1
        found = memory.snapshot("cpu", "host")
    assert_is_pytorchs(found)
    assert (found["device_traces"], found["pools"]) == ([[]], ["cpu"])
    blocks = [block for s in found["segments"] for block in s["blocks"]]
    [block] = [block for block in blocks if block["address"] == x.ctypes.data]
    assert (__file__, line) in places(block["frames"])  # the tracker knows it


@pytest.mark.usefixtures("record")
def test_a_block_that_waits_for_a_stream_is_pending(fresh):
    pool = fresh(Slow())
    block = pool.acquire(MIB)
    pool.state.mark(block.chunk, (7,))
    del block
    stats = pool.stats()  # it is neither in use nor free
    assert (stats.live, stats.allocated, stats.waiting_bytes) == (0, 0, MIB)
    found = memory.snapshot("fake")
    assert_is_pytorchs(found)
    [segment] = found["segments"]
    states = [b["state"] for b in segment["blocks"]]
    assert states.count("active_pending_free") == 1
    assert "active_allocated" not in states
    assert segment["active_size"] == MIB
    assert pool.reclaim() == segment["total_size"]  # after the one wait that it needs
    assert (pool.stats().waiting, pool.stats().syncs) == (0, 1)


@pytest.mark.usefixtures("record")
def test_a_refusal_is_an_event(fresh):
    pool = fresh(FakeSource(64 * MIB), limit=10 * MIB)
    block = pool.acquire(4 * MIB)
    with pytest.raises(OutOfMemoryError):
        pool.acquire(8 * MIB)
    line = here() - 1
    found = memory.snapshot("fake")
    assert_is_pytorchs(found)
    event = found["device_traces"][0][-1]
    assert (event["action"], event["size"]) == ("oom", 8 * MIB)
    assert event["device_free"] == 10 * MIB - pool.stats().reserved
    assert (__file__, line) in places(event["frames"])
    assert block.nbytes == 4 * MIB


def test_a_record_keeps_the_last_events_and_a_second_one_starts_afresh():
    memory.record_history(max_entries=3)
    try:
        for _ in range(5):
            memory.pool("fake").acquire(100)
        trace = memory.snapshot("fake")["device_traces"][0]
        memory.record_history()
        assert memory.snapshot("fake")["device_traces"] == [[]]
    finally:
        memory.record_history(enabled=False)
    actions = [event["action"] for event in trace]
    assert actions[-3:] == ["alloc", "free_requested", "free_completed"]
    assert actions.count("alloc") + actions.count("free_completed") == 3
    with pytest.raises(ValueError, match="max_entries=0"):
        memory.record_history(max_entries=0)


@pytest.mark.parametrize("entries", [10_000, 40])
def test_a_replay_of_the_record_gives_the_ledgers_numbers(fresh, entries):
    """Back from the blocks at the end, which may be older than what was kept."""
    generator = np.random.default_rng(entries)
    pool = fresh(FakeSource(1 << 30))
    kept = [pool.acquire(n) for n in generator.integers(1, MIB, 20).tolist()]
    memory.record_history(max_entries=entries)
    try:
        memory.reset_peak("fake")
        before = pool.stats()
        for nbytes, gone in generator.integers(1, MIB, (100, 2)).tolist():
            kept[gone % len(kept)] = pool.acquire(nbytes, nbytes % 2 * 0x55)
            assert_is_pytorchs(memory.snapshot("fake"))
        found = memory.snapshot("fake")
    finally:
        memory.record_history(enabled=False)
    blocks = [block for each in found["segments"] for block in each["blocks"]]
    used = [block for block in blocks if block["state"] == "active_allocated"]
    live = {block["address"]: block["size"] for block in used}
    assert live == {block.address: block.nbytes for block in kept}
    look, actions = pool.stats(), []
    most = in_use = sum(live.values())
    assert in_use == look.allocated
    for event in reversed(found["device_traces"][0]):
        actions.append(event["action"])
        if event["action"] == "alloc":
            assert live.pop(event["addr"]) == event["size"]
            assert event["stream"] in (0, 0x55)
        elif event["action"] == "free_completed":
            assert live.setdefault(event["addr"], event["size"]) == event["size"]
        most = max(most, sum(live.values()))
    if entries == 10_000:
        assert sum(live.values()) == before.allocated
        assert most == look.peak_allocated
        assert actions.count("alloc") == look.acquired - before.acquired
        assert actions.count("free_completed") == look.released - before.released
