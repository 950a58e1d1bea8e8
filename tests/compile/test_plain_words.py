"""What a kernel may not do is told by its cause, on the CPU and for CUDA."""

import re

import numpy as np
import pytest

import xdev
from xdev import _optional
from xdev.compile.grid import Argument, Grid, cpu


def compiled_for_cuda(grid):
    if not all(map(_optional.installed, ("cupy", "numba_cuda"))):
        pytest.skip("needs numba-cuda and CuPy: the group cuda")
    from xdev.compile.grid import cuda

    return cuda.ltoir(grid, (9, 0), narrow=True, small=True)


@pytest.fixture(params=[cpu.loop, compiled_for_cuda], ids=["cpu", "cuda"])
def refusal(request):
    """Return the reason for a refusal, of a function of one index and arrays."""

    def reason(function, *arrays):
        kinds = (
            Argument(x.dtype, x.ndim, contiguous=True, writable=x.flags.writeable)
            for x in arrays
        )
        with pytest.raises(TypeError) as refused:
            request.param(Grid(function, 1, tuple(kinds)))
        first, second = str(refused.value).splitlines()
        assert first.startswith(f"cannot compile {function.__name__}(")
        assert second.startswith(f"  {__file__}:")
        return first.removesuffix(" for CUDA").partition(": ")[2] + second

    return reason


LINE, SQUARE, CUBE = np.ones(3), np.ones((3, 3)), np.ones((3, 3, 3))
COMPLEX = np.ones(3, complex)


def copied(i, x, out):
    out[i] = x[i]


def to_a_corner(i, x, out):
    out[i, 0] = x[i]


def to_the_diagonal(i, x, out):
    out[i, i, i] = x[i]


def to_a_part(i, x, out):
    out[i : i + 1] = x[i]


def to_a_text(i, _, out):
    out[i] = "a"


def to_none(i, _, out):
    out[i] = None


@pytest.mark.parametrize(
    ("function", "x", "out", "dtype", "value"),
    [
        (copied, COMPLEX, LINE, "float64", "complex128"),
        (copied, COMPLEX, LINE.astype("i4"), "int32", "complex128"),
        (to_a_corner, COMPLEX, SQUARE, "float64", "complex128"),
        (to_the_diagonal, COMPLEX, CUBE, "float64", "complex128"),
        (to_a_part, COMPLEX, LINE, "float64", "complex128"),
        (to_a_text, LINE, LINE, "float64", r"Literal\[str\]\(a\)"),
        (to_none, LINE, LINE, "float64", "none"),
    ],
)
def test_a_value_of_another_kind(refusal, function, x, out, dtype, value):
    reason = refusal(function, x, out)

    element = rf"an element of an array of {dtype} is written there, and a value of "
    assert re.match(rf"{element}type {value} does not become one", reason)


@pytest.mark.parametrize("part", [SQUARE, CUBE])
def test_a_row_that_is_written_into_an_element(refusal, part):
    reason = refusal(copied, part, LINE)

    assert f"the value is an array of {part.ndim - 1} dimension(s)" in reason


def by_a_float(i, x, out):
    out[i] = x[i * 1.0]


def by_a_float_second(i, x, out):
    out[i] = x[i, i * 1.0]


def by_floats(i, x, out):
    out[i] = x[i * 1.0, i * 1.0]


def by_a_bool(i, x, out):
    out[i] = x[i > 0]


def by_a_text(i, x, out):
    out[i] = x["a"]


def into_a_float(i, x, out):
    out[i / 2] = x[i]


@pytest.mark.parametrize(
    ("function", "x", "odd"),
    [
        (by_a_float, LINE, "float64"),
        (by_a_float_second, SQUARE, "float64"),
        (by_floats, SQUARE, "float64"),
        (by_a_bool, LINE, "bool"),
        (by_a_text, LINE, "Literal[str](a)"),
        (into_a_float, LINE, "float64"),
    ],
)
def test_an_index_that_is_no_integer(refusal, function, x, odd):
    reason = refusal(function, x, LINE)

    assert f"an index is an integer, and one there is of type {odd}: " in reason


