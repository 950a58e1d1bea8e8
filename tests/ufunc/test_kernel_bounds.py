"""Accesses out of bounds are named under ``XDEV_DEBUG=1``, and on fake devices."""

import numpy as np
import pytest
from running import there, without_source

import xdev

pytestmark = pytest.mark.usefixtures("debugging")


@xdev.kernel
def shifted(i, x, out):
    out[i] = x[i + 2]


def test_kernel_array_index_and_point_are_named(device):
    x, out = there(device, np.arange(5.0), np.zeros(5))

    shifted[3](x, out)
    assert xdev.to_numpy(out).tolist() == [2, 3, 4, 0, 0]
    for _ in range(3):
        with pytest.raises(IndexError) as caught:
            shifted[4](x, out)

    expected = "shifted: x has 5 elements along axis 0, and the index there is 5, at "
    assert str(caught.value) == expected + "point (3)"


def both_axes(i, j, x, out):
    out[0] = x[i, j]


def updating(i, x, out):
    xdev.atomic.add(x, (0, i), 1.0)
    out[0] += 1


def backwards(i, x, out):
    place = -i - 1, 0
    out[0] = x[place]


@pytest.mark.parametrize(
    ("function", "shape", "extents", "axis", "index"),
    [
        (both_axes, (3, 4), (3, 5), 1, 4),
        (updating, (3, 4), 5, 1, 4),
        (backwards, (3, 4), 4, 0, -4),
    ],
)
def test_every_kind_of_index_is_seen(device, function, shape, extents, axis, index):
    x, out = there(device, np.zeros(shape), np.zeros(1))

    with pytest.raises(IndexError, match=f"x has . .* axis {axis}, .* is {index}, at"):
        xdev.kernel(function)[extents](x, out)


def test_fake_devices_check_always(not_debugging):  # noqa: ARG001
    x, out = there("fake", np.arange(5), np.zeros(5, np.int64))
    with pytest.raises(IndexError, match=r"x has 5 elements .* is 5, at point \(3\)"):
        xdev.kernel(shifted.function)[4](x, out)  # anew: nothing is compiled yet


@pytest.mark.parametrize("device", ["cpu", "fake"])
def test_where_nothing_is_checked_the_callers_line_is_told_so(device):
    copied = without_source("def copied(i, x, out):\n    out[i] = x[i]", "copied")
    x, out = there(device, np.ones(3), np.zeros(3))

    with pytest.warns(RuntimeWarning, match="copied: no source, so that no b") as told:
        xdev.kernel(copied)[3](x, out)

    assert told[0].filename == __file__
    assert xdev.to_numpy(out).tolist() == [1, 1, 1]
