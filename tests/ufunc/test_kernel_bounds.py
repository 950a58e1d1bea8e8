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
    with pytest.raises(IndexError) as caught:
        shifted[4](x, out)

    expected = "shifted: x has 5 elements along axis 0, and the index there is 5, at "
    assert str(caught.value) == expected + "point (3)"


def both_axes(i, j, x, out):
    out[0] = x[i, j]


def from_the_end(i, x, out):
    out[0] = x[-i - 1, 0]


def beside_a_slice(i, x, out):
    out[0] = x[:, i][0]


def by_a_tuple(i, x, out):
    place = i, 0
    out[0] = x[place]


def updating(i, x, out):
    xdev.atomic.add(x, (0, i), 1.0)
    out[0] += 1


def by_another_name(i, x, out):
    y = x
    z = y
    out[0] = z[i, 0]


@pytest.mark.parametrize(
    ("function", "shape", "extents", "axis", "index"),
    [
        (both_axes, (3, 4), (3, 5), 1, 4),
        (from_the_end, (3, 4), 4, 0, -4),
        (beside_a_slice, (3, 4), 5, 1, 4),
        (by_a_tuple, (3, 4), 4, 0, 3),
        (updating, (3, 4), 5, 1, 4),
        (by_another_name, (3, 4), 4, 0, 3),
    ],
)
def test_every_kind_of_index_is_seen(device, function, shape, extents, axis, index):
    x, out = there(device, np.zeros(shape), np.zeros(1))

    with pytest.raises(IndexError, match=f"x has . .* axis {axis}, .* is {index}, at"):
        xdev.kernel(function)[extents](x, out)


@pytest.mark.parametrize("mode", ["debugging", "not_debugging"])
def test_fake_devices_check_always(request, mode):
    request.getfixturevalue(mode)
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


CHECKED = """
import numpy as np
import xdev

@xdev.kernel
def count(i, index, out):
    out[index[i]] += 1

index, out = np.arange(9), np.zeros(10)
for _ in range(5):
    count[9](index, out)
index[3] = 10
for _ in range(4):
    try:
        count[9](index, out)
    except IndexError as error:
        print("refused")
"""


def test_every_call_is_checked(python, tmp_path):
    program = tmp_path / "checked.py"  # since checks need a source
    program.write_text(CHECKED, encoding="utf-8")
    assert python(program, XDEV_DEBUG="1").stdout == "refused\n" * 4
