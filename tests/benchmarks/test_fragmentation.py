"""Workloads and models of other pools, and what the default policy must hold."""

import pytest

MIB = 1 << 20


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("largest", "most"), [(4, 1.05), (64, 1.20), (1024, 1.60)])
def test_split_holds_little_more_than_what_is_in_use(program, largest, most, seed):
    workloads, pools = program("workloads"), program("fragmentation").POOLS
    events = workloads.random_allocations(10_000, largest * MIB, seed)
    held = pools["xdev split"](events, 80 << 30).peak
    assert held <= most * workloads.peak_live(events)
    assert held <= pools["model of PyTorch"](events, 80 << 30).peak