def too_many(i, x, out):
    out[i] = x[i, 0]


def too_many_written(i, x, out):
    out[i, i] = x[i]


@pytest.mark.parametrize("function", [too_many, too_many_written])
def test_a_wrong_number_of_indices(refusal, function):
    reason = refusal(function, LINE, LINE)

    assert "an array of 1 dimension(s) has 1 index(es), and one number is" in reason


def test_a_write_into_what_may_only_be_read(refusal):
    out = LINE.copy()
    out.flags.writeable = False

    assert "an array that may only be read is written" in refusal(copied, LINE, out)


def with_a_list(i, x, out):
    made = [x[i]]
    made.append(2.0)
    out[i] = made[1]


def with_a_dict(i, x, out):
    made = {0: x[i]}
    out[i] = len(made)


@pytest.mark.parametrize("function", [with_a_list, with_a_dict])
def test_new_memory_in_a_kernel(refusal, function):
    reason = refusal(function, LINE, LINE)

    assert (
        "which @kernel and @guvectorize do not have: pass an array, or use a tuple"
        in reason
    )
    assert "made = " in reason


def added(i, x, out):
    xdev.atomic.add(out, i, x[i])


def added_at_a_float(i, x, out):
    xdev.atomic.add(out, i * 1.0, x[i])


def added_nothing(i, _, out):
    xdev.atomic.add(out, i)


def swapped_for_nothing(i, x, out):
    xdev.atomic.cas(out, i, x[i])


def swapped(i, x, out):
    xdev.atomic.cas(out, i, x[i], x[i])


DTYPES = "use int32, int64, uint32, uint64, float32 or float64"
ADD = "xdev.atomic.add(array, index, value)"
CAS = "xdev.atomic.cas(array, index, expected, value)"


@pytest.mark.parametrize(
    ("function", "dtype", "words"),
    [
        (added, "i1", f"{ADD} cannot update elements of int8: {DTYPES}"),
        (added, "?", f"{ADD} cannot update elements of bool: {DTYPES}"),
        (added, "c16", f"{ADD} cannot update elements of complex128: {DTYPES}"),
        (swapped, "u2", f"{CAS} cannot update elements of uint16: {DTYPES}"),
        (added_at_a_float, "f8", f"{ADD} takes an integer or a tuple of them for"),
        (added_nothing, "f8", f"{ADD} has three arguments: not add(array(float64"),
        (swapped_for_nothing, "f8", f"{CAS} has four arguments: not cas(array(float64"),
    ],
)
def test_atomics_tell_what_they_take(refusal, function, dtype, words):
    x = np.ones(3, dtype)

    assert words in refusal(function, x, x)


def guarded(i, x, out):
    try:
        out[i] = 1 / x[i]
    except ZeroDivisionError:
        out[i] = 0


def imported(i, x, out):
    import math

    out[i] = math.sin(x[i])


def opened(i, x, out):
    with open("file") as file:  # noqa: PTH123
        file.write("a")
    out[i] = x[i]


def kept(i, x, out):
    global LAST  # noqa: PLW0603
    LAST = i
    out[i] = x[i]


@pytest.mark.parametrize(
    ("function", "words", "line"),
    [
        (guarded, "cannot tell errors apart", "except ZeroDivisionError:"),
        (imported, "imports nothing: import at the top", "import math"),
        (opened, "has no with", "def opened("),
        (kept, "writes no global", "LAST = i"),
    ],
)
def test_statements_that_compilers_do_not_have(refusal, function, words, line):
    reason = refusal(function, LINE, LINE)

    assert words in reason
    assert line in reason


def caught(i, x, out):
    try:
        out[i] = 1 / x[i]
    except Exception:  # noqa: BLE001
        out[i] = 0


def test_cuda_has_no_try():
    kinds = [Argument(np.dtype("f8"), 1, contiguous=True, writable=True)] * 2

    with pytest.raises(TypeError, match="on CUDA has no try at all"):
        compiled_for_cuda(Grid(caught, 1, tuple(kinds)))
