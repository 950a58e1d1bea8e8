"""What cannot be compiled is refused with the reason, the line and the types."""

import gc
import math
import sys
import weakref

import numba
import numpy as np
import pytest

import xdev

FACTORS = {}
members = [1, 2]
HERE = __file__


class Mark:
    value = 2.0


MARK = Mark()


def attribute(x):
    y = x + 1
    return y.upper()


def unknown(x):
    return x + nowhere  # noqa: F821


def mapping(x):
    return x + FACTORS[0]


def text(x):
    total = 0
    for _ in range(3):
        total = total + "a"
    return total + x


def listed(x):
    return [x, x]


def fetched(x):
    return FACTORS.get(x, 0.0)


def member(x):
    return x in members


def held(x):
    return x * MARK.value


def compared(x):
    np.testing.assert_allclose(x, 1)
    return x


def shaped(x):
    return x.shape[0]


def indexed(x):
    return x[0]


def looped(x):
    total = 0
    for each in x:
        total += each
    return total


def torn(x):
    y = 1 if x > 0 else "a"
    while x > 1:
        x -= 1
    return y


def forked(x):
    if x > 0:
        return 1  # one end of forked: Numba names either
    return "a"  # one end of forked


def ordered(x):
    return sorted(x)


def nothing(x):
    x + 1


@xdev.vectorize
def inner(x):
    return x.nope


def outer(x):
    return inner(x)


def linear(x):
    return np.linalg.norm(x)


def transformed(x):
    return np.fft.fft(x)


def of_the_facade(x):
    return xdev.sort(x)


def fixed(x):
    return np.fix(x)


def importing(x):
    import math

    return math.sin(x)


def of_a_class(x):
    return x * Mark.value


def wide(x):
    return np.float128(x)


def empty(x):  # noqa: ARG001
    return {}


def opening(x):
    with open("file"):  # noqa: PTH123
        return x


def guarded(x):
    try:
        return 1 / x
    except ZeroDivisionError:
        return 0.0


def assigned(x):
    global LAST  # noqa: PLW0603
    LAST = x
    return x


def spelled(x):
    return float(str(x))


def unpacked(x):
    a, b = x
    return a + b


@pytest.mark.parametrize(
    ("function", "words", "line"),
    [
        (linear, "no norm(float32): use", "return np.linalg.norm(x)"),
        (transformed, "no numpy.fft.fft: use", "return np.fft.fft(x)"),
        (of_the_facade, "no sort(float", "return xdev.sort(x)"),
        (fixed, "no numpy.fix: use np.trunc", "return np.fix(x)"),
        (importing, "imports nothing: import at the top of", "import math"),
        (attribute, "'upper'", "return y.upper()"),
        (unknown, "'nowhere'", "return x + nowhere"),
        (mapping, "'FACTORS'", "return x + FACTORS[0]"),
        (text, "add", 'total = total + "a"'),
        (listed, "list(float32)", "def listed(x):"),
        (nothing, "returns nothing", "def nothing(x):"),
        (fetched, "'FACTORS' is of class dict; from outside", "return FACTORS.get"),
        (member, "; from outside, compiled code reads", "return x in members"),
        (held, "Mark; from outside", "return x * MARK.value"),
        (compared, "compiled code has no", "np.testing.assert_allclose(x, 1)"),
        (shaped, "a float32, which has no 'shape'", "return x.shape[0]"),
        (indexed, "a float32, which has no index", "return x[0]"),
        (looped, "a float32, which has no items", "for each in x:"),
        (torn, "a value is of one type, and there", "y = 1 if x > 0"),
        (forked, "a value is of one type, and there", "# one end of forked"),
        (ordered, "no such function of these types", "def ordered(x):"),
        (of_a_class, "'Mark' is a class; from outside", "return x * Mark.value"),
        (wide, "no float128: the widest are float64", "return np.float128(x)"),
        (empty, "nothing tells the type of its items", "return {}"),
        (opening, "compiled code has no with", "with open"),
        (guarded, "cannot tell errors apart", "except ZeroDivisionError:"),
        (assigned, "writes no global: return what", "LAST = x"),
        (spelled, "makes no number of a text", "def spelled(x):"),
        (unpacked, "a float32, which has no items", "a, b = x"),
        (outer, "'nope'", "return x.nope"),
    ],
)
def test_the_reason_the_line_and_the_types_are_told(device, function, words, line):
    x = xdev.ones(3, dtype=xdev.float32, device=device)
    out = xdev.zeros(3, dtype=xdev.float32, device=device)

    with pytest.raises(TypeError) as refused:
        xdev.vectorize(function)(x, out=out)
    first, second = str(refused.value).splitlines()
    told = f"cannot compile {function.__name__}(float32)"
    assert first.startswith((f"{told}: ", f"{told} for CUDA: "))
    assert words in first
    assert second.startswith(f"  {HERE}:")
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


@pytest.mark.parametrize("debugging", [False, True])
def test_the_compilers_own_traceback_is_for_debugging(debugging, monkeypatch):
    monkeypatch.setattr(xdev._config, "debug", lambda: debugging)
    with pytest.raises(TypeError) as caught:
        xdev.vectorize(attribute)(np.ones(3))
    assert (caught.value.__cause__ is not None) == debugging
    assert caught.value.__suppress_context__


@numba.njit
def failing(x):
    return x.nope


class Held:
    """What the caller of a function has."""


@pytest.mark.parametrize("called", [inner, failing])
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
