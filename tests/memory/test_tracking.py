"""Who made what: lines of live blocks, history, snapshot."""

import inspect

import numpy as np
import pytest

import xdev
from xdev import memory


def here():
    return inspect.currentframe().f_back.f_lineno


def test_live_blocks_are_named_by_the_line_that_made_them():
    with memory.track():
        kept = xdev.empty(10, device="cpu")
        line = here() - 1
        gone = xdev.empty(20, device="cpu")
        del gone
        pooled = xdev.zeros(200_000, device="cpu")
        other = here() - 1
        items = memory.outstanding("cpu")
        assert [item.nbytes for item in items] == [1_600_000, 128]
        assert str(items[0]).startswith(f"{__file__}:{other}: ")
        assert str(items[1]).startswith(f"{__file__}:{line}: ")
        assert items[1].frames[0] != items[1].where
        assert all(item.age >= 0 for item in items)
        del kept, pooled
        assert memory.outstanding("cpu") == []


def test_a_block_that_goes_round_is_named_by_its_last_maker():
    xdev.empty(100_000, device="cpu")
    with memory.track():
        first = xdev.empty(100_000, device="cpu")
        del first
        second = xdev.empty(100_000, device="cpu")
        line = here() - 1
        (item,) = memory.outstanding("cpu")
        assert item.where == f"{__file__}:{line}"
        memory.free(second)
        assert memory.outstanding("cpu") == []


def test_tracking_nests_and_forgets_when_it_ends():
    with memory.track():
        with memory.track():
            x = xdev.empty(10, device="cpu")
        assert len(memory.outstanding("cpu")) == 1
    assert memory.outstanding("cpu") == []
    del x


def test_fifty_planted_leaks_are_all_found_and_none_invented():
    leaks, source = [], "".join(f"leak(xdev.empty({n + 1}))\n" for n in range(50))
    with memory.track(), xdev.use_device("cpu"):
        for n in range(200):
            xdev.empty(n + 1)
        names = {"xdev": xdev, "leak": leaks.append}
        exec(compile(source, "planted.py", "exec"), names)  # noqa: S102 - lines we know
        found = {item.where for item in memory.outstanding("cpu")}
    assert found == {f"planted.py:{n + 1}" for n in range(50)}


def test_the_snapshot_is_pytorchs_dictionary():
    memory.reclaim()
    memory.record_history(max_entries=50)
    try:
        x = memory.host_array((50 << 20,), np.dtype("u1"))
        line = here() - 1
        y = memory.host_array((60 << 20,), np.dtype("u1"))
        del y
        found = memory.snapshot("cpu", "host")
    finally:
        memory.record_history(enabled=False)
    actions = [event["action"] for event in found["device_traces"][0]]
    grow = ["segment_alloc", "alloc"]
    assert actions == [*grow, *grow, "free_completed"]
    event = found["device_traces"][0][1]
    assert event["size"] == 50 << 20
    assert {"filename": __file__, "line": line} in [
        {"filename": f["filename"], "line": f["line"]} for f in event["frames"]
    ]
    for segment in found["segments"]:
        assert sum(b["size"] for b in segment["blocks"]) == segment["total_size"]
    active = [
        block
        for segment in found["segments"]
        for block in segment["blocks"]
        if block["state"] == "active_allocated"
    ]
    assert sum(block["size"] for block in active) == memory.allocated("cpu", "host")
    assert memory.snapshot("cpu", "host")["device_traces"] == [[]]
    del x


def test_a_history_of_nothing_is_refused():
    with pytest.raises(ValueError, match="max_entries=0"):
        memory.record_history(max_entries=0)
