"""A function's digest follows all that it computes, and nothing else."""

import functools
import importlib.util
import math
import sys
import types

import numba
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from xdev.compile.digests import digest

PROGRAM = """
import math
import numpy as np
import {module} as constants

SCALE = 2.0
TABLE = np.arange(3.0)
PAIR = (1, 2.0)

def helper(x):
    return x + 1.0

def outer(shift):
    def f(x, y=1.0):
        "Return something."
        inner = lambda a: a * SCALE
        total = helper(math.sin(x)) * SCALE + y + shift
        return total + TABLE[0] + PAIR[1] + constants.G

    return f

f = outer(3.0)
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Return what makes the function of a program's text, at some place."""
    module = types.ModuleType("physics_of_users")
    module.G = 9.81
    module.unused = object()
    monkeypatch.setitem(sys.modules, module.__name__, module)
    numbers = iter(range(1000))

    def loaded(text=PROGRAM, name=None):
        name = name or f"program{next(numbers)}"
        path = tmp_path / f"{name}.py"
        path.write_text(text.format(module=module.__name__))
        spec = importlib.util.spec_from_file_location(name, path)
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made.f

    loaded.constants = module
    return loaded


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def helper", "\n\n# a comment\n\ndef helper"),
        ("Return something.", "Return something else."),
        ("SCALE = 2.0", "SCALE = 2.0; OTHER = 5"),
        ("    return x + 1.0", "    return (x +\n        1.0)"),
    ],
)
def test_what_changes_nothing_leaves_it(load, old, new):
    assert digest(load(PROGRAM.replace(old, new))) == digest(load()) is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SCALE = 2.0", "SCALE = 3.0"),
        ("SCALE = 2.0", "SCALE = 2"),
        ("SCALE = 2.0", "SCALE = np.float32(2)"),
        ("SCALE = 2.0", "SCALE = True"),
        ("arange(3.0)", "arange(1.0, 4.0)"),
        ("arange(3.0)", "arange(3)"),
        ("arange(3.0)", "arange(3.0)[::-1]"),
        ("(1, 2.0)", "(1, -2.0)"),
        ("(1, 2.0)", "(1.0, 2.0)"),
        ("x + 1.0", "x + 2.0"),
        ("x + 1.0", "x - 1.0"),
        ("helper(math", "abs(math"),
        ("math.sin", "math.cos"),
        ("math.sin", "np.sin"),
        ("y=1.0", "y=1.5"),
        ("y + shift", "y - shift"),
        ("outer(3.0)", "outer(4.0)"),
        ("outer(3.0)", "outer(3)"),
        ("a * SCALE", "a / SCALE"),
        ("TABLE[0]", "TABLE[1]"),
        ("import math", "import cmath as math"),
    ],
)
def test_what_changes_the_result_changes_it(load, old, new):
    assert old in PROGRAM
    changed = digest(load(PROGRAM.replace(old, new)))

    assert changed is not None
    assert changed != digest(load())


def test_it_follows_the_attributes_of_a_users_module_that_are_read(load):
    function = load()
    before = digest(function)

    load.constants.unused = 2
    assert digest(function) == before
    load.constants.G = 1.62
    assert digest(function) != before


def test_it_follows_a_closure_that_changes(load):
    function = load()
    before = digest(function)

    function.__closure__[0].cell_contents = 4.0

    assert digest(function) != before


@pytest.mark.parametrize("value", [object(), {"a": 1}, [1.0], np.array([None]), open])
def test_what_no_text_tells_leaves_a_function_without_one(load, value):
    function = load()
    function.__globals__["SCALE"] = value
    told = value is open  # a function of Python's own has a name

    assert (digest(function) is None) != told


def test_a_function_without_source_has_none():
    namespace = {}
    exec("def f(x): return x + 1", namespace)  # noqa: S102

    assert digest(namespace["f"]) is None


def recursive(x):
    return x if x < 1 else again(x - 1)


def again(x):
    return recursive(x)


def test_functions_that_call_one_another_have_one():
    assert digest(recursive) == digest(recursive) is not None
    assert digest(recursive) != digest(again)


