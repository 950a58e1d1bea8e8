"""The benchmark programs' frame: options, records and the command that runs all."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def record(printed, tmp_path):
    def run(program, *options):
        path = tmp_path / "record.json"
        printed(ROOT / "benchmarks" / program, *options, "--json", path)
        return json.loads(path.read_text())

    return run


def test_a_program_writes_its_samples_and_the_environment(record):
    """Here what tracking is measured against: it is cut from the pool as it is."""
    record = record("tracking.py", "--repeat=1", "--number=10")
    assert any("off" in row["name"] for row in record["rows"])
    assert all(row["samples"] for row in record["rows"])
    assert record["environment"]["versions"]["numpy"]
    assert record["about"].startswith("What")


IN_TURN = """
import contextlib, io, runpy, sys
sys.path[0], *programs = sys.argv[1:]
for program in programs:
    sys.argv, text = [program, "--help"], io.StringIO()
    try:
        with contextlib.redirect_stdout(text):
            runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        assert not end.code, program
    assert "--json" in text.getvalue(), program
"""


def test_every_program_tells_its_options(printed):
    files = (ROOT / "benchmarks").glob("[!_]*.py")
    programs = [p for p in files if 'if __name__ == "__main__":' in p.read_text()]
    assert len(programs) > 20
    printed(IN_TURN, ROOT / "benchmarks", *programs)


@pytest.mark.parametrize("device", ["cpu", "fake"])
def test_a_long_run_does_all_of_its_work_and_nothing_is_wrong(record, device):
    words = f"--device={device}", "--seconds=1", "--every=0.1"
    told = record("long_run.py", *words)
    assert told["hazards"] == 0, told["rows"]
    assert sum(row["times"] > 0 for row in told["rows"]) >= 11
    assert all(told["curve"].values())
    assert told["curve"].keys() - {"seconds"} == told["bytes"].keys()
