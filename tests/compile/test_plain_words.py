"""What a kernel may not do is told by its cause, on the CPU and for CUDA."""

import re

import numpy as np
import pytest

from xdev import _optional
from xdev.compile.grid import Argument, Grid, cpu


def compiled_for_cuda(grid):
    if not all(map(_optional.installed, ("cupy", "numba_cuda"))):
        pytest.skip("needs numba-cuda and CuPy: the group cuda")
    from xdev.compile.grid import cuda

    return cuda.ltoir(grid, (9, 0), narrow=True, small=True)


@pytest.fixture(params=[cpu.loop, compiled_for_cuda], ids=["cpu", "cuda"])
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
