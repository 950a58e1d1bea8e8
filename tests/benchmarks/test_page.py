"""A record's page: it is made of the JSON alone, as those that are kept show."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import page  # noqa: E402 - the folder is no installed package

WHERE = {
    "environment": {
        "date": "2026-01-02T03:04:05+00:00",
        "versions": {"python": "3.11", "numpy": "2.4", "torch": None},
        "processor": "Abacus(R) 9",
        "cores": 2,
        "cuda": None,
    }
}


def sized(candidate, n, seconds):
    name = f"x + y, n = {n}: {candidate}"
    row = {"name": name, "group": "x + y", "candidate": candidate, "n": n}
    return row | {"samples": [seconds, 2 * seconds, 3 * seconds]}


RECORDS = {
    "broken": {"failed": "exit status 1"},
    "sizes": WHERE
    | {
        "left_out": {"peer": "not | installed", "cuda:0": {"JAX": 50 * "far away "}},
        "rows": [
            *(sized("A", 10, 1e-6), sized("B", 10, 2e-6)),
            *(sized("A", 1000, 2e-6), sized("B", 1000, 1e-6)),
        ],
    },
    "long_run": WHERE
    | {
        "device": "cpu",
        "bytes": {
            "reserved": {
                "mean": 2**21,
                "growth an hour": 2**20,
                "standard error": 2**19,
                "flat": True,
            }
        },
        "curve": {"seconds": [0, 60], "reserved": [2**21, 2**21]},
        "rows": [{"name": "sorts", "times": 7, "hazards": 0}],
    },
}


def test_what_failed_was_left_out_or_has_several_sizes_is_there(tmp_path):
    record = tmp_path / "2026-01-02-abacus.json"
    record.write_text(json.dumps(RECORDS))
    written = page.write(record, tmp_path / "pages")

    assert written == tmp_path / "pages" / "abacus.md"
    text = written.read_text(encoding="utf-8")
    assert text.startswith("# Benchmarks on Abacus 9\n")
    assert "2026-01-02, 2 cores, python 3.11, numpy 2.4. Without torch." in text
    assert "It did not finish: exit status 1." in text
    lines = [line for line in text.splitlines() if line.startswith("- left out")]
    assert lines[0] == "- left out peer: not | installed"
    assert lines[1].startswith("- left out cuda:0 JAX: far away far")
    assert lines[1].endswith("…")
    assert "![x + y over n](abacus-sizes-0.png)" in text
    assert "- B is faster than A from n = 100 on" in text
    assert "| reserved | 2.000 MiB | 1 ± 0.5 MiB | yes |" in text
    assert "![memory over time, cpu](abacus-long_run.png)" in text
    for plot in ("abacus-sizes-0.png", "abacus-long_run.png"):
        assert (tmp_path / "pages" / plot).read_bytes().startswith(b"\x89PNG")


def test_pages_of_the_kept_records_are_theirs(tmp_path, monkeypatch):
    """Nobody edited a page, or kept a record without making its page."""
    monkeypatch.setattr(page, "draw", lambda *_: None)  # texts are compared
    for record in sorted((ROOT / "benchmarks" / "results").glob("*.json")):
        if not record.stem.endswith("-bench"):
            page.write(record, tmp_path)
    written = list(tmp_path.glob("*.md"))
    assert written
    for made in written:
        kept = page.PAGES / made.name
        assert kept.read_text(encoding="utf-8") == made.read_text(encoding="utf-8")
