"""What compiled loops cannot report to Python is refused before anything is written."""

import math

import numba
import numpy as np
import pytest

import xdev

TABLE = (1.0, 2.0, 3.0)


@numba.njit
def root(x):
    if x < 0:
        raise ValueError("negative")
    return math.sqrt(x)


def outside(x):
    return TABLE[int(x)]


def called(x):
    return root(x)


def printed(x):
    y = x + 1
    print(y)  # noqa: T201
    return y


def place(x):
    return (10.0, 20.0).index(x)


def looked_up(x):
    table = {1.0: 10.0, 2.0: 20.0}
    return table[x]


def removed(x):
    values = {1.0, 2.0}
    values.remove(x)
    return len(values)


def _call(form, function, x, out):
    if form == "ufunc":
        xdev.vectorize(function)(x, out=out)
        return
    inner = numba.njit(function)

    def rows(x, out):
        out[0] = inner(x[0])

    def points(i, x, out):
        out[i] = inner(x[i])

    if form == "gufunc":
        xdev.guvectorize(["void(float64[:], float64[:])"], "(n)->(n)")(rows)(x, out=out)
    else:
        xdev.kernel(points)[len(x)](x, out)


@pytest.mark.parametrize(
    ("forms", "function", "words"),
    [
        ("ufunc kernel", place, r"ValueError: tuple\.index\(x\): x not.*\n.*def place"),
        ("ufunc gufunc", outside, "may raise IndexError: tuple index out of range"),
        ("ufunc kernel", called, "may raise ValueError: negative"),
        ("ufunc gufunc", printed, "needs the Python interpreter"),
        # What asks for memory, which only ufuncs can.
        ("ufunc", looked_up, r"may raise KeyError, .*conditions.*\n.*def looked_up"),
        ("ufunc", removed, "may raise KeyError: set.remove.*discard"),
    ],
)
def test_functions_that_may_raise_or_print_are_refused(forms, function, words, capfd):
    x, out = np.array([0.0, 7.0, 1.0]), np.full(3, -1.0)
    for form in forms.split():
        text = words.partition(r"\n")[0] if form != "ufunc" else words
        with pytest.raises(TypeError, match=text):
            _call(form, function, x, out)
        assert out.tolist() == [-1, -1, -1]
        assert capfd.readouterr() == ("", "")


def checked_first(i):
    return TABLE[i] if 0 <= i < len(TABLE) else math.nan


def guarded(i):
    total = 0
    for k in range(0, 9, max(i, 1)):
        total += k
    return total + ((1, 2, 4).index(i) if i in (1, 2, 4) else -1)


def of_containers(i):
    values, table = {1, 2}, {1: 2}
    values.discard(i)
    array = np.zeros(3)
    array[0] = len(values) + len(table) + (i in table)
    return array[0]


@pytest.mark.parametrize("function", [checked_first, guarded, of_containers])
def test_what_cannot_happen_is_compiled(function):
    x = [0, 1, 2, 3, 4, 7, -9]
    found = xdev.vectorize(function)(np.array(x))
    np.testing.assert_array_equal(found, list(map(function, x)))


def stepped(x):
    total = 100.0
    for k in range(0, 9, int(x)):
        total += k
    return total


@pytest.mark.parametrize("form", ["kernel", "gufunc", "ufunc"])
def test_a_range_with_a_step_of_zero_ends_its_point_alone(form):
    size = 100_000
    shape = (size, 1) if form == "gufunc" else size
    x = np.resize([1.0, 0.0, 2.0, 4.0, -1.0], shape)
    out = np.full(shape, -1.0)

    _call(form, stepped, x, out)

    unwritten = math.nan if form == "ufunc" else -1.0
    expected = np.resize([136.0, unwritten, 120.0, 112.0, 100.0], size)
    np.testing.assert_array_equal(out.ravel(), expected)


@pytest.mark.parametrize(("dtype", "undefined"), [("f4", math.nan), ("i2", 0)])
def test_a_ufunc_of_a_step_of_zero_gives_nan_or_zero(device, dtype, undefined):
    def summed(x):
        total = x
        for _ in range(0, 9, int(x)):
            total += x
        return total, x

    x = xdev.asarray(np.array([3, 0, 5], dtype), device=device)
    out = [xdev.full(3, 7, dtype=x.dtype, device=device) for _ in range(2)]
    xdev.vectorize(summed)(x, out=tuple(out))
    expected = [[12, undefined, 15], [3, undefined, 5]]
    for each, values in zip(out, expected, strict=True):
        np.testing.assert_array_equal(xdev.to_numpy(each), values)
