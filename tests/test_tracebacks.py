"""A traceback shows the user's lines and one of xdev's; ``XDEV_DEBUG=1`` shows all."""

import re
from pathlib import Path

import pytest

import xdev as xp

PACKAGE = Path(xp.__file__).parent
CALLS = {
    "a ufunc": "xp.add(np.ones(3), [1, 2, 3])",
    "a function": "xp.concat([np.ones(3), 'text'])",
    "creation": "xp.zeros(3, device='gpu')",
    "linear algebra": "xp.linalg.cholesky(-np.eye(2))",
    "a transfer": "xp.to_device(np.ones(3), 'abacus')",
    "memory": "xp.memory.set_limit('lots')",
    "a compiled ufunc": "xp.vectorize(lambda x: x.missing)(np.ones(3))",
    "an assertion": "xp.testing.assert_allclose(np.ones(3), np.zeros(3))",
}
IMPORTS = "import numpy as np\nimport xdev as xp\n"


@pytest.fixture
def run(python, tmp_path):
    """Run a program that fails; return the frames it shows, and its last line."""

    def fails(source, **variables):
        program = tmp_path / "program.py"
        program.write_text(IMPORTS + source)
        done = python(program, **variables)
        assert done.returncode == 1
        files = re.findall(r'^  File "([^"]+)", line \d+', done.stderr, re.MULTILINE)
        return [mark(file) for file in files], done.stderr

    return fails


def mark(file):
    """Say whose a file is."""
    ours = file.startswith((str(PACKAGE), "xdev/"))
    return "xdev" if ours else Path(file).name


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_error_shows_the_users_lines_and_one_of_xdev(call, run):
    frames, text = run(f"def work():\n    return {call}\n\nwork()\n")

    head, *parts = text.split("Traceback (most recent call last):")
    assert head == ""
    last = re.findall(r'File "([^"]+)"', parts[-1])
    assert [mark(file) for file in last] == ["program.py", "program.py", "xdev"]
    for part in parts[:-1]:  # causes
        files = [mark(file) for file in re.findall(r'File "([^"]+)"', part)]
        assert files.count("xdev") <= 1
    assert frames
    assert re.search(r"^[\w.]+Error: ", text, re.MULTILINE)


def test_debug_shows_every_frame(run):
    call = CALLS["a ufunc"]
    few, _ = run(call)
    every, _ = run(call, XDEV_DEBUG="1")
    assert (few.count("xdev"), every.count("xdev") > 2) == (1, True)


def test_a_users_function_that_xdev_calls_is_shown(run):
    frames, _ = run("xp.timing.timeit(lambda: 1 / 0)\n")
    assert frames == ["program.py", "xdev", "program.py"]


def test_an_error_that_is_not_ours_is_as_it_was(run):
    _, text = run("import json\njson.loads('{')\n")
    assert text.count("decoder.py") == 2


def test_causes_contexts_and_notes_are_kept(run):
    source = (
        "try:\n    xp.zeros(3, device='gpu')\n"
        "except ValueError as error:\n"
        "    other = KeyError('mine')\n    other.add_note('look here')\n"
        "    raise other from error\n"
    )
    frames, text = run(source)
    assert frames == ["program.py", "xdev", "program.py"]
    assert "ConfigurationError: no device is called 'gpu'" in text
    assert "direct cause" in text
    assert text.endswith("KeyError: 'mine'\nlook here\n")


def test_groups_are_filtered_too(run):
    source = (
        "errors = []\n"
        "try:\n    xp.add(np.ones(3), [1, 2])\n"
        "except TypeError as error:\n    errors.append(error)\n"
        "raise ExceptionGroup('two', [*errors, OSError()])\n"
    )
    _, text = run(source)
    assert len(re.findall(r'File "[^"]*xdev/', text)) == 1


def test_the_error_itself_keeps_its_frames(run):
    source = (
        "import sys\n"
        "try:\n    xp.add(np.ones(3), [1, 2, 3])\n"
        "except TypeError as error:\n"
        "    whole, found = error.__traceback__, error\n"
        "sys.excepthook(type(found), found, whole)\n"
        "print(found.__traceback__ is whole, whole.tb_next.tb_next is not None)\n"
        "print(*sys.exc_info(), file=sys.stderr)\nsys.exit(1)\n"
    )
    frames, text = run(source)
    assert frames == ["program.py", "xdev"]
    assert text.endswith("None None None\n")


def test_a_hook_that_the_user_set_stays_and_gets_everything(python):
    source = (
        "import sys\nsys.excepthook = lambda *_: print('mine')\n"
        "import xdev\nxdev.zeros(3, device='gpu')\n"
    )
    done = python("-c", source)
    assert (done.stdout, done.stderr) == ("mine\n", "")


def test_an_invalid_setting_is_told_in_few_lines_where_the_import_reads_it(run):
    frames, text = run("", XDEV_NATIVE="perhaps")
    assert frames == ["program.py", "xdev"]
    assert text.splitlines()[-1].endswith("use one of 1, true, on, 0, false, off")


def test_an_invalid_debug_does_not_hide_the_error(run):
    _, text = run("xp.zeros(3, device='gpu')\n", XDEV_DEBUG="perhaps")
    assert "Error: " in text
    assert "Error in sys.excepthook" not in text


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
    assert (shown.count(f"{PACKAGE.name}/") == 1) == (debug == "0")
    assert ("hidden" in shown) == (debug == "0")
    assert f"{program}:3" in shown
    assert "x2 is not an array but list" in shown
