"""A program that was edited gets what it says now, whatever is on disk from before.

All programs run in one process of each kind: before the edit, the same again, after
the edit in the same cache, and after it in an empty one. A quick run has some of every
kind, ``HYPOTHESIS_PROFILE=deep`` all.
"""

import json
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import pytest

RUNNER = """
import importlib, json, os, pathlib, sys
import numpy as np
from xdev import _config
from xdev.compile import loops

compiled = []
real = loops.load_or_compile

def load_or_compile(digest, parts, name, make, *rest):
    def counted():
        compiled.append(name)
        return make()

    return real(digest, parts, name, counted, *rest)

loops.load_or_compile = load_or_compile
x, found = np.array([0.3, 2.6]), {}
for case in sorted(os.listdir(sys.argv[1])):
    own, sys.path[0] = set(sys.modules), os.path.join(sys.argv[1], case)
    cache = pathlib.Path(sys.argv[2], case)  # two programs may have the same code
    _config.cache_dir = lambda: cache
    before = len(compiled)
    try:
        result = importlib.import_module("program").f(x).tobytes().hex()
    except Exception as error:
        result = repr(error)
    found[case] = result, len(compiled) - before
    for name in set(sys.modules) - own:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(sys.argv[1]):
            del sys.modules[name]
print(json.dumps(found))
"""
HEAD = """
import functools, math
import numpy as np
import numba
from numba import njit
from numba.extending import overload, register_jitable
import xdev
from xdev import vectorize
"""
KERNEL = """
@xdev.kernel
def k(i, x, out):
    out[i] = {}

def f(x):
    out = np.empty_like(x)
    k[x.size](x, out)
    return out
"""


class Edit(NamedTuple):
    """A program, one change of it, and whether its code is kept on disk at all."""

    text: str
    old: str = "2.0"
    new: str = "3.0"
    files: Mapping[str, str] = MappingProxyType({})  # beside program
    kept: bool = True


def ufunc(expression, *lines):
    """Return a program whose ufunc computes an expression of x."""
    function = f"@vectorize\ndef f(x):\n    return {expression}\n"
    return HEAD + "\n".join(lines) + "\n" + function


def kernel(expression, *lines):
    """Return a program whose kernel computes an expression of x[i]."""
    return HEAD + "\n".join(lines) + "\n" + KERNEL.format(expression)


def helper(expression, *lines):
    """Return a program whose ufunc calls a compiled function."""
    return ufunc("h(x)", *lines, f"@njit\ndef h(x): return {expression}")


