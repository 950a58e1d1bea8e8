"""Code on disk is found for what a program says now, and for nothing else.

The programs run in one process of each kind: before an edit, the same again, and after
the edit with the same cache. NumPy's `vectorize` tells what they must compute.
"""

import json

import numpy as np
import pytest

RUNNER = """
import importlib, json, os, sys
import numpy as np

root, found = sys.argv[1], {}
sys.path.insert(0, sys.argv[2])
for case in sorted(os.listdir(root)):
    sys.path.insert(0, os.path.join(root, case))
    before = set(sys.modules)
    found[case] = importlib.import_module("program").f(np.array([0.3, 2.6])).tolist()
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(root):
            del sys.modules[name]
    del sys.path[0]
print(json.dumps([found, "numba" in sys.modules]))
"""
OURS = "from xdev import kernel, vectorize\n"
PLAIN = """
from numpy import vectorize

class kernel:
    def __init__(self, function):
        self.function = function

    def __getitem__(self, n):
        return lambda *args: [self.function(i, *args) for i in range(n)]
"""
HEAD = """
import functools, math
import numpy as np
from decorators import kernel, vectorize
"""
PROGRAM = """
SCALE = 2.0
PAIR = (1, 2.0)

def helper(x):
    return x + 1.0

def outer(shift):
    @vectorize
    def f(x, y=1.0):
        "Return something."
        total = helper(math.sin(x)) * SCALE + y + shift
        return total + PAIR[1]

    return f

f = outer(3.0)
"""
KERNEL = """
@kernel
def k(i, x, out):
    out[i] = {}

def f(x):
    out = np.empty_like(x)
    k[x.size](x, out)
    return out
"""


def ufunc(expression, *lines):
    function = f"@vectorize\ndef f(x):\n    return {expression}\n"
    return "\n".join((*lines, function))


def kernel(expression, *lines):
    return "\n".join((*lines, KERNEL.format(expression)))


HELPER = "def h(x):\n    return x + 2.0\n"
INNER = f"from decorators import vectorize\n@vectorize\n{HELPER}"
LAZY = """
def __getattr__(name):
    if name == "SCALE":
        return 2.0
    raise AttributeError(name)
"""
PACKAGE = {
    "pkg/__init__": "from . import pkg",
    "pkg/pkg": "from pkg import later as pkg",
    "pkg/later": "G = 2.0",
}
OTHERS = {
    "lib": "import other\ndef h(x):\n    return other.g(x)",
    "other": "def g(x):\n    return x + 2.0",
}
OVERLOADED = f"""
from numba.extending import overload
{HELPER}
@overload(h)
def compiled_h(x):
    return lambda x: x + 2.0
"""
NUMBAS = f"import numba\n@numba.njit\n{HELPER}"
NAMED = "from collections import namedtuple\nP = namedtuple('P', 'a b')(2.0, 3.0)"
SIGN = ufunc("math.copysign(x, G[0])", "G = (np.float64('nan'),)")
# A program, what is edited there and what for, and the files beside it.
EDITS = {
    "constant": (PROGRAM, "x + 1.0", "x + 2.0", {}),
    "operator": (PROGRAM, "x + 1.0", "x - 1.0", {}),
    "called": (PROGRAM, "helper(math", "abs(math", {}),
    "library": (PROGRAM, "math.sin", "math.cos", {}),
    "librarys module": (PROGRAM, "math.sin", "np.sqrt", {}),
    "default": (PROGRAM, "y=1.0", "y=1.5", {}),
    "closure": (PROGRAM, "outer(3.0)", "outer(4.0)", {}),
    "global": (PROGRAM, "SCALE = 2.0", "SCALE = 3.0", {}),
    "globals type": (ufunc("x + 1 / G", "G = 3"), "G = 3", "G = np.float32(3)", {}),
    "tuple": (PROGRAM, "(1, 2.0)", "(1, -2.0)", {}),
    "sign of nan": (SIGN, "(np", "(-np", {}),
    "other file": (ufunc("h(x)", "from lib import h"), "2.0", "3.0", {"lib": HELPER}),
    "modules function": (ufunc("lib.h(x)", "import lib"), "2.0", "3.0", OTHERS),
    "modules number": (ufunc("x + lib.G", "import lib"), "2.", "3.", {"lib": "G = 2."}),
    "modules getattr": (
        ufunc("x * lib.SCALE", "import lib"), "2.0", "3.0", {"lib": LAZY}
    ),
    "modules modules": (
        ufunc("pkg.pkg.pkg.G * x", "import pkg"), "2.0", "3.0", PACKAGE
    ),
    "put into a library": (ufunc("x * math.scale", "math.scale = 2."), "2.", "3.", {}),
    "builtin hidden": (
        ufunc("abs(x)", "def other(x): return x + 1"), "def other", "def abs", {}
    ),
    "wraps": (ufunc("h(x)", "@functools.wraps(math.sin)", HELPER), "2.0", "3.0", {}),
    "inner ufunc": (ufunc("lib.h(x)", "import lib"), "2.0", "3.0", {"lib": INNER}),
    "kernel": (kernel("x[i] + 2.0"), "2.0", "3.0", {}),
    "kernels global": (kernel("x[i] + G", "G = 2.0"), "2.0", "3.0", {}),
}  # fmt: skip
# Numba is loaded for what kernels call, and compiles nothing.
HELPED = {
    "helper": (kernel("h(x[i])", HELPER), "2.0", "3.0", {}),
    "ufunc": (kernel("lib.h(x[i])", "import lib"), "2.0", "3.0", {"lib": INNER}),
    "helpers helper": (kernel("lib.h(x[i])", "import lib"), "2.0", "3.0", OTHERS),
}
# What no text tells in full is compiled in each process.
UNKEPT = {
    "named tuple": (ufunc("x + P.a", NAMED), "2.0", "3.0", {}),
    "overload": (ufunc("h(x)", OVERLOADED), "2.0", "3.0", {}),
    "numbas": (ufunc("h(x)", NUMBAS), "2.0", "3.0", {}),
    "kernels numbas": (kernel("h(x[i])", NUMBAS), "2.0", "3.0", {}),
    "no source": ("exec('''" + HEAD + ufunc("x + 2.0") + "''')", "2.0", "3.0", {}),
}


