"""docs/interop.md: the program of each library runs."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "interop.md"
PROGRAM = re.compile(r"^## ([^\n]+)\n\n```python\n(.*?)```", re.MULTILINE | re.DOTALL)
PROGRAMS = dict(PROGRAM.findall(PAGE.read_text()))
MODULES = {"PyTorch": "torch", "scikit-learn": "sklearn"}


def test_every_section_has_a_program():
    headings = re.findall(r"^## (.+)", PAGE.read_text(), re.MULTILINE)

    assert list(PROGRAMS) == headings


@pytest.mark.parametrize("library", PROGRAMS)
def test_programs_run(imported, python, tmp_path, library):
    name = library.lower().replace("-", "_")
    imported(MODULES.get(library, name))

    program = tmp_path / "program.py"
    program.write_text(PROGRAMS[library])

    done = python(program, XDEV_DEVICE="cpu")

    assert not done.returncode, done.stderr
