"""The house as its pages and tables show it: every file, every law's test."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
LAWS = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
LAWS = LAWS.partition("\n## Thirty laws\n")[2]
SOURCES = {".py", ".pyx", ".cu", ".cuh", ".h"}
#: Files that a recipe tells a reader to write.
TO_WRITE = {"benchmarks/NAME.py", "facade/metal.py", "transfer/metal.py"}


def test_every_file_of_the_package_has_a_line():
    package = ROOT / "xdev"
    files = {
        str(path.relative_to(package))
        for path in package.rglob("*")
        if path.suffix in SOURCES and "__pycache__" not in path.parts
    }
    table = PAGE.partition("\n## Files\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `([\w/.]+)` \| \S", table, re.MULTILINE)

    assert sorted(listed) == sorted(files)


def test_every_file_that_the_pages_name_is_there():
    named = set(re.findall(r"[\w/]+\.(?:pyx?|cuh?|toml)\b", PAGE + LAWS)) - TO_WRITE

    assert len(named) > 100
    assert [
        name
        for name in sorted(named)
        if not (ROOT / name).exists() and not (ROOT / "xdev" / name).exists()
    ] == []


def test_every_law_has_a_test_that_is_there():
    tests = re.findall(r"`(tests/[\w/]+\.py)::([\w:]+)`", LAWS)

    assert len(tests) >= 30
    assert [
        (file, name)
        for file, name in tests
        if not (ROOT / file).exists()
        or not re.search(rf"\b{name.partition('::')[0]}\b", (ROOT / file).read_text())
    ] == []


def test_the_table_of_the_conformance_suite_gives_each_id_once_with_a_reason():
    table = tomllib.loads((ROOT / "tests" / "conformance.toml").read_text())

    listed = [(g["device"], each) for g in table["fails"] for each in g["ids"]]
    assert len(set(listed)) == len(listed)
    assert {device for device, _ in listed} == {"cpu", "cuda"}
    assert all(len(group["reason"]) > 20 and group["ids"] for group in table["fails"])
