"""The program that runs array-api-tests: what it finds, on a suite of four tests."""

import tomllib
from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "tools" / "conformance.py"
CONFTEST = """
def pytest_addoption(parser):
    parser.addoption("--max-examples", type=int)
    parser.addoption("--disable-deadline", action="store_true")
"""
SUITE = """
import os
import pytest

def test_environment():
    assert os.environ["ARRAY_API_TESTS_MODULE"] == "xdev"
    assert os.environ["ARRAY_API_TESTS_VERSION"] == "2025.12"
    assert os.environ["XDEV_DEVICE"] == "cpu"

@pytest.mark.parametrize("case", ["x is -0 -> \\N{GREEK SMALL LETTER PI}", "[1.5]"])
def test_fails(case):
    assert not case

class TestRoom:
    def test_passes(self, request):
        assert request.config.getoption("max_examples") == 30
"""
FAILING = [r"test_a.py::test_fails[x is -0 -> \u03c0]", "test_a.py::test_fails[[1.5]]"]


def test_a_true_table_is_agreed_with_and_a_wrong_one_shown(tmp_path, python):
    room, table = tmp_path / "array_api_tests", tmp_path / "table.toml"
    room.mkdir()  # a checkout, as array-api-tests is laid out
    files = {"conftest.py": CONFTEST, "array_api_tests/__init__.py": ""}
    for name, text in (files | {"array_api_tests/test_a.py": SUITE}).items():
        (tmp_path / name).write_text(text)

    def run(*ids):
        listed = ", ".join(f"'{each}'" for each in ids)  # literal: no escapes
        groups = ("cpu", listed), ("cuda", "'test_b.py::test'")
        text = "[[fails]]\ndevice = '{}'\nreason = 'none'\nids = [{}]\n"
        table.write_text("".join(text.format(*group) for group in groups))
        options = "--device=cpu", "--examples=30", f"--table={table}"
        done = python(PROGRAM, tmp_path, *options)
        return done.returncode, done.stdout

    status, text = run(*FAILING)
    assert status == 0, text
    assert "cpu: 2 of 4 fail, 2 are known to\nas the table has it" in text

    passing, gone = "test_a.py::TestRoom::test_passes", "test_a.py::test_gone"
    status, text = run(FAILING[0], passing, gone)
    assert status == 1
    assert f"{FAILING[1]}\n  fails, and is not in the table" in text
    assert f"{passing}\n  is in the table, and passes" in text
    assert f"{gone}\n  is in the table, not in the suite" in text
    assert FAILING[0] not in text.partition("known to")[2]

    (tmp_path / "conftest.py").write_text("raise ImportError")
    assert run()[0] == 2  # it does not run: no agreement


def test_the_table_gives_each_id_once_with_a_reason():
    table = tomllib.loads(Path(__file__).with_name("conformance.toml").read_text())

    listed = [(g["device"], each) for g in table["fails"] for each in g["ids"]]
    assert len(set(listed)) == len(listed)
    assert {device for device, _ in listed} == {"cpu", "cuda"}
    assert all(len(group["reason"]) > 20 and group["ids"] for group in table["fails"])
