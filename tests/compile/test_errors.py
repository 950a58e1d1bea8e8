"""What cannot be compiled is refused with the reason, the line and the types."""

import gc
import math
import weakref

import numba
import numpy as np
import pytest

import xdev

HEAD = """
import numpy as np
import xdev

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
        ("return xdev.sort(x)", "no sort(float", "xdev.sort(x)"),
        ("return x + nowhere", "'nowhere'", "nowhere"),
        ("return x * MARK.value", "Mark; from outside", "x * MARK.value"),
        ("return x.shape[0]", "a float32, which has no 'shape'", "return x.shape[0]"),
        ("return np.float128(x)", "no such function or type", "float128(x)"),
        ("return {}", "nothing tells the type of its items", "return {}"),
        ("return inner(x)", "'nope'", "return x.nope # here"),
        # Of these Numba names the function alone.
        ("return [x, x]", "list(float32)", "def f(x):"),
        ("x + 1", "returns nothing: return the result", "def f(x):"),
        ("y = x + 1\nreturn y.upper()", "'upper'", "return y.upper()"),
        ("a, b = x\nreturn a + b", "a float32, which has no items", "a, b = x"),
        (
            "if x > 0:\n    return 1 # one end\nreturn 'a' # one end",
            *("a value is of one type, and there", "# one end"),
        ),
        ("import math\nreturn math.sin(x)", "Python alone has", "import math"),
        ("with np.errstate():\n    return x", "Python alone has", "with np.e"),
        (
            "try:\n    return 1 / x\nexcept ZeroDivisionError:\n    return 0.0",
            *("errors that are told apart", "except ZeroDivisionError:"),
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
    logarithm = xdev.vectorize(lambda x: math.log(x) + 1)
    words = r"there is log\(complex128\): use np\.log"
    with pytest.raises(TypeError, match=words) as caught:
        logarithm(np.ones(3, complex))
    assert caught.value.__cause__ is None  # the compiler's own traceback
    assert caught.value.__suppress_context__


@numba.njit
def failing(x):
    return x.nope


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


LINE, BYTES, COMPLEX = np.ones(3), np.ones(3, "i1"), np.ones(3, complex)
FIXED = np.broadcast_to(1.0, 3)
VALUE = r"number is read or written there, of its type float64: .*, {}\)"
INDEX = "an index is an integer, and one there is of type {}"
COUNT = r"an array of 1 dimension\(s\) has 1 index\(es\), and one number is"
MEMORY = "which @kernel and @guvectorize do not have: pass an array, or use a tuple"
ADD = r"xdev\.atomic\.add\(array, index, value\) takes an array that may be written, of"
COUNTS = r"three arguments, \(array, index, value\), and cas four, .*not "


@pytest.mark.parametrize(
    ("body", "x", "out", "words"),
    [
        ("out[i] = x[i]", COMPLEX, LINE, VALUE.format("complex128")),
        ("out[i] = None", LINE, LINE, VALUE.format("none")),
        ("out[i] = x[i * 1.0]", LINE, LINE, INDEX.format("float64")),
        ("out[i] = x['a']", LINE, LINE, INDEX.format("'a'")),
        ("out[i] = x[i, 0]", LINE, LINE, COUNT),
        ("out[i] = x[i]", LINE, FIXED, "read-only|may only be read"),
        ("made = [x[i]]\nout[i] = made[0]", LINE, LINE, f"{MEMORY}.*made = "),
        (
            "xdev.atomic.add(out, i, x[i])",
            *(LINE, BYTES, rf"{ADD} int32, int64.* not \(array\(int8"),
        ),
        (
            "xdev.atomic.add(out, i * 1.0, x[i])",
            *(LINE, LINE, rf"{ADD} .* an integer for each of its axes.* float64, "),
        ),
        (
            "xdev.atomic.cas(out, i, x[i])",
            *(LINE, LINE, rf"{COUNTS}cas\(array\(float64"),
        ),
    ],
)
def test_of_kernels(written, body, x, out, words):
    function = written(body, "i, x, out", "import xdev")

    with pytest.raises((TypeError, ValueError), match=f"(?s){words}"):
        xdev.kernel(function)[3](x, out)
