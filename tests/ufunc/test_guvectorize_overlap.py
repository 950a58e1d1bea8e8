"""Outputs of generalized ufuncs that are their inputs: as if they were not."""

import numpy as np
import pytest

import xdev


@xdev.guvectorize("(n)->(n)")
def turned(x, out):
    for i in range(x.shape[0]):
        out[i] = x[x.shape[0] - 1 - i]


@xdev.guvectorize("(m,n),(n,p)->(m,p)")
def product(a, b, c):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = 0
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


@xdev.guvectorize("(n)->(n),(n)")
def both_ends(x, low, high):
    for i in range(x.shape[0]):
        low[i], high[i] = x[0], x[x.shape[0] - 1]


def sample(shape):
    return np.random.default_rng(0).integers(-4, 5, shape).astype("float64")


@pytest.mark.parametrize("shape", [(5,), (3, 4), (40, 300)], ids=str)
def test_an_out_may_be_an_input_itself(device, shape):
    x = sample(shape)
    given = xdev.asarray(x, device=device, copy=True)

    assert turned(given, out=given) is given

    np.testing.assert_array_equal(xdev.to_numpy(given), x[..., ::-1])


@pytest.mark.parametrize("view", [slice(None), ...], ids=str)
def test_an_out_may_be_both_inputs_or_a_view_of_them(device, view):
    x = sample((2, 4, 4))
    given = xdev.asarray(x, device=device, copy=True)

    product(given, given, out=given[view])

    np.testing.assert_array_equal(xdev.to_numpy(given), x @ x)


def test_the_second_out_may_be_an_input_itself(device):
    x = sample((3, 4))
    given = xdev.asarray(x, device=device, copy=True)

    low, high = both_ends(given, out=(None, given))

    assert high is given
    np.testing.assert_array_equal(xdev.to_numpy(low), x[:, :1] + np.zeros(4))
    np.testing.assert_array_equal(xdev.to_numpy(high), x[:, -1:] + np.zeros(4))


def test_an_out_may_be_an_input_along_another_axis(device):
    x = sample((4, 5))
    given = xdev.asarray(x, device=device, copy=True)

    turned(given, out=given, axis=0)

    np.testing.assert_array_equal(xdev.to_numpy(given), x[::-1])


def test_threads_may_write_to_an_input_itself():
    made = xdev.guvectorize("(n)->(n)", target="parallel")(turned)
    x = sample((300, 8))
    expected = x[:, ::-1].copy()

    made(x, out=x)

    np.testing.assert_array_equal(x, expected)
