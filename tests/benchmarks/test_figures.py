"""Pages and figures, in README.md and docs, are those of the records they name."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import figures, page as pages  # noqa: E402 - no package

# Texts in which a figure may be an aim, or of a version before.
AIMS = {"design.md"}
CODE = re.compile(r"^```.*?^```|`[^`\n]*`|<!--.*?-->", re.DOTALL | re.MULTILINE)
ULPS = re.compile(r"^\| ulp \|.*?\n\n", re.DOTALL | re.MULTILINE)  # tests find them
MEASURED = re.compile(r"\d ?(?:ns|µs|μs|ms|[MGT]B/s|times)\b|^\|.*\d\.\d")


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


def test_pages_of_the_kept_records_are_theirs(tmp_path, monkeypatch):
    """Nobody edited a page, or kept a record without making its page."""
    monkeypatch.setattr(pages, "draw", lambda *_: None)  # texts are compared
    for record in sorted((ROOT / "benchmarks" / "results").glob("*.json")):
        if not record.stem.endswith("-bench"):
            pages.write(record, tmp_path)
    written = list(tmp_path.glob("*.md"))
    assert written
    for made in written:
        kept = pages.PAGES / made.name
        assert kept.read_text(encoding="utf-8") == made.read_text(encoding="utf-8")