def write(folder, cases, *, edited=False, head=HEAD):
    for name, (program, old, new, others) in cases.items():
        for file, text in {"program": head + program, **others}.items():
            assert old in program + "".join(others.values()), name
            path = folder / name / f"{file}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace(old, new) if edited else text)
    return folder


@pytest.fixture
def ran(tmp_path, printed):
    """Return what runs all programs of a folder; it returns results, whether by Numba.

    With ``plain`` it is NumPy that computes.
    """
    for name, text in (("ours", OURS), ("plain", PLAIN)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "decorators.py").write_text(text)

    def results(folder, *, plain=False, **settings):
        places = folder, tmp_path / ("plain" if plain else "ours")
        cache = {"XDEV_CACHE_DIR": tmp_path / "cache"}
        return json.loads(printed(RUNNER, *places, **cache, **settings))

    return results


@pytest.mark.parametrize(
    ("cases", "loaded", "kept"),
    [(EDITS, False, True), (HELPED, True, True), (UNKEPT, True, False)],
    ids=["kept", "helped", "unkept"],
)
def test_an_edit_is_seen_and_nothing_else_is_compiled_again(
    tmp_path, ran, cases, loaded, kept
):
    old = write(tmp_path / "before", cases)
    new = write(tmp_path / "after", cases, edited=True)
    expected = {folder: ran(folder, plain=True)[0] for folder in (old, new)}
    for name in cases:
        assert expected[old][name] != expected[new][name], f"{name}: nothing changed"

    entries = set()
    for folder, loads in ((old, True), (old, loaded), (new, True)):
        found, numba = ran(folder)
        assert numba == loads
        for name, values in found.items():
            np.testing.assert_allclose(values, expected[folder][name], err_msg=name)
        before, entries = entries, set((tmp_path / "cache" / "loops").glob("*"))
        assert (before == entries) == (not kept or (folder == old and before != set()))


