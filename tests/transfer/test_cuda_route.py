"""The CUDA route without CUDA: a stand-in for CuPy whose copies run when waited for.

What the driver promises holds, and no more: a copy from pageable memory has read it
when the call returns, one to pageable memory is done, all others are late.
"""

import ctypes
import threading
import time
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import xdev
from xdev.device import registry
from xdev.errors import CaptureError, OutOfMemoryError
from xdev.transfer import cuda, pinned as lifetimes

HOST, DEVICE = xdev.Device("cpu"), xdev.Device("cuda:0")


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


@pytest.mark.usefixtures("tier")
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


@pytest.mark.usefixtures("tier")
def test_small_memory_goes_by_the_drivers_own_copy(driver):
    x = values((190, 371))[:90]  # between what is taken at once and what is staged
    assert lifetimes.SMALL < x.nbytes < lifetimes.DIRECT

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


DOWNLOADS = {name: LAYOUTS[name] for name in LAYOUTS if name[0] != "b"}  # as CuPy has
DOWNLOADS["row"] = lambda x: x[:1]


def on_device(driver, expected, layout="C"):
    """Return an array there, laid out so, that is written as late as all else."""
    there = np.asarray(DOWNLOADS[layout](np.full_like(expected, 7)))
    driver.current.enqueue(partial(np.copyto, there, DOWNLOADS[layout](expected)))
    return there.view(driver.ndarray)


