"""What ``full`` and ``full_like`` are filled with."""

import numpy as np
import pytest

import xdev


def host(x):
    return xdev.to_numpy(x)


@pytest.mark.parametrize("value", [True, 3, 2.5, 1 + 2j, -0.0, complex(-0.0, 0.0)])
def test_full_takes_the_type_and_sign_of_its_value(device, value):
    wanted = np.full((2,), value)

    for made in (
        xdev.full((2,), value, device=device),
        xdev.full_like(xdev.asarray(wanted, device=device), value),
        xdev.asarray([value, value], device=device),
    ):
        assert made.dtype == wanted.dtype
        assert host(made).tobytes() == wanted.tobytes()


def test_a_fill_value_of_another_device_does_not_come_unasked():
    value = xdev.asarray(7.0, device="fake:1")
    like, there = np.ones(2), xdev.ones(2, device="fake")
    way = r".*xdev\.to_device\(fill_value, '{0}'\)"
    other = rf"fill_value \(.*FakeArray\) is on fake:1, .* on {{0}}{way}"
    for make, target in (
        (lambda: xdev.full(2, value, device="cpu"), "cpu"),
        (lambda: xdev.full(2, value, dtype=xdev.float32, device="cpu"), "cpu"),
        (lambda: xdev.full(2, value, device="fake"), "fake:0"),
        (lambda: xdev.full_like(there, value, device="cpu"), "cpu"),
    ):
        with pytest.raises(xdev.DeviceMismatchError, match=other.format(target)):
            make()
    other = rf"x \(.*\) is on {{0}}, fill_value \(.*\) is on fake:1{way}"
    for x, target in ((like, "cpu"), (there, "fake:0")):
        with pytest.raises(xdev.DeviceMismatchError, match=other.format(target)):
            xdev.full_like(x, value)
    with xdev.use_device("fake:1"):
        assert host(xdev.full(2, value)).tolist() == [7, 7]
        assert host(xdev.full_like(like, value, device="fake:1")).tolist() == [7, 7]


def test_a_fill_value_that_does_not_fit_is_refused(device):
    with pytest.raises(OverflowError):
        xdev.full(3, 300, dtype=xdev.int8, device=device)
    with pytest.raises(OverflowError, match=r"integer of 71 bits.*give dtype="):
        xdev.full(3, 2**70, device=device)
    large = xdev.full(3, 2**70, dtype=xdev.float64, device=device)
    assert host(large).tolist() == [2.0**70] * 3


@pytest.mark.parametrize("value", [np.float32(1.5), np.asarray(1.5), np.True_])
def test_0d_host_arrays_fill_arrays_of_every_device(device, value):
    made = xdev.full(2, value, device=device)

    assert made.dtype == value.dtype
    np.testing.assert_array_equal(host(made), np.full(2, value))
    np.testing.assert_array_equal(
        host(xdev.full_like(xdev.zeros(2, device=device), value)), np.full(2, value)
    )


def test_a_0d_array_of_the_device_fills(device):
    value = xdev.asarray(7, dtype=xdev.int16, device=device)

    made = xdev.full(2, value, device=device)

    assert made.dtype == xdev.int16
    assert host(made).tolist() == [7, 7]