def test_what_changes_nothing_compiles_nothing(tmp_path, ran):
    case = {"program": (PROGRAM, "SCALE", "SCALE", {})}
    assert ran(write(tmp_path / "here", case))[1]
    edits = {
        "place": ("def helper", "\n\n# a comment\n\ndef helper"),
        "other global": ("SCALE = 2.0", "SCALE = 2.0; OTHER = 5"),
        "line": ("    return x + 1.0", "    return (x +\n        1.0)"),
    }
    cases = {name: (PROGRAM, *edit, {}) for name, edit in edits.items()}
    threads = {"NUMBA_NUM_THREADS": "1", "NUMBA_CACHE_DIR": "/elsewhere"}

    there = write(tmp_path / "there", cases, edited=True)
    assert not ran(there, **threads)[1]


def test_code_is_of_the_settings_of_its_compiler(tmp_path, ran):
    folder = write(tmp_path / "folder", {"kernel": EDITS["kernel"]})
    for settings in {}, {"NUMBA_OPT": "0"}:
        assert [ran(folder, **settings)[1] for _ in range(2)] == [True, False]


EDITED_MEANWHILE = """
import linecache, pathlib, sys
import numpy as np
import program

path = pathlib.Path(program.__file__)
text = path.read_text()
path.write_text("# edited\\n" + text)
linecache.clearcache()
assert program.f(np.ones(5)).tolist() == [3.0] * 5
path.write_text(text)
assert not [*pathlib.Path(sys.argv[1]).glob("loops/*")]
"""


def test_a_source_that_changed_after_the_import_is_not_kept(tmp_path, printed):
    program = "from xdev import vectorize\n" + ufunc("x + 2.0")
    (tmp_path / "program.py").write_text(program)
    places = {"XDEV_CACHE_DIR": tmp_path / "cache", "PYTHONPATH": tmp_path}

    printed(EDITED_MEANWHILE, tmp_path / "cache", **places)


# What a process that finds its code loads, and keeps alive.

RANDOM = """
import sys
import numpy as np
import xdev

rng = xdev.random.default_rng(7, device="cpu")
chances = [0.1, 0.2, 0.7]
drawn = rng.choice(3, 9, p=chances), rng.choice(3, 2, replace=False, p=chances)
drawn += rng.integers(0, np.arange(1, 10)), rng.normal(size=3)
print(*(x.tobytes().hex() for x in drawn))
print("numba" in sys.modules)
"""
# `gamma` is in no C library by that name: Numba brings what the code calls.
OF_NUMBAS_LIBRARY = """
import math
import numpy as np
import xdev

x = np.linspace(1, 5, 9)
expected = [math.gamma(v) + math.erf(v) for v in x]
function = xdev.vectorize(lambda x: math.gamma(x) + math.erf(x))
assert np.allclose(function(x), expected, rtol=1e-13)
"""
# What copies of functions keep alive: what their code names, and nothing else.
HOLDING = """
import gc, math, weakref
import numpy as np
import xdev

@xdev.vectorize
def f(a, b):
    return a + b * 2.0625 + math.sin(a)

@xdev.kernel
def k(i, a, o):
    o[i] = f(a[i], 1.0)

@xdev.guvectorize("(n)->()")
def g(x, o):
    o[0] = x[0]

x = np.ones(1000)
kept = weakref.ref(x)
f(x, x, out=x)
k[x.size](x, x)
g(x)
del x
gc.collect()
assert kept() is None
"""


@pytest.fixture
def lines(tmp_path, printed):
    places = {"XDEV_CACHE_DIR": tmp_path / "cache", "PYTHONPATH": tmp_path}

    def lines(program):
        (tmp_path / "program.py").write_text(program)
        return printed("import program", **places).splitlines()

    return lines


def test_random_numbers_need_no_numba_the_second_time(lines):
    drawn, compiled = lines(RANDOM)

    assert compiled == "True"
    assert lines(RANDOM) == [drawn, "False"]


@pytest.mark.parametrize("program", [OF_NUMBAS_LIBRARY, HOLDING])
def test_what_is_found_again_computes_and_holds_the_same(lines, program):
    for _ in range(2):
        assert lines(program) == []
