"""What cannot be compiled is refused with the reason, the line and the types."""

import gc
import math
import sys
import weakref

import numba
import numpy as np
import pytest

import xdev

HEAD = """
import numpy as np
import xdev

FACTORS = {}
members = [1, 2]

class Mark:
    value = 2.0

MARK = Mark()

@xdev.vectorize
def inner(x):
    return x.nope # here
"""


@pytest.mark.parametrize(
    ("body", "words", "line"),
    [
        ("return np.linalg.norm(x)", "no norm(float32): use", "norm(x)"),
        ("return np.fft.fft(x)", "no numpy.fft.fft: use", "fft(x)"),
        ("return xdev.sort(x)", "no sort(float", "xdev.sort(x)"),
        ("return np.fix(x)", "no numpy.fix: use np.trunc", "np.fix(x)"),
        ("return x + nowhere", "'nowhere'", "nowhere"),
        ("return x + FACTORS[0]", "'FACTORS'", "return x + FACTORS[0]"),
        ("return FACTORS.get(x)", "'FACTORS' is of class dict; from outside", "get(x)"),
        ("return x in members", "; from outside, compiled code reads", "in members"),
        ("return x * MARK.value", "Mark; from outside", "x * MARK.value"),
        ("return x * Mark.value", "'Mark' is a class; from outside", "x * Mark.value"),
        ("return x.shape[0]", "a float32, which has no 'shape'", "return x.shape[0]"),
        ("return x[0]", "a float32, which has no index", "return x[0]"),
        ("return np.float128(x)", "no float128: the widest are float64", "float128(x)"),
        ("return {}", "nothing tells the type of its items", "return {}"),
        ("return inner(x)", "'nope'", "return x.nope # here"),
        # Of these Numba names the function alone.
        ("return [x, x]", "list(float32)", "def f(x):"),
        ("return sorted(x)", "no such function of these types", "def f(x):"),
        ("return float(str(x))", "makes no number of a text", "def f(x):"),
        ("x + 1", "returns nothing", "def f(x):"),
        ("y = x + 1\nreturn y.upper()", "'upper'", "return y.upper()"),
        ("a, b = x\nreturn a + b", "a float32, which has no items", "a, b = x"),
        (
            "total = 0\nfor each in x:\n    total += each\nreturn total",
            *("a float32, which has no items", "for each in x:"),
        ),
        (
            "total = 0\nfor _ in range(3):\n    total = total + 'a'\nreturn total",
            *("add", "total = total + 'a'"),
        ),
        (
            "y = 1 if x > 0 else 'a'\nwhile x > 1:\n    x -= 1\nreturn y",
            *("a value is of one type, and there", "y = 1 if x > 0"),
        ),
        (
            "if x > 0:\n    return 1 # one end\nreturn 'a' # one end",
            *("a value is of one type, and there", "# one end"),
        ),
        (
            "np.testing.assert_allclose(x, 1)\nreturn x",
            *("compiled code has no", "np.testing.assert_allclose(x, 1)"),
        ),
        (
            "import math\nreturn math.sin(x)",
            *("imports nothing: import at the top of", "import math"),
        ),
        ("with open('file'):\n    return x", "compiled code has no with", "with open"),
        (
            "try:\n    return 1 / x\nexcept ZeroDivisionError:\n    return 0.0",
            *("cannot tell errors apart", "except ZeroDivisionError:"),
        ),
        (
            "global LAST\nLAST = x\nreturn x",
            *("writes no global: return what", "LAST = x"),
        ),
    ],
)
def test_the_reason_the_line_and_the_types_are_told(device, written, body, words, line):
    function = written(body, head=HEAD)
    x = xdev.ones(3, dtype=xdev.float32, device=device)
    out = xdev.zeros(3, dtype=xdev.float32, device=device)

    with pytest.raises(TypeError) as refused:
        xdev.vectorize(function)(x, out=out)
    first, second = str(refused.value).splitlines()
    told = "cannot compile f(float32)"
    assert first.startswith((f"{told}: ", f"{told} for CUDA: "))
    assert words in first
    assert second.startswith(f"  {function.__code__.co_filename}:")
    assert line in second
    assert not np.any(xdev.to_numpy(out))


def test_functions_of_real_numbers_say_which_take_complex_ones():
    def logarithm(x):
        return math.log(x)

    with pytest.raises(TypeError, match=r"there is log\(complex128\): use np\.log"):
        xdev.vectorize(logarithm)(np.ones(3, complex))


@xdev.kernel
def determinant(i, x, out):
    out[i] = np.linalg.det(x)


@pytest.mark.usefixtures("no_scipy")
def test_linear_algebra_without_scipy_is_refused_likewise():
    x, out = np.eye(2), np.zeros(2)

    with pytest.raises(
        TypeError, match=r"(?s)compile determinant.*no linear algebra.*def determ"
    ):
        determinant[2](x, out)
    assert not out.any()


@pytest.fixture
def no_scipy(monkeypatch):
    """Let SciPy's parts that Numba asks for be missing."""
    for name in ("scipy", "scipy.linalg", "scipy.linalg.cython_blas"):
        monkeypatch.setitem(sys.modules, name, None)


@numba.njit
def failing(x):
    return x.nope


@pytest.mark.parametrize("debugging", [False, True])
def test_the_compilers_own_traceback_is_for_debugging(debugging, monkeypatch):
    monkeypatch.setattr(xdev._config, "debug", lambda: debugging)
    with pytest.raises(TypeError) as caught:
        xdev.vectorize(failing.py_func)(np.ones(3))
    assert (caught.value.__cause__ is not None) == debugging
    assert caught.value.__suppress_context__


class Held:
    """What the caller of a function has."""


@pytest.mark.parametrize("called", [xdev.vectorize(failing.py_func), failing])
def test_a_refusal_keeps_nothing_of_the_callers(device, called):
    x = xdev.ones(3, device=device)

    @xdev.vectorize
    def calling(x):
        return called(x) + 1

    def refused():
        held = Held()
        with pytest.raises(TypeError, match="'nope'"):
            calling(x)
        return weakref.ref(held)

    held = refused()
    gc.collect()
    assert held() is None
