"""The example that needs workers, run as its readers run it."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("distributed")
PROGRAM = Path(__file__).parents[2] / "docs" / "examples" / "large.py"


def test_large_shows_its_progress_and_what_the_workers_needed():
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "600"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "100% Completed" in done.stdout
    (area,) = (line for line in done.stdout.splitlines() if line.startswith("area"))
    assert float(area.split()[1]) == pytest.approx(1.51, abs=0.03)
    assert done.stdout.count("at most") >= 1
