"""Copies to and from CUDA without CUDA: a stand-in for CuPy with late copies."""

import gc
import weakref

import numpy as np
import pytest
from running import LAYOUTS, normal

import xdev
from xdev import memory
from xdev.errors import CaptureError, OutOfMemoryError

THERE = {*LAYOUTS} - {"reversed", "byte-swapped", "broadcast"}  # what CuPy's may have
SHAPES = [(9, 13), (190, 371)]  # some KiB, which go at once, and a staged one
OUTS = {
    "none": None,
    "C": np.zeros,
    "F": lambda shape, dtype: np.zeros(shape[::-1], dtype).T,
    "strided": lambda shape, dtype: np.zeros((2, *shape, 2), dtype)[1, ..., 0],
    "cast": lambda shape, _: np.zeros(shape, "complex128"),
    "swapped": lambda shape, _: np.zeros(shape, ">f8"),
}
BOTH_WAYS = pytest.mark.parametrize("up", [True, False], ids=["up", "down"])
SMALL_AND_STAGED = pytest.mark.parametrize("shape", SHAPES, ids=["small", "staged"])


def read(there):
    """Return the values of an array there, as they are by now."""
    return there.view(np.ndarray)


def copied(driver, x, *, up):
    if not up:
        return xdev.to_numpy(driver.array(x))
    there = xdev.to_device(x.copy(), "cuda")
    driver.current.synchronize()
    return read(there)


def pinned_bytes():
    gc.collect()
    return memory.allocated("cpu", "pinned")


