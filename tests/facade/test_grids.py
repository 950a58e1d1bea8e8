"""Ranges: NumPy's values, from numbers of the host alone."""

from fractions import Fraction

import numpy as np
import pytest

import xdev


def host(x):
    return xdev.to_numpy(x)


@pytest.mark.parametrize(
    ("args", "kw"),
    [
        ((5,), {}),
        ((2, 9), {}),
        ((9, 2, -3), {}),
        ((0.5, 3.1, 0.2), {}),
        ((0,), {}),
        ((5,), {"dtype": "float32"}),
        ((1, 4), {"step": 2}),
    ],
)
def test_arange_agrees_with_numpy(device, args, kw):
    np.testing.assert_allclose(
        host(xdev.arange(*args, device=device, **kw)),
        np.arange(*args, **kw),
        rtol=1e-15,
        atol=1e-15,
    )


@pytest.mark.parametrize("step", [0, 0.0, -0.0, False, np.float32(0), np.int8(0)])
@pytest.mark.parametrize("bounds", [(10,), (0, 10), (5, 5), (0.5, 3)])
@pytest.mark.parametrize("kw", [{}, {"dtype": "float32"}])
def test_a_step_of_zero_is_refused(device, bounds, step, kw):
    with pytest.raises(ValueError, match=r"xdev\.arange: step is .* use another"):
        xdev.arange(*bounds, step=step, device=device, **kw)


@pytest.mark.parametrize("place", ["start", "stop", "step"])
@pytest.mark.parametrize(
    "odd", ["a", np.str_("a"), [1], np.array([1]), np.ones((2, 2))]
)
def test_what_is_no_number_of_a_range_is_named(device, place, odd):
    given = {"start": 0, "stop": 5, "step": 1, place: odd}

    with pytest.raises(
        TypeError, match=rf"xdev\.arange: {place} is an object of .*give"
    ):
        xdev.arange(*given.values(), device=device)
    if place != "stop":
        del given["stop"]
        with pytest.raises(TypeError, match=rf"xdev\.arange: {place} is an object of"):
            xdev.arange(given["start"], step=given["step"], device=device)


@pytest.mark.parametrize("place", ["start", "stop", "step"])
@pytest.mark.parametrize("here", [None, "cpu", "fake"])
def test_a_number_of_a_range_on_a_device_stays_there(device, place, here):
    there = "fake" if device == "cpu" else device
    given = {"start": 0, "stop": 5, "step": 1}
    given[place] = xdev.asarray(1, device=there)

    with (
        xdev.transfer_guard("disallow"),
        pytest.raises(TypeError, match=rf"of the host, float\({place}\)"),
    ):
        xdev.arange(*given.values(), device=here)


@pytest.mark.parametrize("one", [np.array(2), np.float32(2), Fraction(2), True])
def test_other_numbers_of_the_host_make_ranges(device, one):
    made = xdev.arange(one, 9, one, dtype="float64", device=device)

    np.testing.assert_array_equal(host(made), np.arange(int(one), 9, int(one)))


@pytest.mark.parametrize("place", ["start", "stop", "step"])
@pytest.mark.parametrize("kind", [float, np.float32])
def test_a_range_of_nan_is_refused(device, place, kind):
    given = {"start": 0, "stop": 5, "step": 1, place: kind("nan")}

    with pytest.raises(ValueError, match=rf"xdev\.arange: {place} is nan"):
        xdev.arange(*given.values(), device=device)


@pytest.mark.parametrize("bounds", [(np.inf,), (0, np.inf), (-np.inf, 0)])
def test_a_range_without_end_is_refused(device, bounds):
    with pytest.raises(ValueError, match=r"xdev\.arange: \w+ is -?inf"):
        xdev.arange(*bounds, device=device)
