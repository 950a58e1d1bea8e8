"""Copies between two GPUs, by the streams of both."""

import numpy as np
import pytest

import xdev

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("cuda")]

MIB = 1 << 20


def values(n, dtype="float32"):
    return (np.random.default_rng(5).standard_normal(n) * 100).astype(dtype)


@pytest.fixture
def two():
    """Two CUDA devices."""
    both = [device for device in xdev.devices() if device.type == "cuda"][:2]
    if len(both) < 2:
        pytest.skip("there is one CUDA device")
    return both


@pytest.mark.parametrize("current", [0, 1])
@pytest.mark.parametrize("out", [False, True])
def test_peers_copy_in_both_directions(two, current, out):
    import cupy

    x = values((2000, 1500))
    with cupy.cuda.Device(current):
        for source, target in (two, two[::-1]):
            there = xdev.to_device(x, source)
            for view in (there, there.T, there[::2, ::3]):
                made = (
                    xdev.empty(view.shape, dtype=xdev.float64, device=target)
                    if out
                    else None
                )
                moved = xdev.to_device(view, target, out=made)
                assert xdev.device_of(moved) == target
                np.testing.assert_array_equal(xdev.to_numpy(moved), xdev.to_numpy(view))


def test_a_peers_source_may_be_dropped_at_once(two):
    first, second = two
    expected = values(16 * MIB)
    for _ in range(5):
        there = xdev.to_device(expected, first)
        moved = xdev.to_device(there, second)
        del there
        for _ in range(3):  # would reuse the memory, were it free
            xdev.full(expected.shape, -1.0, dtype=xdev.float32, device=first)
        np.testing.assert_array_equal(xdev.to_numpy(moved), expected)


def test_pinned_memory_serves_the_streams_of_both(two):
    expected = values(8 * MIB)
    for device in two * 3:
        pinned = xdev.pin(expected)
        there = xdev.to_device(pinned, device, non_blocking=True)
        del pinned
        xdev.empty_pinned(8 * MIB, "float32")[:] = -1
        np.testing.assert_array_equal(xdev.to_numpy(there), expected)
