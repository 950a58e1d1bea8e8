"""Workloads and models of other pools, and what the default policy must hold."""

import importlib
import json
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

FOLDER = Path(__file__).parents[2] / "benchmarks"
MIB = 1 << 20


def module(name):
    """One of the folder's modules, found as its programs find it."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


models, workloads = module("allocator_models"), module("workloads")
fragmentation = module("fragmentation")
RULES = [models.CUPY, models.PYTORCH]


@pytest.mark.parametrize(
    ("seed", "last"),
    [(1, (287_817, 5, 1100)), (2, (493_145, 22, 9542))],
)
def test_numbers_are_those_of_cpp(seed, last):
    """After 1000 rounds, as g++'s library draws them."""
    draw = workloads.Lehmer(seed)
    for _ in range(1000):
        drawn = (1 + draw.below(4 * MIB), draw.below(100), draw.below(10_000))
    assert drawn == last


def test_buffers_that_end_at_a_moment_go_before_others_come(tmp_path):
    path = tmp_path / "A.csv"
    path.write_text("id,lower,upper,size\n7,0,3,4\n8,3,9,5\n9,1,4,6\n")
    events = workloads.minimalloc(path, 10)
    assert events == [(0, 40), (2, 60), (0, 0), (1, 50), (2, 0), (1, 0)]
    assert workloads.peak_live(events) == 110


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: rules.name)
@given(
    steps=st.lists(
        st.integers(min_value=1, max_value=30 * MIB)
        | st.integers(min_value=1, max_value=4096),
        max_size=40,
    )
)
def test_a_models_pieces_never_overlap_and_all_go_back(rules, steps):
    model, live = models.Model(rules, 200 * MIB), []
    for nbytes in steps:
        if nbytes % 3 == 0 and live:
            model.release(live.pop(nbytes % len(live)))
            continue
        try:
            live.append(model.acquire(nbytes))
        except MemoryError:
            assert model.reserved + rules.grown(nbytes) > 200 * MIB
            continue
        assert live[-1].nbytes >= nbytes
    spans = sorted((piece.address, piece.nbytes) for piece in live)
    for (start, nbytes), (after, _) in pairwise(spans):
        assert start + nbytes <= after
    assert sum(piece.nbytes for piece in live) <= model.reserved <= model.peak
    for piece in live:
        model.release(piece)
    model.give_back()
    assert model.reserved == 0
    assert model.allocations == model.frees


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
