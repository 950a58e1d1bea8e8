"""A function's digest follows all that it computes, its compiler too, and no more."""

import functools
import importlib.util
import math
import sys
import types

import numba
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from xdev.compile.digests import digest, environment

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


def test_it_follows_what_is_read_of_a_users_module_and_a_closure(load):
    function = load()
    before = digest(function)

    load.constants.unused = 2
    assert digest(function) == before
    load.constants.G = 1.62
    another = digest(function)
    function.__closure__[0].cell_contents = 4.0

    assert len({before, another, digest(function)}) == 3


def test_a_function_without_source_has_none():
    namespace = {}
    exec("def f(x): return x + 1", namespace)  # noqa: S102

    assert digest(namespace["f"]) is None


def recursive(x):
    return x if x < 1 else again(x - 1)


def again(x):
    return recursive(x)


def compiled(x):
    return x * 2.0


def test_functions_that_call_one_another_have_one():
    assert digest(recursive) == digest(recursive) is not None
    assert digest(recursive) != digest(again)


class Wrapped:
    def __init__(self, function):
        self.function = function


@pytest.fixture
def scale(monkeypatch):
    """Return the digest of a function that reads a value."""

    def function(x):
        return x * VALUE  # noqa: F821

    def found(value, *within):
        monkeypatch.setitem(globals(), "VALUE", value)
        return digest(function, *within)

    return found


def test_a_value_stands_for_the_function_within(scale):
    def within(value):
        return value.function if isinstance(value, Wrapped) else value

    wrapped = Wrapped(compiled), Wrapped(again)
    assert {scale(value) for value in wrapped} == {None}
    found = {scale(value, within) for value in wrapped}
    assert len(found - {None}) == 2


NANS = [np.uint64((0x7FF8 << 48) + k).view("f8") for k in range(2)]


@pytest.mark.parametrize(
    "values",
    [
        (math.nan, -math.nan),
        (complex(0, math.nan), complex(0, -math.nan)),
        (*NANS, *map(float, NANS)),
        ((0.0,), (-0.0,), (math.nan,), (-math.nan,)),
        (frozenset({1.0}), frozenset({2.0})),
        (np.zeros((2, 3)), np.zeros((2, 3), order="F")),
        (np.zeros(2, "f4,i4"), np.zeros(2, "i4,f4")),
        (np.dtype([("a", "f8")]), np.dtype([("b", "f8")])),
        (np.dtype("f8"), np.dtype(">f8")),
        (int, float, np.float32, np.dtype("f4"), numba.float32, math.floor),
        (2.0, np.float64(2), np.float32(2), 2, True, "2", b"2", None, ...),
        tuple(
            numba.njit(**options)(compiled)
            for options in ({}, {"fastmath": True}, {"error_model": "numpy"})
        ),
        (numba.njit(compiled), numba.njit(again)),
    ],
)
def test_what_looks_alike_is_told_apart(scale, values):
    found = {scale(value) for value in values}

    assert len(found - {None}) == len(values)


def test_a_function_compiled_again_is_the_same(scale):
    assert scale(numba.njit(compiled)) == scale(numba.njit(compiled)) is not None


class OfNumpy(np.float64):
    pass


@pytest.mark.parametrize(
    "value",
    [
        *(object(), {"a": 1}, [1.0], np.array([None]), math, OfNumpy, OfNumpy(2)),
        np.ma.array([1.0], mask=[True]),
        np.frompyfunc(recursive, 1, 1),
        numba.vectorize(recursive),
        numba.njit(
            recursive, pipeline_class=type("P", (numba.core.compiler.Compiler,), {})
        ),
        numba.types.Tuple((numba.float32,)),
        functools.partial(recursive, 1),
        functools.wraps(OfNumpy)(functools.partial(recursive, 1)),
    ],
    ids=lambda x: type(x).__name__,
)
def test_what_no_text_tells_in_full_leaves_a_function_without_one(scale, value):
    assert scale(value) is None
    assert scale(open) is not None  # a function of Python's own has a name


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


# The settings that compilers had.


@pytest.mark.parametrize(
    "change",
    [
        *(("setenv", "NUMBA_OPT", "0"), ("setenv", "NUMBA_BOUNDSCHECK", "1")),
        *(("setenv", "NUMBA_DEBUGINFO", "1"), ("setenv", "NUMBA_ENABLE_AVX", "0")),
        *(("setenv", f"NUMBA_{kind}_VECTORIZE", "0") for kind in ("LOOP", "SLP")),
        ("setenv", "NUMBA_DISABLE_INTEL_SVML", "1"),
        *(("setenv", "CUDA_HOME", "/else"), ("setenv", "NUMBA_FORCE_CUDA_CC", "8.0")),
        *(
            ("setattr", numba.config, f"{option}", 2)
            for option in ("OPT", "BOUNDSCHECK")
        ),
        ("setattr", numba.config, "DEBUGINFO_DEFAULT", 2),
        ("chdir", "with a file"),
    ],
    ids=str,
)
def test_code_is_of_the_settings(monkeypatch, tmp_path, change):
    """Of the environment's, of those that a program makes, and of Numba's file."""
    before = environment()
    folder = tmp_path / "with a file"
    folder.mkdir()
    (folder / ".numba_config.yaml").write_text("opt: 0")
    monkeypatch.chdir(tmp_path)
    assert environment() == before
    how, *arguments = change
    getattr(monkeypatch, how)(*arguments)

    assert environment() != before


def test_code_is_for_any_number_of_threads(monkeypatch):
    before = environment()
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/elsewhere")

    assert environment() == before


# What copies of functions keep alive: what their code names, and nothing else.

HOLDING = """
import gc, math, weakref
import numpy as np
import xdev

@xdev.vectorize
def twice(a):
    return 2 * a

@xdev.vectorize
def f(a, b):
    return twice(a) + b * 2.0625 + math.sin(a)

@xdev.kernel
def k(i, a, o):
    o[i] = twice(a[i])

@xdev.guvectorize("(n)->()")
def g(x, o):
    total = 0.0
    for v in x:
        total += v
    o[0] = total

x = np.ones(1000)
kept, o = weakref.ref(x), np.empty_like(x)
f(x, x, out=o)
k[x.size](x, o)
g(x)
del x, o
gc.collect()
print(kept() is None)
"""


def test_no_array_of_the_users_module_is_kept(tmp_path, run):
    for _ in range(2):  # compiled, and kept on disk
        assert run(HOLDING, XDEV_CACHE_DIR=tmp_path) == "True\n"
