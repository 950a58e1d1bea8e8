"""A traceback shows the user's lines and one of xdev's; ``XDEV_DEBUG=1`` shows all."""

import re
from pathlib import Path

import pytest

import xdev as xp

PACKAGE = Path(xp.__file__).parent
CALLS = {
    "a ufunc": "xp.add(np.ones(3), [1, 2, 3])",
    "a function": "xp.concat([np.ones(3), 'text'])",
    "a transfer": "xp.to_device(np.ones(3), 'abacus')",
    "a compiled ufunc": "xp.vectorize(lambda x: x.missing)(np.ones(3))",
    "an assertion": "xp.testing.assert_allclose(np.ones(3), np.zeros(3))",
}
#: Whose cause is a library's wording of the same.
REWORDED = {
    "an out of another data type": "xp.add(x, x, out=np.zeros(3, int))",
    "an out of another data type of a ufunc": "f(x, x, out=np.zeros(3, int))",
    "an out of another shape": "f(x, x, out=np.zeros(4))",
    "a list as out of a ufunc": "f(x, x, out=[0, 0, 0])",
    "shapes that do not broadcast": "f(x, np.ones(4))",
    "a device as data type": "xp.zeros(3, 'fake')",
    "no data type": "xp.zeros(3, dtype='float23')",
    "a read-only array": "k[3](np.broadcast_to(x, 3))",
}
FUNCTIONS = """
x = np.ones(3)
@xp.vectorize
def f(x, y):
    return x + y
@xp.kernel
def k(i, x):
    x[i] = 0
"""
IMPORTS = "import numpy as np\nimport xdev as xp\n"
CAUSES = """
try:
    xp.zeros(3, device='gpu')
except ValueError as error:
    other = KeyError('mine')
    other.add_note('look here')
    raise other from error
"""
KEPT = """
import sys
try:
    xp.add(np.ones(3), [1, 2, 3])
except TypeError as error:
    whole, found = error.__traceback__, error
sys.excepthook(type(found), found, whole)
assert found.__traceback__ is whole and whole.tb_next.tb_next
sys.exit('well')
"""
INDEX = """
class Index:
    def __index__(self):
        raise TypeError("mine")
xp.empty(Index())
"""
HANDLED = "try:\n    1 / 0\nexcept ArithmeticError:\n    xp.zeros(3, 'float23')\n"
MINE, JSON = "program.py", ["__init__.py", "decoder.py", "decoder.py"]
#: By what it is: a program, the frames that it shows, and how its text ends.
SOURCES = {
    "a user's function that xdev calls": (
        *("xp.timing.timeit(lambda: 1 / 0)\n", [MINE, "xdev", MINE]),
        "ZeroDivisionError: division by zero\n",
    ),
    "no error of ours": ("import json\njson.loads('{')\n", [MINE, *JSON], ""),
    "causes and notes": (CAUSES, [MINE, "xdev", MINE], "KeyError: 'mine'\nlook here\n"),
    "causes in a user's method": (INDEX, ["xdev", MINE, MINE, "xdev"], ""),
    "causes, with what was handled": (HANDLED, [MINE, "xdev", MINE, "xdev"], ""),
    "the error itself keeps its frames": (KEPT, [MINE, "xdev"], "well\n"),
}


@pytest.fixture
def run(python, tmp_path):
    def fails(source, **variables):
        program = tmp_path / "program.py"
        program.write_text(IMPORTS + source)
        done = python(program, **variables)
        assert done.returncode == 1
        return frames_of(done.stderr), done.stderr

    return fails


def frames_of(text):
    """Return whose the files of a traceback are."""
    files = re.findall(r'^[ |]+File "([^"]+)", line \d+', text, re.MULTILINE)
    ours = str(PACKAGE), "xdev/"
    return ["xdev" if file.startswith(ours) else Path(file).name for file in files]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_error_shows_the_users_lines_and_one_of_xdev(call, run):
    _, text = run(f"def work():\n    return {call}\n\nwork()\n")

    head, *causes, last = map(frames_of, text.split("Traceback (most recent call"))
    assert head == []
    assert last == ["program.py", "program.py", "xdev"]
    assert all(cause.count("xdev") <= 1 for cause in causes)
    assert re.search(r"^[\w.]+Error: ", text, re.MULTILINE)


def test_debug_shows_every_frame_and_an_invalid_one_hides_no_error(run):
    call = CALLS["a ufunc"]
    assert run(call, XDEV_DEBUG="1")[0].count("xdev") > 2
    _, text = run(call, XDEV_DEBUG="perhaps")
    assert "Error: " in text
    assert "Error in sys.excepthook" not in text


@pytest.mark.parametrize("call", REWORDED.values(), ids=REWORDED)
def test_what_an_error_rewords_is_left_out(call, run):
    frames, text = run(FUNCTIONS + call)
    assert frames == [MINE, "xdev"]
    assert text.count("Traceback") == 1


@pytest.mark.parametrize("what", SOURCES)
def test_what_is_kept(what, run):
    source, frames, end = SOURCES[what]
    shown, text = run(source)
    assert shown == frames
    assert text.endswith(end)
    assert ("direct cause" in text) == what.startswith("causes")


def test_groups_are_filtered_too(run):
    source = (
        "errors = []\n"
        "try:\n    xp.add(np.ones(3), [1, 2])\n"
        "except TypeError as error:\n    errors.append(error)\n"
        "raise ExceptionGroup('two', [*errors, OSError()])\n"
    )
    assert run(source)[0].count("xdev") == 1


def test_a_hook_that_the_user_set_stays_and_gets_everything(python):
    source = (
        "import sys\nsys.excepthook = lambda *_: print('mine')\n"
        "import xdev\nxdev.zeros(3, device='gpu')\n"
    )
    done = python("-c", source)
    assert (done.stdout, done.stderr) == ("mine\n", "")


@pytest.mark.parametrize("debug", ["0", "1"])
def test_in_ipython_too(debug, python, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(IMPORTS + CALLS["a ufunc"])
    done = python(
        *("-m", "IPython", "--colors=nocolor", program),
        IPYTHONDIR=str(tmp_path),
        XDEV_DEBUG=debug,
    )
    shown = done.stdout + done.stderr
    frames = [line for line in shown.splitlines() if f"/{PACKAGE.name}/" in line]
    assert (len(frames) == 1) == (debug == "0")
    assert ("hidden" in shown) == (debug == "0")
    assert f"{program}:3" in shown
    assert "x2 is not an array but list" in shown
