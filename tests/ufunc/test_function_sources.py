"""Functions are computed by their sources: where these are, and what is without."""

import doctest
import io
import linecache
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from running import called, without_source

import xdev

MEAN = "def mean(x, y):\n    return (x + y) // 2\n"
LARGE = np.array([200, 100], "B")
PROGRAM = f"""
import numpy as np, xdev
@xdev.vectorize
{MEAN}
x = np.array([200, 100], "B")
print(mean(x, x).tolist())
"""


@pytest.mark.parametrize("types", ["BB", "bb", "Hi", "Bf", "Ll", "L?", "??"])
def test_without_source_integers_that_would_be_wider_are_refused(device, types):
    mean = xdev.vectorize(without_source(MEAN, "mean"))
    words = r"mean.*no source .*<nowhere>:1.*a file.*3\.13.*int64.*signatures"
    for _ in range(2):
        with pytest.raises(TypeError, match=words):
            called(device, mean, *(np.ones(3, t) for t in types))


@pytest.mark.parametrize("types", ["dd", "ff", "fd", "ll", "l?", "ld", "DD"])
def test_without_source_others_and_signatures_are_computed(device, types):
    x, y = (np.array([3, 1], t) for t in types)
    product = xdev.vectorize(without_source("def f(x, y): return x * y * 2"))
    found = called(device, product, x, y)
    np.testing.assert_array_equal(found, x.real.astype(int) * y * 2)
    mean = xdev.vectorize(["uint8(uint8, uint8)"])(without_source(MEAN, "mean"))
    assert called(device, mean, LARGE, LARGE).tolist() == [200, 100]


def test_a_function_without_source_is_refused_inside_another():
    inner = xdev.vectorize(without_source(MEAN, "mean"))
    outer = xdev.vectorize(lambda x: inner(x, x) + 1)

    assert outer(np.float32(3)) == 4
    with pytest.raises(TypeError, match=r"mean.*: no source"):
        outer(LARGE)


@pytest.mark.parametrize("options", [["-c"], ["-Wdefault", "-sc"]])
def test_the_source_of_a_command_is_found(python, options):
    assert python(*options, PROGRAM, "an argument").stdout == "[72, 100]\n"


def test_standard_input_has_no_source_before_python_3_13():
    ran = subprocess.run(
        [sys.executable], input=PROGRAM, capture_output=True, text=True, check=False
    )
    if ran.returncode:
        assert "TypeError: mean(uint8, uint8): no source" in ran.stderr
    else:
        assert ran.stdout == "[72, 100]\n"


def test_shells_that_keep_their_lines_have_sources(monkeypatch):
    """IPython, Jupyter and the shell of Python 3.13 do so, under names of their own."""
    name = "<python-input-7>"
    entry = len(MEAN), None, MEAN.splitlines(keepends=True), name
    monkeypatch.setitem(linecache.cache, name, entry)
    scope = {}
    exec(compile(MEAN, name, "exec"), scope)  # noqa: S102

    assert xdev.vectorize(scope["mean"])(LARGE, LARGE).tolist() == [72, 100]


def test_examples_in_docstrings_have_sources():
    example = f"""
    >>> @xdev.vectorize
    {textwrap.indent(MEAN, "    ... ").lstrip()}
    >>> mean(x, x).tolist()
    [72, 100]
    """
    scope = {"xdev": xdev, "x": LARGE}
    parsed = doctest.DocTestParser().get_doctest(example, scope, "example", None, None)
    told = io.StringIO()

    failures, _ = doctest.DocTestRunner().run(parsed, out=told.write)

    assert not failures, told.getvalue()


def test_functions_of_one_line_have_each_its_own_source(device):
    """They differ in the sign of a zero, and in what is inside a tuple."""
    zeros = lambda x: x * 0.0, lambda x: x * -0.0
    tuples = lambda x: (x, (1,))[1][0] * x, lambda x: (x, (1.0,))[1][0] * x
    x = np.array([1, 2], "i2")
    for function in (*zeros, *tuples):
        found = xdev.vectorize(function)(xdev.asarray(x, device=device))

        expected = np.array([function(each) for each in x])
        assert xdev.to_numpy(found).dtype == expected.dtype
        assert xdev.to_numpy(found).tobytes() == expected.tobytes()


def test_an_edited_file_is_not_the_source_of_what_was_loaded_before(tmp_path):
    file = tmp_path / "edited.py"
    text = "def f(x):\n    def inner(y):\n        return y // 7\n    return inner(x)\n"
    scope = {}
    exec(compile(text, str(file), "exec"), scope)  # noqa: S102
    file.write_text(text.replace("7", "9"))

    assert xdev.vectorize(scope["f"])(np.array([63])).tolist() == [9]
