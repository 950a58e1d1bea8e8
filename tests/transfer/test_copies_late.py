"""The CUDA route without CUDA: a stand-in for CuPy whose copies run when waited for.

What the driver promises holds, and no more: a copy from pageable memory has read it
when the call returns, one to pageable memory is done, all others are late.
"""

import ctypes
import threading
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import xdev
from xdev import _optional
from xdev.transfer import cuda, lifetimes, schedule, staging

UP, DOWN = 1, 2
DEVICE = xdev.Device("cuda:0")
KIB = 1 << 10


class Stream:
    def __init__(self, driver, ptr):
        self.driver, self.ptr, self.queue, self.ran = driver, ptr, [], 0

    def enqueue(self, act):
        self.queue.append(act)

    def run_to(self, position):
        with self.driver.lock:
            while self.ran < position:
                self.queue[self.ran]()
                self.ran += 1

    def synchronize(self):
        self.driver.waits += 1
        self.run_to(len(self.queue))

    def record(self, event=None):
        event = event or Event()
        event.stream, event.position = self, len(self.queue)
        return event

    def wait_event(self, event):
        self.enqueue(lambda: event.stream.run_to(event.position))


class Event:
    def __init__(self, **_):
        self.stream, self.position = None, 0

    @property
    def done(self):
        return self.stream is None or self.stream.ran >= self.position

    def synchronize(self):
        self.stream.run_to(self.position)


class Pointer:
    def __init__(self, array):
        self.ptr, self.mem = array.ctypes.data, SimpleNamespace(xdev_chunk=None)
        self.array = array

    def copy_from_device_async(self, origin, nbytes, stream):
        stream.enqueue(lambda: ctypes.memmove(self.ptr, origin.ptr, nbytes))


class Array(np.ndarray):
    """Device memory; looking at its values is the tests' business alone."""

    @property
    def data(self):
        return Pointer(self)


class Driver:
    """What ``xdev.transfer.cuda`` uses of CuPy, and what it may ask about memory."""

    ndarray = Array
    memcpyHostToDevice, memcpyDeviceToHost = UP, DOWN  # noqa: N815 - CuPy's

    def __init__(self):
        self.lock = threading.RLock()
        self.waits = 0
        self.pinned = []
        self.streams = [Stream(self, 0), Stream(self, 1 << 20)]
        self.current = self.streams[0]
        self.cuda = SimpleNamespace(
            runtime=self,
            Event=Event,
            Device=lambda _: nullcontext(),
            get_current_stream=lambda *_: self.current,
        )

    def empty(self, shape, dtype=float, order="C"):
        made = np.empty(shape, dtype, order).view(Array)
        made.view(np.ndarray).fill(99)
        return made

    def eagerly(self, act):
        self.current.run_to(len(self.current.queue))
        return act()

    def ascontiguousarray(self, x):
        return self.eagerly(lambda: np.ascontiguousarray(x).view(Array))

    def copyto(self, to, origin):
        self.eagerly(lambda: np.copyto(to, origin, "same_kind"))

    def may_share_memory(self, a, b):
        return np.may_share_memory(a, b)

    def memcpyAsync(self, to, origin, nbytes, kind, stream):  # noqa: N802 - CuPy's
        queue = next(known for known in self.streams if known.ptr == stream)
        host = origin if kind == UP else to
        if self.is_pinned_address(host):
            queue.enqueue(lambda: ctypes.memmove(to, origin, nbytes))
        elif kind == UP:
            taken = ctypes.string_at(origin, nbytes)
            queue.enqueue(lambda: ctypes.memmove(to, taken, nbytes))
        else:
            queue.run_to(len(queue.queue))
            ctypes.memmove(to, origin, nbytes)

    def pinned_array(self, shape, dtype, order="C"):
        made = np.empty(shape, dtype, order)
        self.pinned.append(made)
        return made

    def is_pinned_address(self, address):
        return any(0 <= address - x.ctypes.data < max(1, x.nbytes) for x in self.pinned)


@pytest.fixture
def driver(monkeypatch):
    driver = Driver()
    monkeypatch.setattr(_optional, "cupy", lambda: driver)
    monkeypatch.setattr(cuda, "pinned_array", driver.pinned_array)
    monkeypatch.setattr(cuda, "is_pinned_address", driver.is_pinned_address)
    monkeypatch.setattr(cuda, "mark_uses", lambda _: None)
    monkeypatch.setattr(lifetimes, "find", lambda *_: None)
    monkeypatch.setattr(schedule, "SMALLEST", 16 * KIB)
    monkeypatch.setattr(schedule, "LARGEST", 32 * KIB)
    monkeypatch.setattr(staging._config, "num_threads", lambda: 3)
    lifetimes._under_way.clear()
    yield driver
    lifetimes._under_way.clear()


class There:
    """Passed as ``stream=``: makes another stream the current one."""

    def __init__(self, driver):
        self.driver = driver

    def __enter__(self):
        self.driver.current = self.driver.streams[1]

    def __exit__(self, *_):
        self.driver.current = self.driver.streams[0]


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
    made = OUTS[out] and OUTS[out](x.shape, native).view(Array)

    there = cuda.upload(x, DEVICE, None, False, made)
    expected = x.copy()
    if x.flags.writeable:
        x[...] = -1  # the call has returned: it is the user's again
    driver.current.synchronize()

    assert made is None or there is made
    assert there.dtype == (native if made is None else made.dtype)
    np.testing.assert_array_equal(there.view(np.ndarray), expected)


