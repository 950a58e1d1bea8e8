"""A record's page: it is made of the JSON alone, as those that are kept show."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import page  # noqa: E402 - the folder is no installed package


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