@SMALL_AND_STAGED
@pytest.mark.parametrize("pinned", [False, True], ids=["pageable", "pinned"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("out", sorted(set(OUTS) - {"swapped"}))
def test_uploads(driver, shape, pinned, layout, out):
    x = np.asarray(LAYOUTS[layout](normal(shape)))
    native = x.dtype.newbyteorder("=")
    if pinned:
        driver.lock_memory(x)
    made = OUTS[out] and OUTS[out](x.shape, native).view(driver.ndarray)

    there = xdev.to_device(x, "cuda", out=made)
    expected = x.copy()
    if x.flags.writeable:
        x[...] = -1  # the call has returned: it is the user's again
    driver.current.synchronize()

    assert made is None or there is made
    assert there.dtype == (native if made is None else made.dtype)
    np.testing.assert_array_equal(read(there), expected)


@SMALL_AND_STAGED
@pytest.mark.parametrize("pinned", [False, True], ids=["pageable", "pinned"])
@pytest.mark.parametrize("layout", sorted(THERE))
@pytest.mark.parametrize("out", OUTS)
def test_downloads(driver, shape, pinned, layout, out):
    expected = np.asarray(LAYOUTS[layout](normal(shape)))
    there = driver.array(expected)
    host = OUTS[out] and OUTS[out](expected.shape, expected.dtype)
    if pinned and host is not None:
        driver.lock_memory(host)

    back = xdev.to_numpy(there, out=host)

    assert host is None or back is host
    assert type(back) is np.ndarray
    assert back.flags.writeable
    np.testing.assert_array_equal(back, expected, strict=host is None)


@SMALL_AND_STAGED
@pytest.mark.parametrize("index", [0, 1])
def test_non_blocking_from_pinned_waits_for_nothing_and_keeps_the_source(
    driver, shape, index
):
    stream = driver.streams[1 + index]
    x = xdev.pin(expected := normal(shape))
    address, nbytes = x.ctypes.data, x.nbytes

    there = xdev.to_device(x, f"cuda:{index}", stream=stream, non_blocking=True)
    del x
    other = xdev.empty_pinned(nbytes, "int8")
    other[...] = -1

    assert driver.waits == 0
    assert other.ctypes.data != address, "the block is on the bus"
    stream.synchronize()
    np.testing.assert_array_equal(read(there), expected)
    assert xdev.empty_pinned(nbytes, "int8").ctypes.data == address


@SMALL_AND_STAGED
def test_others_pinned_memory_is_kept_until_its_event(driver, shape):
    x = normal(shape)
    driver.lock_memory(x)
    kept = weakref.ref(x)

    for stream in driver.streams[:2]:
        xdev.to_device(x, "cuda", stream=stream, non_blocking=True)
    del x
    driver.streams[1].synchronize()
    xdev.pin(np.ones(3))
    assert kept() is not None
    driver.streams[0].synchronize()
    xdev.pin(np.ones(3))

    assert kept() is None


@pytest.mark.usefixtures("tier")
def test_non_blocking_from_pageable_has_read_the_source(driver):
    x = normal(SHAPES[1])
    expected = x.copy()

    there = xdev.to_device(x, "cuda", non_blocking=True)
    x[...] = -1
    slots = set(driver.buffers)
    other = xdev.empty_pinned(pinned_bytes() or x.nbytes, "int8")

    assert driver.waits == 0
    assert other.ctypes.data not in slots, "the slots are on the bus"
    driver.current.synchronize()
    np.testing.assert_array_equal(read(there), expected)


@pytest.mark.parametrize("layout", ["C", "F", "step"])
@pytest.mark.parametrize("out", sorted(set(OUTS) - {"swapped"}))
@pytest.mark.parametrize("target", ["cuda:0", "cuda:1"])
def test_copies_between_devices(driver, layout, out, target):
    expected = np.asarray(LAYOUTS[layout](normal(SHAPES[1])))
    origin = np.array(expected, order="K").view(driver.ndarray)
    made = OUTS[out] and OUTS[out](expected.shape, expected.dtype).view(driver.ndarray)
    if made is not None:
        made.device = xdev.Device(target)
    options = {"stream": driver.streams[1], "non_blocking": True, "copy": True}

    there = xdev.to_device(origin, target, out=made, **options)

    assert made is None or there is made
    assert not np.may_share_memory(there, origin)
    for stream in driver.streams:
        stream.synchronize()
    np.testing.assert_array_equal(read(there), expected)


def test_the_sources_stream_goes_on_after_a_peers_copy(driver):
    origin = normal(SHAPES[0]).view(driver.ndarray)
    before, copies, _ = driver.streams

    there = xdev.to_device(origin, "cuda:1", stream=copies, non_blocking=True)
    before.enqueue(lambda: origin.fill(-1))  # whoever gets the memory next
    before.synchronize()
    copies.synchronize()

    np.testing.assert_array_equal(read(there), normal(SHAPES[0]))


@pytest.mark.usefixtures("tier")
@pytest.mark.parametrize("index", [0, 1])
def test_where_the_drivers_own_copies_may_be_late_all_is_staged(driver, index):
    driver.deviceGetAttribute = lambda _, asked: asked == index
    driver.prepare()
    x = normal((3, 4))

    there = xdev.to_device(x, "cuda")
    np.testing.assert_array_equal(xdev.to_numpy(there), x)

    assert len(driver.calls("enter")) >= 2


@pytest.mark.parametrize("non_blocking", [False, True])
def test_a_capture_has_no_copies_of_the_host(driver, captured, non_blocking):
    """Replays would read and write memory that is others' by then."""
    x = normal((9, 13))
    there = x.view(driver.ndarray)

    for copy in (
        lambda: xdev.to_device(x, "cuda", non_blocking=non_blocking),
        lambda: xdev.to_numpy(there, non_blocking=non_blocking),
        lambda: xdev.adapt("cuda", [x, x + 1]),
        lambda: xdev.adapt("cpu", [there, there[:1]]),
    ):
        with pytest.raises(CaptureError, match="no copies between the host and"):
            copy()
    assert not captured.queue
    captured.is_capturing = lambda: False  # it is another thread's
    assert xdev.to_numpy(there).tolist() == x.tolist()


@pytest.mark.parametrize("shape", [(3, 4), (190, 371)])
def test_a_guard_sees_every_copy(driver, shape):
    x = normal(shape)
    with xdev.transfer_guard("allow") as counts:
        xdev.to_numpy(xdev.to_device(x, "cuda"))
        xdev.adapt("cpu", xdev.adapt("cuda", [x[:1], x[:2]]))
    assert (counts.copies, counts.nbytes) == (6, 2 * (x.nbytes + 3 * x[:1].nbytes))
    assert set(counts.routes) == {("cpu", "cuda:0"), ("cuda:0", "cpu")}
    there = driver.array(x)
    for move in (
        lambda: xdev.to_numpy(there),
        lambda: xdev.to_device(x, "cuda"),
        lambda: xdev.adapt("cuda", [x[:1], x[:2]]),
    ):
        with xdev.transfer_guard("disallow"), pytest.raises(xdev.XdevError):
            move()


# -- many small arrays ----------------------------------------------------------------


def test_small_arrays_cross_in_packs_and_come_back(driver, small_arrays):
    expected = [x.copy("K") for x in small_arrays]

    there = xdev.adapt("cuda", small_arrays)
    uploads = driver.calls("up")
    for x in small_arrays:  # they may be changed as soon as it has returned
        x[...] = 0
    assert driver.waits == 0
    assert len(uploads) < len(expected) / 100
    assert all(nbytes <= 1 << 20 for *_, nbytes in uploads)
    back = xdev.adapt("cpu", there)

    assert driver.waits == len(uploads), "downloads of a pack are waited for together"
    for x, y, z in zip(expected, there, back, strict=True):
        for moved in (y, z):
            assert moved.dtype == x.dtype.newbyteorder("=")
            assert (moved.shape, moved.flags.fnc) == (x.shape, x.flags.fnc)
            np.testing.assert_array_equal(read(moved), x)
        assert type(z) is np.ndarray
        assert z.base is None


def test_pinned_memory_in_use_is_bounded(driver):
    arrays = [np.full(8192, number, "f8") for number in range(16 * 30)]

    there = xdev.adapt("cuda", arrays)

    packs = len(driver.calls("up"))
    assert packs > len(driver.calls("wait")) >= packs - 16
    assert sum(x.nbytes for x in driver.buffers.values()) < 20 << 20
    driver.current.synchronize()
    for x, y in zip(arrays, there, strict=True):
        np.testing.assert_array_equal(read(y), x)


# -- large pageable memory, in pieces -------------------------------------------------


@BOTH_WAYS
@pytest.mark.parametrize("size", [(256 << 10) + 1, 300_001, 1 << 20])
def test_a_slot_is_waited_for_before_it_is_used_again(driver, tier, up, size):  # noqa: ARG001 - it is there
    x = np.random.default_rng(0).integers(0, 256, size, np.uint8)

    np.testing.assert_array_equal(copied(driver, x, up=up), x)

    under_way, used, most = set(), 0, 0
    for name, event in driver.calls("record", "wait"):
        assert (event in under_way) == (name == "wait")
        (under_way.add if name == "record" else under_way.remove)(event)
        used, most = used + (name == "record"), max(most, len(under_way))
    assert used >= size // (32 << 10)
    assert most <= 3 * 2, "two slots of each thread"
    assert not under_way or up, "a download is there when the call returns"
    threads = {thread for thread, name, _ in driver.log if name == "enter"}
    assert len(threads) <= 3


@BOTH_WAYS
@pytest.mark.parametrize("good", [0, 1, 7])
@pytest.mark.parametrize("call", ["enter", "copy", "record", "wait"])
def test_an_error_of_the_driver_leaves_nothing_behind(driver, tier, up, good, call):  # noqa: ARG001
    x = np.random.default_rng(0).integers(0, 256, 1 << 20, np.uint8)
    name = {"copy": "up" if up else "down"}.get(call, call)
    driver.fails = {name: 0 if call == "enter" else good}

    with pytest.raises(xdev.XdevError, match=r"cuda:0: .* at byte [\d,]+: error 700"):
        copied(driver, x, up=up)

    assert driver.current.done, "a copy was still to come"
    assert len(driver.calls("up", "down")) < 32, "the others went on"
    driver.fails = {}
    np.testing.assert_array_equal(copied(driver, x, up=up), x)


@BOTH_WAYS
@pytest.mark.usefixtures("interrupted")
def test_an_interrupt_leaves_nothing_behind(driver, up):
    with pytest.raises(KeyboardInterrupt):
        copied(driver, normal(SHAPES[1]), up=up)

    assert driver.current.done
    assert driver.current.queue


@BOTH_WAYS
@pytest.mark.usefixtures("tier")
def test_under_a_tight_limit_there_are_fewer_threads(driver, up):
    x = normal(SHAPES[1])
    driver.most = 100 << 10  # of three threads with two slots of 32 KiB each: one

    np.testing.assert_array_equal(copied(driver, x, up=up), x)

    driver.most = 0
    memory.reclaim(None, "cpu", "pinned")
    with pytest.raises(OutOfMemoryError):
        copied(driver, x, up=up)


@BOTH_WAYS
def test_a_stream_of_each_thread_is_used_by_one(driver, up):
    driver.current.ptr = 2  # the name of another stream in each thread

    x = normal(SHAPES[1])
    np.testing.assert_array_equal(copied(driver, x, up=up), x)

    assert len({thread for thread, *_ in driver.log}) == 1


@BOTH_WAYS
def test_without_the_compiled_part_the_driver_copies(driver, team, up):
    x = normal(SHAPES[1])
    np.testing.assert_array_equal(copied(driver, x, up=up), x)
    assert bool(driver.calls("enter")) == hasattr(team, "COPY_PIECE")
