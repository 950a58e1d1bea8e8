"""Workloads and models of other pools, and what the default policy must hold."""

import importlib
import json
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
MIB = 1 << 20


def module(name):
    """One of the folder's modules, found as its programs find it."""
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


def test_the_program_writes_a_row_for_each_pool_and_workload(tmp_path, python):
    path, trace = tmp_path / "record.json", tmp_path / "A.csv"
    trace.write_text("id,lower,upper,size\n0,0,3,40000\n1,3,9,50000\n2,1,4,60000\n")
    words = ["--n", "50", "--seeds", "2", "--traces", tmp_path, "--json", path]
    done = python(FOLDER / "fragmentation.py", *words)
    assert done.returncode == 0, done.stderr
    rows = json.loads(path.read_text())["rows"]
    assert len(rows) == 4 * 6
    for row in rows:
        runs = 2 if row["workload"].startswith("random") else 1
        assert len(row["ratios"]) == len(row["allocations"]) == runs
        assert min(row["ratios"]) >= 1
        if row["pool"] == "xdev none":
            assert row["ratios"] == [1] * runs
