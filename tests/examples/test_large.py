"""The example that needs workers, run as its readers run it."""

from pathlib import Path

import pytest

pytest.importorskip("distributed")  # tests/distributed/test_cluster.py has its sum
PROGRAM = Path(__file__).parents[2] / "docs" / "examples" / "large.py"


@pytest.mark.soak
def test_large_shows_its_progress_and_what_the_workers_needed(python):
    done = python(PROGRAM, 600)

    assert done.returncode == 0, done.stderr
    assert "100% Completed" in done.stdout
    (area,) = (line for line in done.stdout.splitlines() if line.startswith("area"))
    assert float(area.split()[1]) == pytest.approx(1.51, abs=0.03)
    assert done.stdout.count("at most") >= 1
