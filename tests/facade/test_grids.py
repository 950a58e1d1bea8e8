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
        TypeError, match=rf"xdev\.arange: {place} is not a number but .*give"
    ):
        xdev.arange(*given.values(), device=device)
    if place != "stop":
        del given["stop"]
        with pytest.raises(TypeError, match=rf"xdev\.arange: {place} is not a number"):
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


@pytest.mark.parametrize(
    "args",
    [
        (0, 5, 10**400),
        (10**20, 10**20 + 3),
        (0, 10**20, 10**19),
        (0, -(10**20), -(10**19)),
        (Fraction(1, 2), 3),
    ],
)
def test_a_range_that_no_data_type_holds_is_refused(args):
    for device in ("cpu", "fake"):
        with pytest.raises((OverflowError, TypeError), match=r"dtype=xdev\.float64"):
            xdev.arange(*args, device=device)
        made = host(xdev.arange(*args, dtype="float64", device=device))
        np.testing.assert_array_equal(made, np.arange(*args, dtype="float64"))


ODD_COUNTS = [2.5, "a", (2, 3), [2], np.array([1.5, 2.5]), np.array([1, 2])]


@pytest.mark.parametrize("odd", ODD_COUNTS, ids=str)
def test_sizes_that_are_no_whole_number_are_named(device, odd):
    there = xdev.asarray([1.0, 2.0], device="fake")
    for x in (odd, there):
        with pytest.raises(TypeError, match=r"xdev\.eye: n_rows is .*: give a whole"):
            xdev.eye(x, device=device)
        with pytest.raises(TypeError, match=r"xdev\.eye: n_cols is .*: give a whole"):
            xdev.eye(2, x, device=device)
        with pytest.raises(TypeError, match=r"xdev\.linspace: num is .*: give a whole"):
            xdev.linspace(0, 1, x, device=device)


@pytest.mark.parametrize("odd", [1.5, "a", np.array([0, 1])], ids=str)
def test_a_diagonal_that_is_no_whole_number_is_named(odd):
    for device in ("cpu", "fake"):
        with pytest.raises(TypeError, match=r"xdev\.eye: k is .*: give a whole"):
            xdev.eye(2, k=odd, device=device)


def test_a_count_on_a_device_is_told_how_it_comes_to_the_host():
    count = xdev.asarray(3, device="fake")

    for device in ("cpu", "fake"):
        with pytest.raises(TypeError, match=r"of the host, int\(num\)"):
            xdev.linspace(0, 1, count, device=device)
        with pytest.raises(TypeError, match="is not a shape"):
            xdev.zeros(count, device=device)
        with pytest.raises(TypeError, match="is not a shape"):
            xdev.full((2, count), 1.0, device=device)
    with pytest.raises(TypeError, match=r"start is .*of the host, float\(start\)"):
        xdev.linspace(count, 1, 5, device="cpu")


@pytest.mark.parametrize("whole", [3, np.int64(3), np.uint8(20), np.int8(100)])
def test_whole_numbers_of_every_type_are_sizes(device, whole):
    n = int(whole)
    np.testing.assert_array_equal(host(xdev.eye(whole, device=device)), np.eye(n))
    for k in (type(whole)(7), np.int8(-128)):
        np.testing.assert_array_equal(
            host(xdev.eye(300, whole, k=k, device=device)), np.eye(300, n, k=int(k))
        )
    np.testing.assert_array_equal(
        host(xdev.linspace(0, 1, whole, device=device)), np.linspace(0, 1, n)
    )
