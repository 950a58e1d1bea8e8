"""Kernels index and loop as Python does, whatever width the numbers have."""

import ast
import inspect
import textwrap
from itertools import pairwise

import numpy as np
import pytest

import xdev
from xdev.ufunc.kernels.functions import Ranges


@xdev.kernel
def gather(i, where, x, out):
    out[i] = x[where[i]]


@xdev.kernel
def scatter(i, where, x, out):
    out[where[i]] = x[i]


@xdev.kernel
def pick(i, where, x, out):
    out[i] = x[where[i], where[-i - 1]]


@xdev.kernel
def spmv(i, starts, columns, values, x, out):
    total = 0.0
    for k in range(starts[i], starts[i + 1]):
        total += values[k] * x[columns[k]]
    out[i] = total


@xdev.kernel
def around(i, starts, x, out):
    total = 0.0
    for k in range(starts[i], starts[i + 1]):
        total += x[k]
    out[i] = total


def there(device, *arrays):
    return [xdev.asarray(x, device=device) for x in arrays]


@pytest.mark.parametrize(("char", "step"), [("b", 1), ("i", -3), ("I", 1), ("l", 1)])
def test_indices_of_any_integer_type_are_read_from_arrays(device, char, step):
    n = 100
    signed = np.dtype(char).kind == "i"
    where = np.random.default_rng(0).permutation(n) - (n // 2 if signed else 0)
    where = where.astype(char)
    x = np.arange(float(n * abs(step)))
    view = x[::step]
    (index, given) = there(device, where, x)
    made, into, square = there(device, np.zeros(n), np.zeros(n), np.zeros(n))

    gather[n](index, given[::step], made)
    scatter[n](index, given[::step], into)
    plane = np.arange(float(n * n)).reshape(n, n)
    pick[n](index, there(device, plane)[0].T, square)

    np.testing.assert_array_equal(xdev.to_numpy(made), view[where])
    expected = np.zeros(n)
    expected[where] = view
    np.testing.assert_array_equal(xdev.to_numpy(into), expected)
    np.testing.assert_array_equal(xdev.to_numpy(square), plane.T[where, where[::-1]])


@pytest.mark.parametrize(
    ("char", "degree"), [*(("i", degree) for degree in (0, 1, 8, 37)), ("l", 3)]
)
def test_rows_of_any_length_are_summed(device, char, degree):
    rng = np.random.default_rng(degree)
    rows = 300
    lengths = rng.integers(0, 2 * degree + 1, rows)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(char)
    columns = rng.integers(-rows, rows, starts[-1]).astype(char)
    values, x = rng.integers(-9, 9, starts[-1]), rng.integers(-9, 9, rows)
    given = there(device, starts, columns, values.astype("f"), x.astype("f"))
    (out,) = there(device, np.zeros(rows, "f"))

    spmv[rows](*given, out)

    expected = np.zeros(rows)
    np.add.at(expected, np.repeat(np.arange(rows), lengths), values * x[columns])
    np.testing.assert_array_equal(xdev.to_numpy(out), expected)


def test_ranges_may_pass_from_the_end_to_the_start(device):
    starts = np.array([-3, 2, -5, -6, 4], np.int32)
    x = np.arange(1.0, 8)
    index, given, out = there(device, starts, x, np.zeros(4))

    around[4](index, given, out)

    expected = [sum(x[k] for k in range(a, b)) for a, b in pairwise(starts)]
    np.testing.assert_array_equal(xdev.to_numpy(out), expected)


def leaving(i, n, out):
    for j in range(n[i]):
        if j == 7:
            continue
        if j == 11:
            break
        for k in range(j, n[i] + 1):
            out[i, 0] += k
    else:
        out[i, 1] = 1


def others(i, n, out):
    for k in range(n[i], -2, -3):
        out[i, 0] += k
    last = -1
    for k in range(n[0], n[i]):
        last = k
        for m in range(3):
            out[i, 1] += k * m
    out[i, 2] = last
    out[i, 3] = len(range(n[i])) + (4 in range(n[i]))
    for j, k in enumerate(range(n[i])):
        out[i, 4] += j * k


@pytest.mark.parametrize(("function", "char"), [(leaving, "l"), (others, "b")])
def test_loops_of_every_form_run_as_in_python(device, function, char):
    n = np.array([-1, 0, 1, 5, 9, 14, 40]).astype(char)
    expected = np.zeros((n.size, 5), np.int64)
    for i in range(n.size):
        function(i, n.astype("l"), expected)
    given, out = there(device, n, np.zeros_like(expected))

    xdev.kernel(function)[n.size](given, out)

    np.testing.assert_array_equal(xdev.to_numpy(out), expected)


def test_a_range_of_ones_own_is_not_pythons():
    def shadowing(range):
        for k in range(3):
            yield k, k

    def plain(n):
        for k in range(3, n):
            for m in range(*n):
                yield k, m, range(3)

    def rewritten(function):
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        Ranges(function)(tree)
        return ast.unparse(tree)

    assert "xdev" not in rewritten(shadowing)
    text = rewritten(plain)
    assert text.count("xdev") == 1
    assert "for k in xdev_range(3, n)" in text


def test_arrays_of_more_than_31_bits(device):
    @xdev.kernel
    def ends(i, x, out):
        out[i, 0] = x[i] + x[2**31 + i]
        out[i, 1] = x[-1 - i] + x[i - 2**31]
        out[i, 2] = x.shape[0]

    (whole,) = there(device, np.ones(1, np.int8))
    xp = xdev.namespace(whole)
    x = xp.broadcast_to(whole, (2**31 + 5,))
    (out,) = there(device, np.zeros((5, 3), np.int64))

    ends[5](x, out)

    assert xdev.to_numpy(out).tolist() == [[2, 2, 2**31 + 5]] * 5


def test_grids_of_more_than_31_bits(device):
    start = 2**31 if device == "cuda" else 3000

    @xdev.kernel
    def last(i, start, out):
        if i >= start:
            out[i - start] = i

    (out,) = there(device, np.zeros(5, np.int64))

    last[start + 5](start, out)

    assert xdev.to_numpy(out).tolist() == [start + k for k in range(5)]


def test_one_kernel_runs_over_narrow_and_wide_grids(device):
    @xdev.kernel
    def number(i, j, out):
        out[i, j] = i * 10 + j

    for height, block in [(3, (8, 32)), (70_000, (1, 4)), (4, (1, 4))]:
        (out,) = there(device, np.zeros((height, 3), np.int64))

        number[(height, 3), block](out)

        i, j = np.indices((height, 3))
        np.testing.assert_array_equal(xdev.to_numpy(out), i * 10 + j)
