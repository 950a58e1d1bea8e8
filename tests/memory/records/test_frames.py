"""Call stacks: the first line outside the libraries is found, however deep."""

import inspect
from pathlib import Path

import numpy as np
import pytest

from xdev.memory import tracking as frames

FILE = str(Path(np.__path__[0]) / "deep.py")  # as if it were NumPy's
SOURCE = """
def inside(levels):
    return inside(levels - 1) if levels else stack(1)
"""


@pytest.mark.parametrize("levels", [0, 3, 7, 8, 30])
def test_the_maker_is_the_first_line_outside_the_libraries(levels):
    names = {"stack": frames.stack}
    exec(compile(SOURCE, FILE, "exec"), names)  # noqa: S102 - lines we know

    found = names["inside"](levels)
    line = inspect.currentframe().f_lineno - 1

    assert frames.origin(found) == f"{__file__}:{line}"
    files = [file for file, _, _ in frames.Places().of(found)]
    assert files[: levels + 1] == [FILE] * (levels + 1)
    assert len(files) == max(frames.DEPTH, levels + 2)


def test_a_stack_of_libraries_alone_is_named_by_its_innermost_line():
    places = [(FILE, 3, "inside"), (FILE, 5, "outside")]
    assert frames.maker(places) == f"{FILE}:3"


def test_code_at_the_address_of_another_is_no_other_place():
    places = frames.Places()
    for k in range(500):
        code = compile("pass", f"file{k}", "exec")
        ((file, _, _),) = places.of([code, 0])
        assert file == f"file{k}"
