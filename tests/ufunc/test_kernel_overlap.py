"""Kernels whose arrays share memory, and those whose arrays do not."""

import itertools

import numpy as np
import pytest

import xdev

N = 203


@xdev.kernel
def rewritten(i, x, y, out):
    out[i] = 2 * x[i] + 1
    y[i] = x[i] + 3  # of what the line before wrote, where out is x


@xdev.kernel
def doubled(i, x, out):
    out[i] = 2 * x[i]


@xdev.kernel
def product(i, j, x, y, out):
    for k in range(x.shape[1]):
        out[i, j] += x[i, k] * y[k, j]


def one_by_one(x, y, out):
    for i in range(out.size):
        out[i] = 2 * x[i] + 1
        y[i] = x[i] + 3


@pytest.fixture
def alone(monkeypatch):
    """Let one thread run the points, in their order."""
    monkeypatch.setattr("xdev._config.num_threads", lambda: 1)


@pytest.mark.parametrize("places", list(itertools.product(range(3), repeat=3)))
def test_arrays_that_are_the_same_are_read_as_written(device, places):
    ours, plain = ([np.arange(k, k + N, dtype="f4") for k in range(3)] for _ in "ab")
    there = [xdev.asarray(x, device=device, copy=True) for x in ours]

    rewritten[N](*(there[k] for k in places))
    one_by_one(*(plain[k] for k in places))

    for found, expected in zip(there, plain, strict=True):
        np.testing.assert_array_equal(xdev.to_numpy(found), expected)


STARTS = (0, 1, 3, N - 1, N, N + 1, 2 * N)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("steps", list(itertools.product((1, -1, 2), repeat=2)))
def test_any_views_of_one_memory(steps):
    """In one thread a point sees what those before it wrote, as in Python."""

    def views(of, starts):
        return [
            of[start : start + N * abs(step)][::step]
            for start, step in zip(starts, steps, strict=True)
        ]

    for starts in itertools.product(STARTS, repeat=2):
        memory = np.arange(5.0 * N)
        expected = memory.copy()
        doubled[N](*views(memory, starts))
        x, out = views(expected, starts)
        for i in range(N):
            out[i] = 2 * x[i]

        np.testing.assert_array_equal(memory, expected, str(starts))


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (33, 20)])
def test_a_sum_in_an_array_that_is_also_a_factor(shape):
    h, w = shape
    x, out = np.ones((h, h)), np.zeros((h, w))
    y = np.arange(1.0, h * w + 1).reshape(h, w)
    product[h, w](x, y, out)
    np.testing.assert_allclose(out, x @ y)

    expected = y.copy()
    for i, j, k in itertools.product(range(h), range(w), range(h)):
        expected[i, j] += x[i, k] * expected[k, j]
    product[h, w](x, y, y)
    np.testing.assert_allclose(y, expected)


def test_arrays_without_elements_overlap_nothing(device):
    x = xdev.zeros(0, device=device)
    doubled[0](x, x)
    product[2, 0](*(xdev.zeros(s, device=device) for s in ((2, 0), (0, 0), (2, 0))))