@pytest.mark.parametrize("shape", SHAPES, ids=["small", "staged"])
@pytest.mark.parametrize("pinned", [False, True], ids=["pageable", "pinned"])
@pytest.mark.parametrize("layout", ["C", "F", "step", "reversed", "size 0", "0-d"])
@pytest.mark.parametrize("out", OUTS)
def test_downloads(driver, shape, pinned, layout, out):
    expected = np.asarray(LAYOUTS[layout](values(shape)))
    there = np.full_like(expected, 7, subok=False).view(Array)
    # What is to be read is written as late as all else.
    driver.current.enqueue(partial(np.copyto, there.view(np.ndarray), expected))
    host = OUTS[out] and OUTS[out](expected.shape, expected.dtype)
    if pinned and host is not None:
        driver.pinned.append(host)

    back = cuda.download(there, DEVICE, None, False, host)

    assert host is None or back is host
    assert type(back) is np.ndarray
    np.testing.assert_array_equal(back, expected)


@pytest.mark.parametrize("shape", SHAPES, ids=["small", "staged"])
def test_non_blocking_from_pinned_waits_for_nothing_and_keeps_the_source(driver, shape):
    x = driver.pinned_array(shape, np.dtype("float32"))
    x[...] = expected = values(shape)

    there = cuda.upload(x, DEVICE, There(driver), True, None)

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

    there = cuda.upload(x, DEVICE, None, True, None)
    x[...] = -1
    slots = [y for _, kept in lifetimes._under_way for y in kept]

    assert driver.waits == 0
    assert slots
    assert all(driver.is_pinned_address(y.ctypes.data) for y in slots)
    driver.current.synchronize()
    np.testing.assert_array_equal(there.view(np.ndarray), expected)


def test_non_blocking_downloads_land_in_pinned_memory(driver):
    there = values(SHAPES[1]).view(Array)

    back = cuda.download(there, DEVICE, None, True, None)

    assert driver.waits == 0
    assert driver.is_pinned_address(back.ctypes.data)
    driver.current.synchronize()
    np.testing.assert_array_equal(back, there.view(np.ndarray))


def test_a_small_pageable_upload_does_not_wait_for_the_stream(driver):
    cuda.upload(values(SHAPES[0]), DEVICE, None, False, None)
    assert driver.waits == 0

    cuda.upload(values(SHAPES[0]), DEVICE, There(driver), False, None)
    assert driver.waits == 1, "its result is not in the current stream's order"


@pytest.mark.parametrize("layout", ["C", "F", "step"])
@pytest.mark.parametrize("out", ["none", "C", "F", "strided", "cast"])
@pytest.mark.parametrize("target", ["cuda:0", "cuda:1"])
def test_copies_between_devices(driver, layout, out, target):
    expected = np.asarray(LAYOUTS[layout](values(SHAPES[1])))
    origin = np.array(expected, order="K").view(Array)
    made = OUTS[out] and OUTS[out](expected.shape, expected.dtype).view(Array)

    there = cuda.copy(origin, DEVICE, xdev.Device(target), There(driver), True, made)

    assert made is None or there is made
    assert not np.may_share_memory(there, origin)
    for stream in driver.streams:
        stream.synchronize()
    np.testing.assert_array_equal(there.view(np.ndarray), expected)


def test_the_sources_stream_goes_on_after_a_peers_copy(driver):
    origin = values(SHAPES[0]).view(Array)
    expected = values(SHAPES[0])

    there = cuda.copy(origin, DEVICE, xdev.Device("cuda:1"), There(driver), True, None)
    before, copies = driver.streams
    before.enqueue(lambda: origin.fill(-1))  # whoever gets the memory next
    before.synchronize()
    copies.synchronize()

    np.testing.assert_array_equal(there.view(np.ndarray), expected)


def test_overlapping_copies_on_a_device_are_right(driver):
    there = values((50, 60)).view(Array)
    expected = there.view(np.ndarray)[::-1].copy()

    cuda.copy(there[::-1], DEVICE, DEVICE, None, False, there)

    driver.current.synchronize()
    np.testing.assert_array_equal(there.view(np.ndarray), expected)


@pytest.mark.parametrize(
    "copied",
    [
        lambda x: cuda.upload(x, DEVICE, None, True, None),
        lambda x: cuda.download(x.view(Array), DEVICE, None, False, None),
    ],
    ids=["up", "down"],
)
def test_an_error_in_the_middle_leaves_no_copy_behind(driver, monkeypatch, copied):
    calls = []

    def failing(self, to, origin, slot, kind):
        calls.append(slot.nbytes)
        if len(calls) == 4:
            raise RuntimeError("the device fell off the bus")
        return copy(self, to, origin, slot, kind)

    copy = cuda.CudaBus._copy
    monkeypatch.setattr(cuda.CudaBus, "_copy", failing)

    with pytest.raises(RuntimeError, match="fell off the bus"):
        copied(values(SHAPES[1]))

    assert driver.current.ran == len(driver.current.queue)
    assert not lifetimes._under_way
