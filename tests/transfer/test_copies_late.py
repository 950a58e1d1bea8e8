"""The CUDA route without CUDA: a stand-in for CuPy whose copies run when waited for.

What the driver promises holds, and no more: a copy from pageable memory has read it
when the call returns, one to pageable memory is done, all others are late.
"""

from functools import partial

import numpy as np
import pytest

import xdev
from xdev.errors import CaptureError
from xdev.transfer import cuda, pinned as lifetimes, staging

HOST, DEVICE = xdev.Device("cpu"), xdev.Device("cuda:0")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(staging, "DIRECT", 256 << 10)  # so that small arrays are staged


def values(shape, dtype="float32"):
    draw = np.random.default_rng(3)
    return (draw.standard_normal(shape) * 100).astype(dtype)


LAYOUTS = {
    "C": lambda x: x,
    "F": np.asfortranarray,
    "step": lambda x: x[::2, ::3],
    "reversed": lambda x: x[::-1],
    "byte-swapped": lambda x: x.astype(">f4"),
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
    "size 0": lambda x: x[:0],
    "0-d": lambda x: x[0, 0],
}
SHAPES = [(9, 13), (190, 371)]  # some KiB, which go at once, and a staged one
OUTS = {
    "none": None,
    "C": np.zeros,
    "F": lambda shape, dtype: np.zeros(shape[::-1], dtype).T,
    "strided": lambda shape, dtype: np.zeros((2, *shape, 2), dtype)[1, ..., 0],
    "cast": lambda shape, _: np.zeros(shape, "complex128"),
    "swapped": lambda shape, _: np.zeros(shape, ">f8"),
}


