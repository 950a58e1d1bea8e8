"""Integers that count stay integers beside floats: ends of loops, and indices."""

import numpy as np
import pytest

import xdev


@xdev.vectorize
def powers(z, n):
    total = z
    for _ in range(n):
        total = total * z + 1
    return total


@xdev.guvectorize("(n),()->()")
def looked_up(x, k, out):
    out[0] = x[k - 1] * 10


@xdev.vectorize
def averaged(x, n):
    total = x - x
    for k in range(1, n + 1):
        total += x * k
    return total / n


@pytest.mark.parametrize("char", "efdFD")
@pytest.mark.parametrize("count", [3, np.int64(3), np.uint8(3)], ids=repr)
def test_ends_of_loops_leave_the_dtype_alone(device, char, count):
    x = np.array([0.5, -1, 2], char)
    there = xdev.asarray(x, device=device)
    wide = ((x * x + 1) * x + 1) * x + 1

    found = xdev.to_numpy(powers(there, count))

    assert found.dtype.char == char
    np.testing.assert_array_equal(found, wide)


def test_indices_are_integers_beside_floats(device):
    x = xdev.asarray(np.array([[1, 2], [3, 4]], "f"), device=device)

    found = xdev.to_numpy(looked_up(x, 2))

    assert found.dtype == "f"
    assert found.tolist() == [20, 40]


def test_what_also_computes_is_an_integer_of_64_bits(device):
    x = xdev.asarray(np.array([1, 2], "f"), device=device)

    found = xdev.to_numpy(averaged(x, 4))

    assert found.dtype == np.result_type(np.float32, np.int64)
    assert found.tolist() == [2.5, 5]


def test_an_integer_array_is_taken_as_it_is(device):
    x, n = np.array([1, 2], "f"), np.array([0, 2], "i")

    found = powers(*(xdev.asarray(each, device=device) for each in (x, n)))

    assert xdev.to_numpy(found).dtype == "f"
    assert xdev.to_numpy(found).tolist() == [1, 11]


def test_integers_count_inside_other_ufuncs(device):
    outer = xdev.vectorize(lambda x: powers(x, 2) * 0.5)
    x = xdev.asarray(np.array([1, 2], "f"), device=device)

    assert xdev.to_numpy(outer(x)).dtype == "f"
    assert xdev.to_numpy(outer(x)).tolist() == [1.5, 5.5]


def moving_mean(values, window, out):
    """Numba's example of a generalized ufunc with a number."""
    total, count = 0.0, 0
    for k in range(window):
        total += values[k]
        count += 1
        out[k] = total / count
    for k in range(window, len(values)):
        total += values[k] - values[k - window]
        out[k] = total / count


def means(x, window):
    before = [np.mean(x[: k + 1]) for k in range(window)]
    return before + [np.mean(x[k - window + 1 : k + 1]) for k in range(window, len(x))]


@pytest.mark.parametrize("char", "fd")
def test_numbas_moving_mean_takes_a_python_integer(device, char):
    f = xdev.guvectorize("(n),()->(n)")(moving_mean)
    x = np.arange(12, dtype=char) ** 2

    found = xdev.to_numpy(f(xdev.asarray(x, device=device), 3))

    assert found.dtype == char
    np.testing.assert_allclose(found, means(x, 3), 1e-6)
