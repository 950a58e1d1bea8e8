"""A record's page: it is made of the JSON alone, and leaves nothing out."""

import json
import sys
from pathlib import Path

import pytest

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
    "plain": WHERE
    | {
        "about": "What it is.\n\n    python benchmarks/plain.py [--json FILE]\n\nMore.",
        "ratio": 1.23456,
        "claims": {"cpu": {"over_it": 300 * "far "}},
        "left_out": {
            "peer": "not | installed",
            "cuda:0": {"JAX": "no\nGPU", "Warp": 50 * "far away "},
            "cpu": {},
        },
        "rows": [
            {"name": "a", "samples": [1e-6, 2e-6, 4e-6], "verdict": "slower"},
            {"name": "b | c", "samples": [1e-3], "ratio": 500.0, "interval": [1, 2]},
            {"name": "d", "lost": 17, "ratios": [1.23456, 2.0], "notes": ["it waits"]},
        ],
    },
    "sizes": WHERE
    | {
        "rows": [
            sized(name, n, seconds)
            for n, times in ((10, (1e-6, 2e-6)), (1000, (2e-6, 1e-6)))
            for name, seconds in zip("AB", times, strict=True)
        ],
    },
}


@pytest.fixture
def text(tmp_path):
    record = tmp_path / "2026-01-02-abacus.json"
    record.write_text(json.dumps(RECORDS))
    written = page.write(record, tmp_path / "pages")
    assert written == tmp_path / "pages" / "abacus.md"
    return written.read_text(encoding="utf-8")


def test_it_names_the_machine_the_record_and_the_versions(text):
    assert text.startswith("# Benchmarks on Abacus 9\n")
    assert "`benchmarks/results/2026-01-02-abacus.json`" in text
    assert (
        text.count("2026-01-02, 2 cores, python 3.11, numpy 2.4. Without torch.") == 1
    )


def test_every_row_is_there_with_what_it_says(text):
    flat = text.replace("  ", " ")
    assert (
        "| | lost | ratios | median | shortest to longest | ratio | 95 % | verdict |"
        in flat
    )
    assert "| a | | | 2 µs | 1 µs to 4 µs | | | slower |" in flat
    assert r"| b \| c | | | 1 ms | 1 ms to 1 ms | 500 | 1 to 2 | |" in flat
    assert "| d | 17 | 1.23 to 2 | |" in flat
    assert "- d: it waits\n" in text


def test_what_the_program_says_stands_above_but_not_how_it_is_called(text):
    assert "What it is.\n\nMore." in text
    assert "python benchmarks/plain.py" not in text
    assert "- ratio: 1.23\n" in text
    assert f"- claims cpu over it: {300 * 'far '}\n" in text


def test_who_was_left_out_has_a_line_with_the_reason_however_long(text):
    lines = [line for line in text.splitlines() if line.startswith("- left out")]
    assert lines[:2] == [
        "- left out peer: not | installed",
        "- left out cuda:0 JAX: no GPU",
    ]
    assert lines[2].startswith("- left out cuda:0 Warp: far away far")
    assert lines[2].endswith("…")
    assert len(lines) == 3


def test_what_failed_says_so(text):
    assert "It did not finish: exit status 1." in text


def test_candidates_at_several_sizes_are_drawn(text, tmp_path):
    assert "![x + y over n](abacus-sizes-0.png)" in text
    assert "- B is faster than A from n = 100 on" in text
    data = (tmp_path / "pages" / "abacus-sizes-0.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(list((tmp_path / "pages").iterdir())) == 2


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
