"""Statements: what the standard library's ``timeit`` accepts, and its variables."""

import timeit
from itertools import repeat

import pytest

from xdev.timing.sampling import Loop


def clock():
    return 0.0


def run(statement, setup="pass", namespace=None, rounds=3):
    """Return the variables after the loop."""
    loop = Loop(statement, setup, {} if namespace is None else namespace)
    return loop(repeat(None, rounds), clock, clock)[2]


def test_setup_and_statement_share_variables():
    assert run("x += 1", "x = 1")["x"] == 4


def test_the_clock_is_read_around_the_rounds_alone():
    order = []
    names = {"order": order}
    loop = Loop("order.append('call')", "order.append('setup')", names)

    def reading(name):
        return lambda: order.append(name) or name

    begin, end, _ = loop(repeat(None, 2), reading("begin"), reading("end"))

    assert order == ["setup", "begin", "call", "call", "end"]
    assert (begin, end) == ("begin", "end")


def test_globals_are_the_namespaces_own():
    names = {"x": 5}
    run("global y\ny = x", namespace=names)
    assert names["y"] == 5


def test_strings_of_several_lines_stay_as_they_are():
    """The standard library's, which is pasted into a template, is indented."""
    text = run('x = """a\nb"""')["x"]
    assert text == "a\nb"


@pytest.mark.parametrize(
    "source", ["", "pass", "# nothing", "x = 1; y = 2", "if 1:\n  x = 1"]
)
def test_what_the_standard_library_accepts(source):
    timeit.Timer(source or "pass").timeit(1)
    run(source)
    run("pass", source)


def test_names_of_globals_are_those_in_the_source():
    names = {"x": 1, "y": 2, "z": 3}
    loop = Loop("a = [x for _ in range(3)]", "b = lambda: y", names)
    assert sorted(loop.globals_named()) == [1, 2]
