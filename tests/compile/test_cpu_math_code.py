"""What becomes of mathematics in a loop: SIMD code, the same for every layout."""

import cmath
import math
import re

import numba
import numpy as np
import pytest

import xdev
from xdev.compile import cpu
from xdev.compile.cpu_math import FUNCTIONS
from xdev.ufunc.kinds import Rules

CALL = re.compile(r"call [^@\n]*@([\w.]+)\(")


@pytest.fixture
def calls(monkeypatch):
    """Return what compiled loops call, for each LLVM function that they have."""

    def called(function, *dtypes):
        texts = []
        library = numba.core.codegen.CPUCodeLibrary
        code_of = library._get_compiled_object

        def kept(made):
            texts.append(made.get_llvm_str())
            return code_of(made)

        monkeypatch.setattr(library, "_get_compiled_object", kept)
        inputs = tuple(map(np.dtype, dtypes))
        cpu.loop(function, inputs, inputs[:1], fastmath=False)
        (text,) = texts
        parts = re.split(r"^define ", text, flags=re.MULTILINE)[1:]
        return {
            re.search(r"@\"?([\w.]+)", part)[1]: set(CALL.findall(part))
            for part in parts
        }

    return called


def loop(functions):
    """Return what the loop's functions call, but themselves."""
    own = (called for name, called in functions.items() if name.startswith("xdev_"))
    return {name for name in set().union(*own) if not name.startswith("xdev_")}


def by_math(x):
    sines = math.sin(x) + math.cos(x) + math.tan(x) + math.tanh(x)
    powers = math.exp(x) + math.exp2(x) + math.expm1(x) + math.pow(x, x)
    logarithms = math.log(x) + math.log2(x) + math.log10(x) + math.log1p(x)
    return sines + powers + logarithms + math.erf(x)


def by_numpy(x):
    sines = np.sin(x) + np.cos(x) + np.tan(x) + np.tanh(x)
    powers = np.exp(x) + np.exp2(x) + np.expm1(x) + np.power(x, x) + np.fmod(x, x)
    return sines + powers + np.log(x) + np.log2(x) + np.log10(x) + np.log1p(x)


@numba.njit
def inner(x):
    return math.tanh(x) * np.float32(2)


@xdev.vectorize
def outer(x):
    return math.log1p(x) + 1


called = outer.definition.device_function(Rules((np.dtype("f4"),)), "all")


@pytest.mark.parametrize(
    ("function", "names", "dtype"),
    [
        (by_math, set(FUNCTIONS) - {"fmod"}, "f4"),
        (by_numpy, set(FUNCTIONS) - {"erf"}, "f8"),
        (lambda x: x**x + pow(x, x + x) + x % (x + x), {"fmod", "pow"}, "f4"),
        (lambda x: x**x + pow(x, x + x) + x % (x + x), {"fmod", "pow"}, "f8"),
        (lambda x: math.exp(x) if x > 0 else math.sin(x), {"exp", "sin"}, "f4"),
        (lambda x: math.exp(x), {"exp"}, "f2"),  # noqa: PLW0108 - it has a source
        (lambda x: inner(x) + called(x), {"tanh", "log1p"}, "f4"),
    ],
)
def test_loops_call_vectors(calls, function, names, dtype):
    functions = calls(function, dtype)
    suffix = f"f{max(8 * np.dtype(dtype).itemsize, 32)}"

    assert all(
        called.startswith(("xdev.", "llvm.", "fe")) for called in loop(functions)
    )
    for name in names:
        symbol = f"xdev.{name}.{suffix}"
        assert any(called.startswith(f"{symbol}.") for called in loop(functions))
        for lanes in (4, 8):
            body = functions[f"{symbol}.{lanes}"]
            vectors = {called for called in body if re.search(r"v\d+f\d\d", called)}
            assert f"llvm.fma.v{lanes}{suffix}" in vectors or name in {"fmod", "pow"}
            assert body - vectors <= {f"{symbol}.{lanes}.careful"}


@pytest.mark.parametrize("name", ["sqrt", "floor", "ceil", "trunc", "fabs"])
def test_what_the_processor_has_is_an_instruction(calls, name):
    function = getattr(math, name)
    found = loop(calls(lambda x: function(x), "f4"))  # noqa: PLW0108

    assert any(called.startswith(f"llvm.{name}.v") for called in found)
    assert not any(called.startswith("xdev.") for called in found)


FORMULA = xdev.vectorize(
    lambda x, y: math.sin(x) * math.exp(y) + math.log(x) - math.tanh(x * y) + x**y
)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_results_depend_on_values_alone(dtype):
    x, y = np.random.default_rng(0).uniform(0.1, 3, (2, 301)).astype(dtype)
    expected = FORMULA(x, y)

    for start in range(1, 20):
        assert np.array_equal(FORMULA(x[start:], y[start:]), expected[start:])
        assert FORMULA(x[start], y[start]) == expected[start]
    for step in (2, 3, -1):
        assert np.array_equal(FORMULA(x[::step], y[::step]), expected[::step])
    assert np.array_equal(
        FORMULA(x, y[:, None]), FORMULA(x + 0 * y[:, None], y[:, None])
    )
    apart = np.empty((301, 5), dtype)
    apart[:, 2] = x
    assert np.array_equal(FORMULA(apart[:, 2], y), expected)


@pytest.mark.parametrize(("dtype", "rtol"), [("f4", 1e-6), ("f8", 1e-14)])
def test_other_functions_are_the_c_librarys(dtype, rtol):
    def inverse(x):
        return math.acos(x) + math.asin(x) + math.atan(x) + math.atanh(x)

    def hyperbolic(x):
        return math.cosh(x) - math.sinh(x) + math.asinh(x) + math.acosh(x + 1)

    def other(x):
        return math.erfc(x) + math.gamma(x) + math.lgamma(x) + math.atan2(x, x + 1)

    x = np.linspace(0.05, 0.95, 50).astype(dtype)
    for function in (inverse, hyperbolic, other):
        result = xdev.vectorize(function)(x)
        assert result.dtype == dtype
        assert result == pytest.approx([function(float(v)) for v in x], rel=10 * rtol)


def test_complex_numbers_are_numbas():
    f = xdev.vectorize(lambda z: cmath.exp(z) * z)
    z = np.array([1 + 2j, -0.5j, 3])

    assert f(z) == pytest.approx([cmath.exp(v) * v for v in z])
    assert f(z.astype("F")) == pytest.approx([cmath.exp(v) * v for v in z], rel=1e-6)
