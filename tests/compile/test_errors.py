"""What cannot be compiled is refused with the reason, the line and the types."""

import gc
import math
import re
import sys
import weakref

import numba
import numpy as np
import pytest

import xdev
from xdev import _optional
from xdev.compile import grid_code
from xdev.compile.grid import Argument, Grid

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


def compiled_for_cuda(grid):
    if not all(map(_optional.installed, ("cupy", "numba_cuda"))):
        pytest.skip("needs numba-cuda and CuPy: the group cuda")
    return grid_code.ltoir(grid, (9, 0), narrow=True)


@pytest.fixture(params=[grid_code.loop, compiled_for_cuda], ids=["cpu", "cuda"])
def refusal(request, written):
    """Return the reason for a refusal, of a kernel's body, and the line of it."""

    def reason(body, *arrays):
        function = written(body, "i, x, out", "import xdev")
        kinds = (
            Argument(x.dtype, x.ndim, contiguous=True, writable=x.flags.writeable)
            for x in arrays
        )
        with pytest.raises(TypeError) as refused:
            request.param(Grid(function, 1, tuple(kinds)))
        first, second = str(refused.value).splitlines()
        assert first.startswith("cannot compile f(")
        assert second.startswith(f"  {function.__code__.co_filename}:")
        return first.removesuffix(" for CUDA").partition(": ")[2] + second

    return reason


LINE, SQUARE, CUBE = np.ones(3), np.ones((3, 3)), np.ones((3, 3, 3))
COMPLEX, FIXED = np.ones(3, complex), np.ones(3)
FIXED.flags.writeable = False
VALUE = (
    r"an element of an array of {} is written there, and a value of type {} does not"
)
INDEX = "an index is an integer, and one there is of type {}: "
COUNT = r"an array of 1 dimension\(s\) has 1 index\(es\), and one number is"
MEMORY = "which @kernel and @guvectorize do not have: pass an array, or use a tuple"
BYTES, BOOLS, WORDS = (np.ones(3, dtype) for dtype in ("i1", "?", "u2"))
DTYPES = (
    r"{} cannot update elements of {}: use int32, int64, uint32, uint64, float32 or"
)
ADD = r"xdev\.atomic\.add\(array, index, value\)"
CAS = r"xdev\.atomic\.cas\(array, index, expected, value\)"


@pytest.mark.parametrize(
    ("body", "x", "out", "words"),
    [
        ("out[i] = x[i]", COMPLEX, LINE, VALUE.format("float64", "complex128")),
        (
            "out[i] = x[i]",
            COMPLEX,
            np.ones(3, "i4"),
            VALUE.format("int32", "complex128"),
        ),
        ("out[i, 0] = x[i]", COMPLEX, SQUARE, VALUE.format("float64", "complex128")),
        ("out[i, i, i] = x[i]", COMPLEX, CUBE, VALUE.format("float64", "complex128")),
        ("out[i : i + 1] = x[i]", COMPLEX, LINE, VALUE.format("float64", "complex128")),
        ("out[i] = 'a'", LINE, LINE, VALUE.format("float64", r"Literal\[str\]\(a\)")),
        ("out[i] = None", LINE, LINE, VALUE.format("float64", "none")),
        ("out[i] = x[i]", SQUARE, LINE, r"the value is an array of 1 dimension\(s\)"),
        ("out[i] = x[i]", CUBE, LINE, r"the value is an array of 2 dimension\(s\)"),
        ("out[i] = x[i * 1.0]", LINE, LINE, INDEX.format("float64")),
        ("out[i] = x[i, i * 1.0]", SQUARE, LINE, INDEX.format("float64")),
        ("out[i] = x[i * 1.0, i * 1.0]", SQUARE, LINE, INDEX.format("float64")),
        ("out[i] = x[i > 0]", LINE, LINE, INDEX.format("bool")),
        ("out[i] = x['a']", LINE, LINE, INDEX.format(r"Literal\[str\]\(a\)")),
        ("out[i / 2] = x[i]", LINE, LINE, INDEX.format("float64")),
        ("out[i] = x[i, 0]", LINE, LINE, COUNT),
        ("out[i, i] = x[i]", LINE, LINE, COUNT),
        ("out[i] = x[i]", LINE, FIXED, "an array that may only be read is written"),
        ("made = [x[i]]\nout[i] = made[0]", LINE, LINE, f"{MEMORY}.*made = "),
        ("made = {0: x[i]}\nout[i] = len(made)", LINE, LINE, f"{MEMORY}.*made = "),
        ("xdev.atomic.add(out, i, x[i])", LINE, BYTES, DTYPES.format(ADD, "int8")),
        ("xdev.atomic.add(out, i, x[i])", LINE, BOOLS, DTYPES.format(ADD, "bool")),
        ("xdev.atomic.add(out, i, 1)", LINE, COMPLEX, DTYPES.format(ADD, "complex128")),
        ("xdev.atomic.cas(out, i, 1, 1)", LINE, WORDS, DTYPES.format(CAS, "uint16")),
        (
            "xdev.atomic.add(out, i * 1.0, x[i])",
            *(LINE, LINE, f"{ADD} takes an integer or a tuple of them for"),
        ),
        (
            "xdev.atomic.add(out, i)",
            *(LINE, LINE, rf"{ADD} has three arguments: not add\(array\(float64"),
        ),
        (
            "xdev.atomic.cas(out, i, x[i])",
            *(LINE, LINE, rf"{CAS} has four arguments: not cas\(array\(float64"),
        ),
        (
            "try:\n    out[i] = 1 / x[i]\nexcept ZeroDivisionError:\n    out[i] = 0",
            *(LINE, LINE, "cannot tell errors apart.*except ZeroDivisionError:"),
        ),
        (
            "import math\nout[i] = math.sin(x[i])",
            *(LINE, LINE, "imports nothing: import at the top.*import math"),
        ),
        (
            "with open('file') as file:\n    file.write('a')",
            *(LINE, LINE, r"has no with.*def f\("),
        ),
        ("global LAST\nLAST = i", LINE, LINE, "writes no global.*LAST = i"),
    ],
)
def test_a_refusal_tells_the_cause_and_the_line(refusal, body, x, out, words):
    assert re.search(words, refusal(body, x, out))


def caught(i, x, out):
    try:
        out[i] = 1 / x[i]
    except Exception:  # noqa: BLE001
        out[i] = 0


def test_cuda_has_no_try():
    kinds = [Argument(np.dtype("f8"), 1, contiguous=True, writable=True)] * 2

    with pytest.raises(TypeError, match="on CUDA has no try at all"):
        compiled_for_cuda(Grid(caught, 1, tuple(kinds)))
