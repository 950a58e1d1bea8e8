"""Workloads and models of other pools, and what the default policy must hold."""

import importlib
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
MIB = 1 << 20


def module(name):
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


workloads, fragmentation = module("workloads"), module("fragmentation")


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("largest", "most"), [(4, 1.05), (64, 1.20), (1024, 1.60)])
def test_split_holds_little_more_than_what_is_in_use(largest, most, seed):
    events = workloads.random_allocations(10_000, largest * MIB, seed)
    held = fragmentation.POOLS["xdev split"](events, 80 << 30).peak
    assert held <= most * workloads.peak_live(events)
    assert held <= fragmentation.POOLS["model of PyTorch"](events, 80 << 30).peak
