"""Ranges and matrices: NumPy's values, from numbers of the host alone."""

from fractions import Fraction

import numpy as np
import pytest
from running import host

import xdev

FAKE = "an array of a device"
ODD_COUNTS = [2.5, "a", (2, 3), [2], np.array([1.5, 2.5]), np.array([1, 2])]
NO_NUMBERS = ["a", np.str_("a"), [1], np.array([1]), np.ones((2, 2))]


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
        *(
            ((one, 9, one), {"dtype": "float64"})
            for one in (np.array(2), np.float32(2), Fraction(2), True)
        ),
    ],
)
def test_arange_agrees_with_numpy(device, args, kw):
    made = host(xdev.arange(*args, device=device, **kw))
    np.testing.assert_allclose(made, np.arange(*args, **kw), rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("step", [0, 0.0, -0.0, False, np.float32(0), np.int8(0)])
@pytest.mark.parametrize("bounds", [(10,), (0, 10), (5, 5), (0.5, 3)])
@pytest.mark.parametrize("kw", [{}, {"dtype": "float32"}])
def test_a_step_of_zero_is_refused(device, bounds, step, kw):
    with pytest.raises(ValueError, match=r"xdev\.arange: step is .* use another"):
        xdev.arange(*bounds, step=step, device=device, **kw)


@pytest.mark.parametrize("place", ["start", "stop", "step"])
def test_what_is_no_number_of_a_range_is_named(device, place):
    numbers = {"start": 0, "stop": 5, "step": 1}
    there = xdev.asarray(1, device="fake" if device == "cpu" else device)
    for odd in (*NO_NUMBERS, there):
        text = rf"xdev\.arange: {place} is not a number but .*give"
        if odd is there:
            text += rf" one of the host, float\({place}\)"
        for here in (None, device, "cpu", "fake"):
            with (
                xdev.transfer_guard("disallow"),
                pytest.raises(TypeError, match=text),
            ):
                xdev.arange(*(numbers | {place: odd}).values(), device=here)
        if place != "stop":
            given = {"start": 0, "step": 1, place: odd}
            with pytest.raises(TypeError, match=text):
                xdev.arange(given["start"], step=given["step"], device=device)
    for kind in (float, np.float32):
        with pytest.raises(ValueError, match=rf"xdev\.arange: {place} is nan"):
            xdev.arange(*(numbers | {place: kind("nan")}).values(), device=device)


@pytest.mark.parametrize("bounds", [(np.inf,), (0, np.inf), (-np.inf, 0)])
def test_a_range_without_end_is_refused(device, bounds):
    with pytest.raises(ValueError, match=r"xdev\.arange: \w+ is -?inf"):
        xdev.arange(*bounds, device=device)


@pytest.mark.parametrize(
    "args",
    [
        *((0, 5, 10**400), (10**20, 10**20 + 3), (0, 10**20, 10**19)),
        *((0, -(10**20), -(10**19)), (Fraction(1, 2), 3)),
    ],
)
def test_a_range_that_no_data_type_holds_is_refused(args):
    for device in ("cpu", "fake"):
        with pytest.raises((OverflowError, TypeError), match=r"dtype=xdev\.float64"):
            xdev.arange(*args, device=device)
        made = host(xdev.arange(*args, dtype="float64", device=device))
        np.testing.assert_array_equal(made, np.arange(*args, dtype="float64"))


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("num", [0, 1, 7, np.int8(100)])
def test_linspace_agrees_with_numpy(device, endpoint, num):
    made = host(xdev.linspace(-1, 2, num, endpoint=endpoint, device=device))
    wanted = np.linspace(-1, 2, num, endpoint=endpoint)
    np.testing.assert_allclose(made, wanted, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("rows", [0, 1, 4, np.int64(3), np.uint8(20), np.int8(100)])
@pytest.mark.parametrize("columns", [None, 0, 3, 5, 300])
@pytest.mark.parametrize("k", [-9, -2, 0, 1, 9, np.int8(-128)])
def test_eye_agrees_with_numpy(device, rows, columns, k):
    made = host(xdev.eye(rows, columns, k=k, device=device))
    wide = int(rows) if columns is None else columns
    np.testing.assert_array_equal(made, np.eye(int(rows), wide, int(k)))


@pytest.mark.parametrize("odd", [*ODD_COUNTS, FAKE], ids=str)
def test_sizes_that_are_no_whole_number_are_named(device, odd):
    x = xdev.asarray([1.0, 2.0], device="fake") if odd is FAKE else odd
    for text, call in {
        r"eye: n_rows is .*": lambda: xdev.eye(x, device=device),
        r"eye: n_cols is .*": lambda: xdev.eye(2, x, device=device),
        r"eye: k is .*": lambda: xdev.eye(2, k=x, device=device),
        r"linspace: num is .*": lambda: xdev.linspace(0, 1, x, device=device),
    }.items():
        with pytest.raises(TypeError, match=rf"xdev\.{text}: give a whole"):
            call()


def test_a_count_on_a_device_is_told_how_it_comes_to_the_host():
    count = xdev.asarray(3, device="fake")

    for device in ("cpu", "fake"):
        with pytest.raises(TypeError, match=r"of the host, int\(num\)"):
            xdev.linspace(0, 1, count, device=device)
        for call in (xdev.zeros, lambda n, device: xdev.full((2, n), 1, device=device)):
            with pytest.raises(TypeError, match="is not a shape"):
                call(count, device=device)
    with pytest.raises(TypeError, match=r"start is .*of the host, float\(start\)"):
        xdev.linspace(count, 1, 5, device="cpu")
