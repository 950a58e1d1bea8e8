"""``f.at`` of many indices on the CPU: one after the other, as NumPy's."""

import warnings

import numpy as np
import pytest
from running import add

import xdev

N, COUNT = 37, 900


def mixed(x, y):
    return x * y + 2 - x


mix = xdev.vectorize(mixed)
flip = xdev.vectorize(lambda x: 1 - x)
compare = xdev.vectorize(lambda x, y: x < y)
quotient = xdev.vectorize(lambda x, y: x / y)


INDICES = np.random.default_rng(0).integers(-N, N, COUNT)


def numbers(dtype, n):
    x = np.random.default_rng(n).integers(0, 3, n)
    return (x * (1 + 0.5j) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def model(f, a, indices, *values):
    """Compute one element after the other, in the dtype of ``a``."""
    values = [np.broadcast_to(x, indices.shape) for x in values]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of overflow
        for k, index in enumerate(indices):
            a[index] = f(a[index], *(x[k] for x in values))


def same(a, expected):
    np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize("dtype", ["i1", "u2", "i8", "f2", "f4", "c16"])
def test_any_dtype(dtype):
    values = numbers(dtype, COUNT)
    for ufunc, given in ((add, (values,)), (mix, (values[:1] * 0,)), (flip, ())):
        a = numbers(dtype, N)
        expected = a.copy()
        function = ufunc.__wrapped__
        operands = [np.broadcast_to(x, COUNT).copy() for x in given]

        assert ufunc.at(a, INDICES, *operands) is None

        model(function, expected, INDICES, *operands)
        same(a, expected)


@pytest.mark.parametrize("dtype", ["u1", "i4", "u4", "i8", "u8", ">i8"])
def test_any_indices(dtype):
    indices = np.abs(INDICES[1:-1]) % N
    a = np.zeros(N)
    for given in (indices, indices[::-1], indices[::3], indices.tolist(), (indices,)):
        there = given
        if isinstance(given, np.ndarray):
            room = np.zeros(2 * len(given), dtype)
            there = room[::2]
            there[...] = given
        add.at(a, there, 1.0)
        add.at(a, there, np.float64(1))
        add.at(a, there, np.asarray(1.0))
    counts = np.bincount(indices, minlength=N) * 4
    counts += np.bincount(indices[::3], minlength=N)
    same(a, 3.0 * counts)


RISING = np.arange(COUNT)[::-1] // 2


@pytest.mark.parametrize(
    ("functions", "make", "indices", "values"),
    [
        ((add, np.add), lambda: np.zeros(N, "f4"), INDICES, np.arange(COUNT) / 3),
        ((add, np.add), lambda: np.zeros(COUNT), np.arange(COUNT) % 3 == 0, 2.0),
        ((compare, np.less), lambda: np.zeros(N, bool), INDICES, RISING % 3 == 0),
        ((add, np.add), lambda: numbers("i8", COUNT) + 1, RISING, ...),
        ((add, np.add), lambda: numbers("i8", COUNT) + 1, ..., 1),
    ],
    ids=["cast", "a mask", "bools", "values overlap", "indices overlap"],
)
def test_values_indices_and_overlap_are_as_numpys(functions, make, indices, values):
    arrays = make(), make()
    for function, a in zip(functions, arrays, strict=True):
        function.at(a, *(a if x is ... else x for x in (indices, values)))
    same(*arrays)


def test_what_does_not_fit_is_refused_as_before():
    a = np.zeros(N)
    with pytest.raises(ValueError, match="broadcast"):
        add.at(a, INDICES, np.ones(COUNT - 1))
    same(a, 0)


def test_parts_of_arrays_and_values_at_strides():
    values = numbers("f8", 2 * COUNT)
    room = np.zeros((N, 2))
    add.at(room[::-1, 1], INDICES, values[::-2])

    expected = np.zeros(N)
    model(np.add, expected, INDICES, values[::-2])
    same(room[::-1, 1], expected)
    same(room[:, 0], 0)
    table = np.zeros((N, 2))
    add.at(table, INDICES, 1.0)
    same(table[:, 0], table[:, 1])
    assert table.sum() == 2 * COUNT


@pytest.mark.parametrize("wrong", [N, -N - 1])
def test_an_index_out_of_bounds_changes_nothing(wrong):
    indices, a = INDICES.copy(), np.zeros(N)
    indices[-1] = wrong

    with pytest.raises(IndexError, match="out of bounds"):
        add.at(a, indices, 1.0)

    same(a, 0)


def test_floating_point_errors_are_told_once():
    a, zeros = np.ones(N), np.zeros(COUNT)
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in") as told:
        quotient.at(a, INDICES[:600] * 0, zeros[:600])
    assert [w for w in told if "divide" in str(w.message)][1:] == []
    assert a[0] == np.inf
    with pytest.raises(FloatingPointError), np.errstate(divide="raise"):
        quotient.at(np.ones(N), INDICES, zeros)
    with np.errstate(all="raise"):
        quotient.at(np.ones(N), INDICES, zeros + 2)
