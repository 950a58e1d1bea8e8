"""The compiled part: built where a compiler is, and done without where none is."""

import importlib.util
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from running import python

from xdev import native

ROOT = Path(__file__).parents[2]
SOURCES = list(Path(native.__file__).parent.glob("*.pyx"))
PROGRAM = """
import numpy as np, xdev
from xdev import native
f = xdev.vectorize(lambda x, y: x + y)
x = np.arange(5, dtype="f4")
for _ in range(3):
    out = np.zeros(5, "f4")
    assert f(x, x, out=out) is out
    assert out.tolist() == f(x, x).tolist() == [0, 2, 4, 6, 8]
print(native.STATE)
"""


def wheel(folder, **environment):
    words = "-m", "hatchling", "build", "-t", "wheel", "-d", folder
    ran = python(*words, cwd=ROOT, **environment)
    assert ran.returncode == 0, ran.stderr
    (made,) = folder.glob("*.whl")
    with zipfile.ZipFile(made) as files:
        return made, files.namelist(), ran.stderr


@pytest.mark.skipif(not shutil.which("cc"), reason="no compiler to build with")
def test_a_wheel_has_the_tier_where_there_is_a_compiler(tmp_path):
    made, names, said = wheel(tmp_path, CFLAGS="-O0")  # in half the time
    tag = sys.implementation.cache_tag.removeprefix("cpython-")
    libraries = {Path(name).name.split(".")[0] for name in names if tag in name}
    assert libraries == {path.stem for path in SOURCES}
    assert "none-any" not in made.name
    assert "left out" not in said
    assert "pytest_xdev.py" in names


def test_a_wheel_goes_without_where_there_is_none(tmp_path):
    made, names, said = wheel(tmp_path, PATH=tmp_path, CC="")
    assert made.name.endswith("none-any.whl")
    assert not [name for name in names if name.endswith(".so")]
    assert "its compiled part is left out" in said


def test_a_machine_with_a_compiler_has_built_it():
    modules = [f"xdev.native.{path.stem}" for path in SOURCES]
    built = None not in map(importlib.util.find_spec, modules)
    assert built or not shutil.which("cc"), "run: python hatch_build.py"


@pytest.mark.parametrize(
    ("value", "state"), [("1", "compiled"), ("0", "not used: XDEV_NATIVE=0")]
)
def test_it_is_switched_off_by_a_setting(python, value, state):
    ran = python("-c", PROGRAM, XDEV_NATIVE=value)
    absent = native.STATE.startswith("not built")
    assert ran.stdout.strip() == (native.STATE if absent and value == "1" else state)