HELPER = "from numba import njit\n@njit\ndef h(x):\n    return x + 2.0\n"
CLOSURE = """
def outer(shift):
    @vectorize
    def f(x):
        return x + shift
    return f

f = outer(2.0)
"""
RECORDS = 'T = np.array([(1.0, 2.0)], [("a", "f8"), ("b", "f8")])'
LAZY = """
def __getattr__(name):
    if name == "SCALE":
        return 2.0
    raise AttributeError(name)
"""
CLASS = """
import sys, types

class Lazy(types.ModuleType):
    SCALE = property(lambda self: 2.0)

sys.modules[__name__].__class__ = Lazy
"""
WRAPPED = "@functools.wraps(math.sin)\ndef h(x):\n    return x + 2.0"
OVERLOADED = """
def h(x):
    return None

@overload(h)
def compiled_h(x):
    return lambda x: x + 2.0
"""
NAMED = "from collections import namedtuple\nP = namedtuple('P', 'a b')(2.0, 3.0)"
LOCALS = "@njit(locals={'y': numba.float32})\ndef h(x):\n    y = x / 3\n"
SIGNED = '@njit("float32(float32)")\ndef h(x): return x / 3'
PACKAGE = {
    "pkg/__init__": "from . import pkg",
    "pkg/pkg": "from pkg import later as pkg",
    "pkg/later": "G = 2.0",
}
PACKAGED = {"pkg/__init__": "from . import h", "pkg/h": HELPER}
OTHERS = {
    "lib": "import other\ndef h(x):\n    return other.g(x)",
    "other": "def g(x):\n    return x + 2.0",
}
INNER = "@vectorize\ndef h(x): return x + 2.0"
LARGE = "G = np.full(10**6, 2.0)", "@njit\ndef h(x): return x + G[1]"
CHAIN = [f"@njit\ndef {n}(x): return {m}(x) * 2" for n, m in ("cd", "bc", "ab")]
# What a value changes is told by the tests of digests.
CASES = {
    "global": Edit(ufunc("x + G", "G = 2.0")),
    "sign_of_nan": Edit(
        ufunc("math.copysign(x, G[0])", "G = (np.float64('nan'),)"), "(np", "(-np"
    ),
    "list": Edit(ufunc("x + G[1]", "G = [1.0, 2.0]"), kept=False),
    "named_tuple": Edit(ufunc("x + P.a", NAMED), kept=False),
    "closure": Edit(HEAD + CLOSURE),
    "lambda_helper": Edit(ufunc("h(x)", "h = njit(lambda x: x + 2.0)")),
    "default": Edit(ufunc("h(x)", "@njit\ndef h(x, y=2.0): return x + y")),
    "nested_helpers": Edit(ufunc("a(x)", *CHAIN, "@njit\ndef d(x): return x + 2.0")),
    "helpers_global": Edit(helper("x + G", "G = 2.0")),
    "helpers_array": Edit(helper("x + G[1]", "G = np.array([1.0, 2.0])")),
    # Numba puts the addresses of such arrays into the code.
    "helpers_strided_array": Edit(
        helper("x + G[1]", "G = np.array([1.0, 0.0, 2.0])[::2]"), kept=False
    ),
    "helpers_large_array": Edit(ufunc("h(x)", *LARGE), kept=False),
    "kernels_large_array": Edit(kernel("h(x[i])", *LARGE), kept=False),
    "helpers_records": Edit(
        helper("x + T[0].a", RECORDS),
        '("a", "f8"), ("b", "f8")',
        '("b", "f8"), ("a", "f8")',
    ),
    "helpers_order": Edit(
        helper("x + (1 if G.flags.c_contiguous else 2)", "G = np.zeros((2, 2))"),
        "(2, 2))",
        "(2, 2), order='F')",
    ),
    "other_file": Edit(ufunc("h(x)", "from lib import h"), files={"lib": HELPER}),
    "module": Edit(ufunc("lib.h(x)", "import lib"), files={"lib": HELPER}),
    "modules_number": Edit(ufunc("x + lib.G", "import lib"), files={"lib": "G = 2.0"}),
    "module_of_its_attributes_name": Edit(
        ufunc("pkg.h.h(x)", "import pkg"), files=PACKAGED
    ),
    "modules_in_modules": Edit(ufunc("pkg.pkg.pkg.G * x", "import pkg"), files=PACKAGE),
    "modules_getattr": Edit(ufunc("x * lib.SCALE", "import lib"), files={"lib": LAZY}),
    "modules_class": Edit(ufunc("x * lib.SCALE", "import lib"), files={"lib": CLASS}),
    "attribute_put_into_a_library": Edit(ufunc("x * math.scale", "math.scale = 2.0")),
    "builtin_hidden": Edit(
        ufunc("abs(x)", "def other(x): return x + 1", "other = njit(other)"),
        "other",
        "abs",
    ),
    "signature": Edit(ufunc("h(x)", SIGNED), "float32(float32)", "float64(float64)"),
    "result_of_a_signature": Edit(
        ufunc("h(x)", SIGNED), "t32(float32)", "t32(float64)"
    ),
    "locals": Edit(
        ufunc("h(x)", f"{LOCALS}    return y"), "numba.float32", "numba.float64"
    ),
    "locals_of_others": Edit(
        ufunc("h(x)", f"{LOCALS}    z = x / 7\n    return y * 2 + z"),
        "y = x / 3\n    z = x / 7\n    return y * 2 + z",
        "z = x / 3\n    y = x / 7\n    return z * 2 + y",
    ),
    "parameters_swapped": Edit(
        ufunc("h(b=x, a=1.0)", "@njit\ndef h(a, b): return a - b"),
        "(a, b): return a - b",
        "(b, a): return b - a",
    ),
    "wraps": Edit(ufunc("h(x)", f"@register_jitable\n{WRAPPED}")),
    "overload": Edit(ufunc("h(x)", OVERLOADED), kept=False),
    "inner_ufunc": Edit(ufunc("h(x)", INNER)),
    "inner_ufunc_of_other_file": Edit(
        ufunc("lib.h(x)", "import lib"),
        files={"lib": f"from xdev import vectorize\n{INNER}"},
    ),
    "kernel": Edit(kernel("x[i] + 2.0")),
    "kernels_global": Edit(kernel("x[i] + G", "G = 2.0")),
    "kernels_helpers_helper": Edit(kernel("lib.h(x[i])", "import lib"), files=OTHERS),
    "kernels_wraps": Edit(kernel("h(x[i])", WRAPPED)),
    "kernels_compiled_helper": Edit(
        kernel("lib.h(x[i])", "import lib"), files={"lib": HELPER}
    ),
}
SAMPLE = (
    *("sign_of_nan", "closure", "other_file", "modules_getattr", "overload"),
    *("kernels_large_array", "kernels_helpers_helper"),
)
DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
PICKED = CASES if DEEP else {name: CASES[name] for name in SAMPLE}


def write(folder, *, edited, cases=PICKED):
    """Write programs, each into a folder of its own."""
    for name, case in cases.items():
        files = {"program": case.text, **case.files}
        texts = {k: v.replace(case.old, case.new) for k, v in files.items()}
        assert texts != files, f"{name} has no {case.old!r}"
        for file, text in (texts if edited else files).items():
            path = folder / name / f"{file}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


@pytest.fixture(scope="module")
def ran(run):
    """Return the bytes that each program computes, and how much it compiled."""
    return lambda *places, **variables: json.loads(run(RUNNER, *places, **variables))


@pytest.fixture(scope="module")
def found(tmp_path_factory, ran):
    """Return what was found by each process."""
    folder = tmp_path_factory.mktemp("edits")
    write(folder / "old", edited=False)
    write(folder / "new", edited=True)
    return {
        "old": ran(folder / "old", folder / "cache"),
        "again": ran(folder / "old", folder / "cache"),
        "new": ran(folder / "new", folder / "cache"),
        "true": ran(folder / "new", folder / "empty"),
    }


@pytest.mark.parametrize("case", PICKED)
def test_an_edit_is_seen_and_nothing_else_is_compiled_again(found, case):
    assert found["old"][case][1] > 0
    assert (found["again"][case][1] == 0) == CASES[case].kept
    assert found["again"][case][0] == found["old"][case][0]

    assert found["true"][case][0] != found["old"][case][0], "the edit changes nothing"
    assert found["new"][case] == found["true"][case]


def test_code_is_of_the_settings_of_its_compiler(tmp_path, ran):
    write(tmp_path / "old", edited=False, cases={"closure": CASES["closure"]})
    settings = [{}, {"NUMBA_OPT": "0"}]
    if DEEP:
        settings += [{"NUMBA_CPU_NAME": "generic"}, {"NUMBA_CPU_FEATURES": ""}]
    for compiled in (1, 0):
        for each in settings:
            found = ran(tmp_path / "old", tmp_path / "cache", **each)
            assert found["closure"][1] == compiled
