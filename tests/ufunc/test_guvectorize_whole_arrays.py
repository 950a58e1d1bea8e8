"""Assignments to whole arrays inside ``@guvectorize``, against NumPy's."""

# ruff: noqa: ARG001 - functions of one layout

import numpy as np
import pytest

import xdev


def copied(x, y, out):
    out[:] = x


def shifted(x, y, out):
    m = x.mean()
    out[...] = (x - m) / (2 + y[0]) - y[:]


def compared(x, y, out):
    out[:] = x > y


def functions(x, y, out):
    out[:] = np.sqrt(abs(x) + abs(x[0]) + np.maximum(x, 0.5)) * np.where(x > y, -x, y)


def in_place(x, y, out):
    out[:] = 1.0
    out[:] += x * x.sum()
    out[:] = out - out[0] * y
    out += y
    out /= 3 + abs(out[0])


def by_parts(x, y, out):
    out[:] = 0.0
    out[1:] = 2.0


@pytest.mark.parametrize(
    "function", [copied, shifted, compared, functions, in_place, by_parts]
)
@pytest.mark.parametrize(("dtype", "n"), [("float64", 1), ("int64", 5)])
def test_of_one_shape(function, dtype, n, device):
    x, y = (np.random.default_rng(0).integers(-9, 9, (2, 3, n)) + 0.25).astype(dtype)
    expected = np.empty((3, n))
    for k in range(3):
        function(x[k], y[k], expected[k])

    out = xdev.zeros((3, n), device=device)
    xdev.guvectorize("(n),(n)->(n)")(function)(
        xdev.asarray(x, device=device), xdev.asarray(y, device=device), out
    )

    np.testing.assert_allclose(xdev.to_numpy(out), expected, rtol=1e-13)


def test_of_two_dimensions_and_of_the_last_alone(device):
    @xdev.guvectorize("(m,n),(n),()->(m,n),(n)")
    def scaled(x, y, s, out, last):
        out[:, :] = x * y + s
        last[:] = y
        out[:] -= last

    x, y = np.arange(12.0).reshape(2, 2, 3), np.array([1.0, 2.0, 3.0])
    out, last = scaled(*(xdev.asarray(each, device=device) for each in (x, y)), 0.5)

    np.testing.assert_allclose(xdev.to_numpy(out), x * y + 0.5 - y)
    np.testing.assert_allclose(xdev.to_numpy(last), np.broadcast_to(y, (2, 3)))


def of_another_length(x, y, out):
    out[:] = y


def of_a_part(x, y, out):
    part = x[1:]
    out[:] = part * 2


def bound_anew(x, y, out):
    x = y
    out[:] = x


def added(x, y, out):
    out[:] = 0.0
    out += y


def added_parts(x, y, out):
    out[:] = x
    out += y[1:]


@pytest.mark.parametrize(
    "function", [of_another_length, of_a_part, bound_anew, added, added_parts]
)
def test_what_may_have_another_shape_is_refused(function, device):
    x, y = np.ones(3), np.ones(2)

    with pytest.raises(
        TypeError,
        match=r"elements are assigned in a loop|one element is|iadd of an array",
    ):
        xdev.guvectorize("(n),(m)->(n)")(function)(
            xdev.asarray(x, device=device), xdev.asarray(y, device=device)
        )