@pytest.mark.parametrize("layout", DOWNLOADS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex128"])
def test_small_arrays_are_copied(driver, layout, dtype):
    x = np.arange(117).reshape(9, 13).astype(dtype)

    back = cuda.fetch(on_device(driver, x, layout))

    assert (back is not None) == (layout in ("C", "row", "0-d"))
    if back is not None:
        assert type(back) is np.ndarray
        assert back.flags.writeable
        expected = np.asarray(DOWNLOADS[layout](x))
        np.testing.assert_array_equal(back, expected, strict=True)


def test_what_takes_more_is_left_to_the_long_way(driver, monkeypatch):
    x = np.arange(12.0)
    assert cuda.fetch(on_device(driver, x)) is not None
    for mode in ("allow", "log", "disallow"):
        with xdev.transfer_guard(mode):
            assert cuda.fetch(on_device(driver, x)) is None
    for change in (
        (cuda.live_streams, "captured", {5}),
        (driver, "getDevice", lambda: 1),
        (lifetimes, "DIRECT", x.nbytes - 1),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(*change)
            assert cuda.fetch(on_device(driver, x)) is None


def test_a_stream_besides_the_default_one_is_marked(driver, monkeypatch):
    marked = []
    monkeypatch.setattr(cuda, "mark_uses", lambda x, stream: marked.append((x, stream)))
    monkeypatch.setattr(cuda.live_streams, "several", False)
    there = on_device(driver, np.arange(3.0))
    assert cuda.fetch(there).tolist() == [0, 1, 2]
    assert not marked
    with driver.there():
        there = on_device(driver, np.arange(4.0))
        assert cuda.fetch(there).tolist() == [0, 1, 2, 3]
        assert len(marked) == 1
    monkeypatch.setattr(cuda.live_streams, "several", True)
    assert cuda.fetch(on_device(driver, np.arange(2.0))).tolist() == [0, 1]
    assert [stream for _, stream in marked] == driver.streams[::-1]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("late", [False, True])
def test_ways_are_chosen_by_the_devices(monkeypatch, driver, count, late):
    tables = {(cuda.HOST_PAGE_TABLES, count - 1)} if late else set()
    driver.deviceGetAttribute = lambda *asked: asked in tables
    monkeypatch.setattr(type(registry.backend("cuda")), "count", lambda _: count)
    monkeypatch.setattr(cuda, "short_ways", {})
    for name in ("SMALL", "DIRECT"):
        monkeypatch.setattr(lifetimes, name, 1000)

    cuda._prepare()

    assert cuda.short_ways == {driver.ndarray: cuda.fetch}
    assert lifetimes.SMALL == lifetimes.DIRECT == (0 if late else 1000)
    there = on_device(driver, np.arange(3.0))
    assert (cuda.fetch(there) is None) == late


# -- the layout -----------------------------------------------------------------------


@given(sizes=st.lists(st.integers(0, cuda.LARGEST + 5) | st.integers(0, 999)))
def test_a_layout_has_a_place_for_every_array(sizes):
    made = cuda.packs(sizes)

    numbers = [n for pack in made for n in range(*pack.members.indices(len(sizes)))]
    assert numbers == list(range(len(sizes)))
    for pack in made:
        members = sizes[pack.members]
        ends = [at + size for at, size in zip(pack.offsets, members, strict=True)]
        assert all(at % cuda.ALIGNMENT == 0 for at in pack.offsets)
        assert all(end <= at for end, at in zip(ends, pack.offsets[1:], strict=False))
        assert ends[-1] <= pack.nbytes
        assert pack.nbytes <= cuda.LARGEST or len(members) == 1
        assert len(set(pack.offsets)) == len(members)
    for before, after in pairwise(made):
        assert before.nbytes + max(sizes[after.members][0], 1) > cuda.LARGEST - 256


# -- the steps, where device memory is the host's -------------------------------------


def test_what_is_packed_lies_in_the_packs_and_comes_back(driver, small_arrays):
    arrays, device = small_arrays, DEVICE
    assert all(x.nbytes <= cuda.IN_PACKS for x in arrays)
    expected = [x.copy("K") for x in arrays]

    there = cuda.upload(arrays, device)
    for x in arrays:  # they may be changed as soon as it has returned
        x[...] = 0
    kept = [memory for _, held in lifetimes._under_way for memory in held]
    back = cuda.download(there, device)

    count = len(cuda.packs([x.nbytes for x in arrays]))
    assert len(kept) == count > 1, "pinned memory that is on the bus is held"
    assert [name for name, *_ in driver.calls("up")] == ["up"] * count
    assert driver.waits == count, "downloads of a pack are waited for together"
    for x, y, z in zip(expected, there, back, strict=True):
        for moved in (y, z):
            assert moved.dtype == x.dtype.newbyteorder("=")
            assert (moved.shape, moved.flags.fnc) == (x.shape, x.flags.fnc)
            np.testing.assert_array_equal(moved.view(np.ndarray), x)
        assert type(z) is np.ndarray
        assert z.base is None


def test_pinned_memory_in_use_is_bounded(driver):
    arrays = [np.full(8192, number, "f8") for number in range(16 * 40)]
    count = len(cuda.packs([x.nbytes for x in arrays]))

    there = cuda.upload(arrays, DEVICE)

    assert len(driver.calls("wait")) == count - cuda.IN_FLIGHT
    before = driver.waits
    cuda.download(there, DEVICE)
    assert driver.waits - before == count


@pytest.mark.usefixtures("driver")
def test_a_guard_counts_every_array_of_a_pack():
    arrays = [np.ones(3), np.ones(5)]
    with xdev.transfer_guard("allow") as counts:
        cuda.download(cuda.upload(arrays, DEVICE), DEVICE)
    assert (counts.copies, counts.nbytes) == (4, 2 * 64)
    with (
        xdev.transfer_guard("disallow"),
        pytest.raises(xdev.XdevError, match="cpu to cuda"),
    ):
        cuda.upload(arrays, DEVICE)


# -- copies through pinned memory -----------------------------------------------------


CHUNK = 64
both_ways = pytest.mark.parametrize("up", [True, False], ids=["up", "down"])


@given(nbytes=st.integers(1, 1 << 36), workers=st.integers(1, lifetimes.WORKERS))
def test_a_plan_uses_its_slots_and_little_memory(nbytes, workers):
    plan = lifetimes.plan(nbytes, workers)

    count = -(-nbytes // plan.chunk)
    assert 1 <= plan.workers <= min(workers, count)
    assert 1 <= plan.slots <= lifetimes.SLOTS
    assert plan.workers * plan.slots <= count + plan.workers - 1
    assert plan.chunk <= min(nbytes, lifetimes.LARGEST)
    assert plan.chunk >= min(nbytes, lifetimes.SMALLEST)


class Far:
    """Memory behind the late driver, and the slots of its copies."""

    def __init__(self, driver, monkeypatch, nbytes=60 * CHUNK, threads=4):
        self.driver, self.queue, self.most = driver, driver.current, None
        self.array, self.rings = np.zeros(nbytes, np.uint8), []
        monkeypatch.setattr(lifetimes, "pinned_array", self.slots)
        monkeypatch.setattr(lifetimes._config, "num_threads", lambda: threads)
        for name in ("SMALLEST", "LARGEST"):  # KiB are cut as finely as MiB are
            monkeypatch.setattr(lifetimes, name, CHUNK)

    def slots(self, shape, dtype):
        if self.most is not None and np.prod(shape) > self.most:
            raise OutOfMemoryError("cpu (pinned)", int(np.prod(shape)), 0, 0, None, ())
        self.rings.append(self.driver.pinned_array(shape, dtype))
        return self.rings[-1]

    def copied(self, values, *, up):
        """Copy bytes there, or from there; return what came."""
        there = np.zeros_like(values) if up else values.copy()
        here = values.copy() if up else np.zeros_like(values)
        data = SimpleNamespace(ptr=there.ctypes.data)
        packed = SimpleNamespace(nbytes=there.nbytes, dtype=there.dtype, data=data)
        lifetimes.staged(here, packed, self.queue, 0, up=up)
        if up:
            here[:] = 0  # the slots alone hold the values until the device is done
            self.queue.synchronize()
        return there if up else here


@pytest.fixture
def far(driver, monkeypatch, tier):  # noqa: ARG001 - it is there
    """A function that makes memory whose copies compiled threads share."""
    return partial(Far, driver, monkeypatch)


def drawn(pieces, seed=0):
    return np.random.default_rng(seed).integers(0, 256, pieces * CHUNK, np.uint8)


@both_ways
@pytest.mark.parametrize("pieces", [1, 2, 7, 60])
@pytest.mark.parametrize("workers", [1, 4])
def test_a_slot_is_waited_for_before_it_is_used_again(far, up, pieces, workers):
    device, values = far(threads=workers), drawn(pieces)

    np.testing.assert_array_equal(device.copied(values, up=up), values)

    slots = len(device.rings[-1])
    assert slots <= workers * lifetimes.SLOTS
    under_way, used, most = set(), 0, 0
    for name, event, *_ in device.driver.calls("record", "wait"):
        assert (event in under_way) == (name == "wait")
        (under_way.add if name == "record" else under_way.remove)(event)
        used, most = used + (name == "record"), max(most, len(under_way))
    assert used == pieces
    assert most <= slots
    assert not under_way or up, "a download is there when the call returns"
    if workers == 1:
        assert most == min(pieces, lifetimes.SLOTS), "one on the bus, one in its hands"


@both_ways
@pytest.mark.parametrize("good", [0, 1, 20])
@pytest.mark.parametrize("call", ["enter", "copy", "record", "wait"])
def test_an_error_of_the_driver_leaves_nothing_behind(far, up, good, call):
    device, values = far(), drawn(200)
    name = {"copy": "up" if up else "down"}.get(call, call)
    device.driver.fails = {name: 0 if call == "enter" else good}

    with pytest.raises(xdev.XdevError, match=r"cuda:0: .* at byte [\d,]+: error 700"):
        device.copied(values, up=up)

    assert device.queue.ran == len(device.queue.queue), "a copy was still to come"
    assert len(device.queue.queue) < 60, "the others went on"
    device.driver.fails = {}
    np.testing.assert_array_equal(device.copied(values, up=up), values)
    device = far(threads=1)
    device.driver.fails = {"up": 3}
    with pytest.raises(xdev.XdevError, match=f"a copy of 576 B .* at byte {3 * CHUNK}"):
        device.copied(drawn(9), up=True)


@both_ways
def test_an_interrupt_leaves_nothing_behind(far, up, monkeypatch):
    device, team = far(), lifetimes.threads.team()

    def share(*words):
        team.share(*words)
        raise KeyboardInterrupt

    interrupted = SimpleNamespace(share=share, COPY_PIECE=team.COPY_PIECE)
    monkeypatch.setattr(lifetimes.threads, "team", lambda: interrupted)
    monkeypatch.setattr(lifetimes.native, "module", lambda _: interrupted)
    with pytest.raises(KeyboardInterrupt):
        device.copied(drawn(9), up=up)

    assert device.queue.ran == len(device.queue.queue) > 0


@both_ways
def test_under_a_tight_limit_there_are_fewer_workers(far, up):
    device, values = far(), drawn(50)
    device.most = 5 * CHUNK  # of 4 workers with 2 slots each: 2

    np.testing.assert_array_equal(device.copied(values, up=up), values)

    assert device.rings[-1].shape == (4, CHUNK)
    device.most = CHUNK
    with pytest.raises(OutOfMemoryError):
        device.copied(values, up=up)


def test_a_stream_of_each_thread_is_used_by_one(far):
    device, values = far(), drawn(50)
    device.queue.ptr = lifetimes.PER_THREAD

    np.testing.assert_array_equal(device.copied(values, up=True), values)

    assert {thread for thread, *_ in device.driver.log} == {threading.get_ident()}


def test_python_goes_on_while_a_copy_waits(far, until, monkeypatch):
    semaphore, library = ctypes.create_string_buffer(32), ctypes.CDLL(None)
    library.sem_init(semaphore, 0, 0)
    device = far(threads=1)
    # In C: it lets go of nothing by itself.
    wait = ctypes.cast(library.sem_wait, ctypes.c_void_p).value
    enter, _, _, *copies = lifetimes.addresses()
    record = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_size_t] * 2)(lambda *_: 0)
    address = ctypes.cast(record, ctypes.c_void_p).value
    there = [enter, wait, address, *copies]
    monkeypatch.setattr(lifetimes, "addresses", lambda: there)
    event = SimpleNamespace(ptr=ctypes.addressof(semaphore))
    monkeypatch.setattr(device.driver.cuda, "Event", lambda **_: event)

    thread = threading.Thread(
        target=device.copied, args=(drawn(3),), kwargs={"up": True}, daemon=True
    )
    thread.start()
    until(lambda: len(device.queue.queue) == lifetimes.SLOTS)
    for _ in range(20):  # the third piece waits for the first, and we do not
        time.sleep(0.001)
    assert thread.is_alive()
    library.sem_post(semaphore)
    thread.join(20)

    assert len(device.queue.queue) == 3


@both_ways
def test_without_the_compiled_part_the_driver_copies(driver, up, monkeypatch):
    monkeypatch.setattr(lifetimes.threads, "team", object)
    device, values = Far(driver, monkeypatch), drawn(50)

    np.testing.assert_array_equal(device.copied(values, up=up), values)

    assert not device.rings
    assert device.driver.waits, "an upload has read the host when the call returns"
