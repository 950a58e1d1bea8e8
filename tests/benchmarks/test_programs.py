"""The benchmark programs' frame: options, records and the command that runs all."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def python(*words):
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_program_writes_its_samples_and_the_environment(tmp_path):
    path = tmp_path / "record.json"

    done = python("benchmarks/import_cost.py", "--repeat", 2, "--json", path)

    assert done.returncode == 0, done.stderr
    record = json.loads(path.read_text())
    assert {row["name"] for row in record["rows"]} == {"numpy", "xdev"}
    assert all(len(row["samples"]) == 2 for row in record["rows"])
    assert record["environment"]["versions"]["numpy"]


def test_a_program_that_is_not_there_is_named_beside_those_that_are():
    done = python("-m", "benchmarks", "import_coast")
    assert done.returncode == 2
    assert "import_coast" in done.stdout
    assert "import_cost" in done.stdout


def test_every_program_tells_its_options():
    shared = {"__init__", "__main__", "allocator_models", "calls", "record", "workloads"}
    programs = [p for p in (ROOT / "benchmarks").glob("*.py") if p.stem not in shared]
    assert programs
    for program in programs:
        done = python(program, "--help")
        assert done.returncode == 0, done.stderr
        assert "--json" in done.stdout


def test_what_tracking_is_measured_against_is_cut_from_the_pool_as_it_is(tmp_path):
    path = tmp_path / "record.json"

    done = python("benchmarks/tracking.py", "--repeat=1", "--number=10", "--json", path)

    assert done.returncode == 0, done.stderr
    assert any("off" in row["name"] for row in json.loads(path.read_text())["rows"])
