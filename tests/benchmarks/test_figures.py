"""Figures in README.md and docs are those of the records that they name."""

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import figures  # noqa: E402 - the folder is no installed package

# Texts in which a figure may be an aim, or of a version before.
AIMS = {"design.md"}
CODE = re.compile(r"^```.*?^```|`[^`\n]*`|<!--.*?-->", re.DOTALL | re.MULTILINE)
ULPS = re.compile(r"^\| ulp \|.*?\n\n", re.DOTALL | re.MULTILINE)  # tests find them
MEASURED = re.compile(r"\d ?(?:ns|µs|μs|ms|[MGT]B/s|times)\b|^\|.*\d\.\d")

RECORD = {
    "program": {
        "rows": [
            {"name": "one", "kind": "call", "samples": [1e-6, 2e-6, 9e-6]},
            {"name": "one", "kind": "device", "n": 1000, "samples": [3e-6]},
            {"name": "other", "samples": [5e-7], "share": 0.75, "cost": 1.25e-7},
        ],
        "means": {"x, y": 1.25},
    }
}


@pytest.fixture
def record(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    path = tmp_path / "benchmarks" / "results" / "a-b.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(RECORD))
    return "benchmarks/results/a-b.json"


@pytest.mark.parametrize("page", figures.pages(), ids=lambda page: page.name)
def test_every_marked_figure_is_its_records(page):
    text = page.read_text(encoding="utf-8")
    assert figures.corrected(text) == text


@pytest.mark.parametrize("page", figures.pages(), ids=lambda page: page.name)
def test_every_measured_figure_is_marked(page):
    if page.name in AIMS:
        return
    text = page.read_text(encoding="utf-8")
    for mark in reversed(list(figures.MARK.finditer(text))):
        text = text[: mark.start()] + text[mark.end() :]
    text = ULPS.sub("", CODE.sub("", text))
    assert [line for line in text.splitlines() if MEASURED.search(line)] == []


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("9 µs <!-- program: one;\n  kind=call -->", "2 µs"),
        ("1 TB/s <!-- program: one; kind=device; bytes=12 -->", "0.004 TB/s"),
        ("1 times <!-- program: one; kind=call over other -->", "4 times"),
        ("1% <!-- program: other; show=share -->", "75%"),
        ("1 ms <!-- program: other; show=cost -->", "125 ns"),
        ("9 <!-- program: /means/x, y -->", "1.25"),
    ],
)
def test_a_wrong_figure_is_corrected(record, wrong, right):
    text = f"As {record} has it, {wrong} and 7 µs more."
    comment = wrong[wrong.index("<") :]
    assert figures.corrected(text) == (
        f"As {record} has it, {right} {comment} and 7 µs more."
    )


@pytest.mark.parametrize("row", ["one", "none", "other; n=1"])
def test_a_mark_of_no_row_or_of_several_is_an_error(record, row):
    with pytest.raises(KeyError, match="rows"):
        figures.corrected(f"{record}: 1 µs <!-- program: {row} -->")