def compiled(x):
    return x * 2.0


def test_compiled_functions_count_by_their_code_and_options(monkeypatch):
    def function(x):
        return inner(x)  # noqa: F821

    found = set()
    for options in ({}, {"fastmath": True}, {"error_model": "numpy"}):
        monkeypatch.setitem(globals(), "inner", numba.njit(**options)(compiled))
        found.add(digest(function))
        monkeypatch.setitem(globals(), "inner", numba.njit(**options)(compiled))
        found.add(digest(function))
    monkeypatch.setitem(globals(), "inner", numba.njit(again))
    found.add(digest(function))

    assert len(found) == 4
    assert None not in found


def test_types_and_dtypes_count(monkeypatch):
    def function(x):
        return kind(x)  # noqa: F821

    found = set()
    for value in (int, float, np.float32, np.dtype("f4"), numba.float32, math.floor):
        monkeypatch.setitem(globals(), "kind", value)
        found.add(digest(function))

    assert len(found) == 6
    assert None not in found


def test_a_value_stands_for_the_function_within():
    class Wrapped:
        def __init__(self, function):
            self.function = function

    first, second = Wrapped(compiled), Wrapped(again)

    def function(x):
        return first(x)

    def other(x):
        return second(x)

    def within(value):
        return value.function if isinstance(value, Wrapped) else value

    assert digest(function) is None
    assert digest(function, within) is not None
    assert digest(function, within) != digest(other, within)


def scale(x):
    return x * VALUE  # noqa: F821


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (math.nan, -math.nan),
        (complex(0, math.nan), complex(0, -math.nan)),
        (np.uint64(0x7FF8 << 48).view("f8"), np.uint64((0x7FF8 << 48) + 1).view("f8")),
        (
            float(np.uint64(0x7FF8 << 48).view("f8")),
            float(np.uint64((0x7FF8 << 48) + 1).view("f8")),
        ),
        ((0.0,), (-0.0,)),
        (frozenset({1.0}), frozenset({2.0})),
        (np.zeros((2, 3)), np.zeros((2, 3), order="F")),
        (np.zeros(2, "f4,i4"), np.zeros(2, "i4,f4")),
        (np.dtype([("a", "f8")]), np.dtype([("b", "f8")])),
        (np.dtype("f8"), np.dtype(">f8")),
    ],
)
def test_what_looks_alike_is_told_apart(monkeypatch, one, other):
    found = set()
    for value in (one, other):
        monkeypatch.setitem(globals(), "VALUE", value)
        found.add(digest(scale))

    assert len(found) == 2
    assert None not in found


class OfNumpy(np.float64):
    pass


@pytest.mark.parametrize(
    "value",
    [
        OfNumpy(2),
        np.ma.array([1.0], mask=[True]),
        np.frompyfunc(recursive, 1, 1),
        numba.vectorize(recursive),
        numba.njit(
            recursive, pipeline_class=type("P", (numba.core.compiler.Compiler,), {})
        ),
        numba.types.Tuple((numba.float32,)),
        math,
        OfNumpy,
        functools.partial(recursive, 1),
        functools.wraps(OfNumpy)(functools.partial(recursive, 1)),
    ],
    ids=lambda x: type(x).__name__,
)
def test_what_has_more_than_is_told_leaves_a_function_without_one(monkeypatch, value):
    monkeypatch.setitem(globals(), "VALUE", value)

    assert digest(scale) is None


NUMBERS = st.one_of(st.integers(), st.floats(), st.complex_numbers(), st.booleans())


@settings(max_examples=100, deadline=None)
@given(NUMBERS | st.tuples(NUMBERS, NUMBERS), NUMBERS | st.tuples(NUMBERS, NUMBERS))
def test_constants_are_told_apart_to_the_last_bit(one, other):
    def named(value):
        def function(x):
            return x + value

        return digest(function)

    same = repr(one) == repr(other)  # which tells -0.0, 1, 1.0 and True apart
    assert (named(one) == named(other)) == same