@pytest.mark.parametrize("shape", SHAPES, ids=["small", "staged"])
@pytest.mark.parametrize("pinned", [False, True], ids=["pageable", "pinned"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("out", ["none", "C", "F", "strided", "cast"])
def test_uploads(driver, shape, pinned, layout, out):
    x = np.asarray(LAYOUTS[layout](values(shape)))
    native = x.dtype.newbyteorder("=")
    if pinned:
        driver.pinned.append(x)
    made = OUTS[out] and OUTS[out](x.shape, native).view(driver.ndarray)

    there = cuda.copy(x, HOST, DEVICE, None, False, made)
    expected = x.copy()
    if x.flags.writeable:
        x[...] = -1  # the call has returned: it is the user's again
    driver.current.synchronize()

    assert made is None or there is made
    assert there.dtype == (native if made is None else made.dtype)
    np.testing.assert_array_equal(there.view(np.ndarray), expected)


def test_an_out_that_cannot_be_shared_says_why(driver):
    class Export:
        def __dlpack__(self, **_):
            raise BufferError("no such dtype")

        def __dlpack_device__(self):
            return 1, 0

    there = values((2, 2)).view(driver.ndarray)
    with pytest.raises(BufferError, match="no such dtype"):
        cuda.copy(there, DEVICE, HOST, None, False, Export())


@pytest.mark.parametrize("shape", SHAPES, ids=["small", "staged"])
@pytest.mark.parametrize("pinned", [False, True], ids=["pageable", "pinned"])
@pytest.mark.parametrize("layout", ["C", "F", "step", "reversed", "size 0", "0-d"])
@pytest.mark.parametrize("out", OUTS)
def test_downloads(driver, shape, pinned, layout, out):
    expected = np.asarray(LAYOUTS[layout](values(shape)))
    there = np.full_like(expected, 7, subok=False).view(driver.ndarray)
    # What is to be read is written as late as all else.
    driver.current.enqueue(partial(np.copyto, there.view(np.ndarray), expected))
    host = OUTS[out] and OUTS[out](expected.shape, expected.dtype)
    if pinned and host is not None:
        driver.pinned.append(host)

    back = cuda.copy(there, DEVICE, HOST, None, False, host)

    assert host is None or back is host
    assert type(back) is np.ndarray
    np.testing.assert_array_equal(back, expected)


@pytest.mark.parametrize("shape", SHAPES, ids=["small", "staged"])
def test_non_blocking_from_pinned_waits_for_nothing_and_keeps_the_source(driver, shape):
    x = driver.pinned_array(shape, np.dtype("float32"))
    x[...] = expected = values(shape)

    there = cuda.copy(x, HOST, DEVICE, driver.there(), True, None)

    assert driver.waits == 0
    ((_, kept),) = lifetimes._under_way
    assert any(y is x for y in kept)
    driver.streams[1].synchronize()
    np.testing.assert_array_equal(there.view(np.ndarray), expected)
    lifetimes.drop_done()
    assert not lifetimes._under_way


def test_non_blocking_from_pageable_has_read_the_source(driver):
    x = values(SHAPES[1])
    expected = x.copy()

    there = cuda.copy(x, HOST, DEVICE, None, True, None)
    x[...] = -1
    slots = [y for _, kept in lifetimes._under_way for y in kept]

    assert driver.waits == 0
    assert slots
    assert all(driver.is_pinned_address(y.ctypes.data) for y in slots)
    driver.current.synchronize()
    np.testing.assert_array_equal(there.view(np.ndarray), expected)


def test_non_blocking_downloads_land_in_pinned_memory(driver):
    there = values(SHAPES[1]).view(driver.ndarray)

    back = cuda.copy(there, DEVICE, HOST, None, True, None)

    assert driver.waits == 0
    assert driver.is_pinned_address(back.ctypes.data)
    driver.current.synchronize()
    np.testing.assert_array_equal(back, there.view(np.ndarray))


def test_a_small_pageable_upload_does_not_wait_for_the_stream(driver):
    cuda.copy(values(SHAPES[0]), HOST, DEVICE, None, False, None)
    assert driver.waits == 0

    cuda.copy(values(SHAPES[0]), HOST, DEVICE, driver.there(), False, None)
    assert driver.waits == 1, "its result is not in the current stream's order"


@pytest.mark.parametrize("layout", ["C", "F", "step"])
@pytest.mark.parametrize("out", ["none", "C", "F", "strided", "cast"])
@pytest.mark.parametrize("target", ["cuda:0", "cuda:1"])
def test_copies_between_devices(driver, layout, out, target):
    expected = np.asarray(LAYOUTS[layout](values(SHAPES[1])))
    origin = np.array(expected, order="K").view(driver.ndarray)
    made = OUTS[out] and OUTS[out](expected.shape, expected.dtype).view(driver.ndarray)

    there = cuda.copy(origin, DEVICE, xdev.Device(target), driver.there(), True, made)

    assert made is None or there is made
    assert not np.may_share_memory(there, origin)
    for stream in driver.streams:
        stream.synchronize()
    np.testing.assert_array_equal(there.view(np.ndarray), expected)


def test_the_sources_stream_goes_on_after_a_peers_copy(driver):
    origin = values(SHAPES[0]).view(driver.ndarray)
    expected = values(SHAPES[0])

    there = cuda.copy(origin, DEVICE, xdev.Device("cuda:1"), driver.there(), True, None)
    before, copies = driver.streams
    before.enqueue(lambda: origin.fill(-1))  # whoever gets the memory next
    before.synchronize()
    copies.synchronize()

    np.testing.assert_array_equal(there.view(np.ndarray), expected)


def test_overlapping_copies_on_a_device_are_right(driver):
    there = values((50, 60)).view(driver.ndarray)
    expected = there.view(np.ndarray)[::-1].copy()

    cuda.copy(there[::-1], DEVICE, DEVICE, None, False, there)

    driver.current.synchronize()
    np.testing.assert_array_equal(there.view(np.ndarray), expected)


def test_small_memory_goes_by_the_drivers_own_copy(driver):
    x = values((190, 371))[:90]  # between what is taken at once and what is staged
    assert staging.SMALL < x.nbytes < staging.DIRECT

    there = cuda.copy(x, HOST, DEVICE, None, False, None)
    assert driver.waits == 0
    back = cuda.copy(there, DEVICE, HOST, None, False, None)
    np.testing.assert_array_equal(back, x)
    assert not driver.calls("enter")
    there = cuda.copy(x, HOST, DEVICE, None, True, None)
    assert driver.calls("enter"), "the driver's own copy may wait for the stream"
    driver.current.synchronize()
    np.testing.assert_array_equal(there.view(np.ndarray), x)


@pytest.mark.parametrize("non_blocking", [False, True])
def test_a_capture_has_no_copies_of_the_host(driver, monkeypatch, non_blocking):
    """Replays would read and write memory that is others' by then."""
    x = values((9, 13))
    there = cuda.copy(x, HOST, DEVICE, None, False, None)
    stream = driver.current
    stream.is_capturing = lambda: True
    monkeypatch.setattr(cuda.live_streams, "captured", {stream.ptr})
    queued = len(stream.queue)

    for call in (
        lambda: cuda.copy(x, HOST, DEVICE, None, non_blocking, None),
        lambda: cuda.copy(there, DEVICE, HOST, None, non_blocking, None),
    ):
        with pytest.raises(CaptureError, match="no copies between the host and"):
            call()
    assert len(stream.queue) == queued
    stream.is_capturing = lambda: False  # of another thread
    assert cuda.copy(there, DEVICE, HOST, None, False, None).tolist() == x.tolist()
    lifetimes.keep(stream, 0, x)
    assert not lifetimes._under_way
