"""The CUDA route without CUDA: a stand-in for CuPy whose copies run when waited for.

What the driver promises holds, and no more: a copy from pageable memory has read it
when the call returns, one to pageable memory is done, all others are late.
"""

import gc
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

import xdev
from xdev import memory
from xdev.device import Device, registry
from xdev.errors import CaptureError
from xdev.transfer import copies, cuda, pinned as lifetimes, staging
from xdev.transfer.cuda import ALIGNMENT, IN_PACKS

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


def test_large_arrays_are_left_to_others(driver, monkeypatch):
    x = np.arange(12.0)
    for most, small in ((96, True), (95, False)):
        monkeypatch.setattr(staging, "DIRECT", most)
        assert (cuda.fetch(on_device(driver, x)) is not None) == small


def test_what_others_are_to_see_is_left_to_them(driver, monkeypatch):
    there = on_device(driver, np.arange(3.0))
    assert cuda.fetch(there) is not None
    for mode in ("allow", "log", "disallow"):
        with xdev.transfer_guard(mode):
            assert cuda.fetch(there) is None
    monkeypatch.setattr(cuda.live_streams, "captured", {5})
    assert cuda.fetch(there) is None


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


FAKE = """
import numpy, xdev
from xdev.device import cuda
xdev.to_numpy(xdev.to_device(numpy.ones(3), "fake"))
assert not cuda._probe.cache_info().currsize
"""


def test_programs_on_fake_devices_do_not_look_for_cudas(python):
    assert python("-c", FAKE, XDEV_DEVICE="fake").returncode == 0


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("late", [False, True])
def test_ways_are_chosen_by_the_devices(monkeypatch, driver, count, late):
    tables = {(cuda.HOST_PAGE_TABLES, count - 1)} if late else set()
    driver.deviceGetAttribute = lambda *asked: asked in tables
    monkeypatch.setattr(type(registry.backend("cuda")), "count", lambda _: count)
    monkeypatch.setattr(cuda, "short_ways", {})
    for name in ("SMALL", "DIRECT"):
        monkeypatch.setattr(staging, name, 1000)

    cuda._prepare()

    assert cuda.short_ways == {driver.ndarray: cuda.fetch}
    assert staging.SMALL == staging.DIRECT == (0 if late else 1000)
    there = on_device(driver, np.arange(3.0))
    assert (cuda.fetch(there) is None) == late


@pytest.mark.cuda
def test_on_cuda_each_download_is_seen(cuda):
    x = xdev.arange(5, device=cuda)
    assert xdev.to_numpy(x).tolist() == [0, 1, 2, 3, 4]
    assert type(x) in copies.short_ways
    with xdev.transfer_guard("allow") as counts:
        xdev.to_numpy(x)
        xdev.to_numpy(x[::2])
    assert (counts.copies, counts.nbytes) == (2, 64)
    with xdev.transfer_guard("disallow"), pytest.raises(xdev.XdevError, match="40 B"):
        xdev.to_numpy(x)
    with xdev.Stream(cuda) as stream:
        y = x * 2
        assert xdev.to_numpy(y).tolist() == [0, 2, 4, 6, 8]
    stream.synchronize()
    x[...] = 3
    assert xdev.to_numpy(x).tolist() == [3] * 5
    xdev.memory.free(y)
    with pytest.raises(xdev.UseAfterFreeError):
        xdev.to_numpy(y)


DTYPES = ("bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64")
DTYPES += ("complex64", "complex128", ">f4", ">i8")


def many(count=700, seed=0):
    """Return small arrays of every dtype, of shapes and strides of all kinds."""
    draw = np.random.default_rng(seed)
    shapes = [(), (0,), (1,), (7,), (3, 5), (4, 0, 2), (2, 3, 4), (1000,), (64, 64)]
    arrays = []
    for number in range(count):
        shape = shapes[number % len(shapes)]
        x = np.asarray(draw.standard_normal(shape) * 100)
        x = x.astype(DTYPES[number % len(DTYPES)])
        if number % 5 == 1:
            x = x.T
        elif number % 5 == 2 and x.ndim:
            x = x[::-1]
        elif number % 5 == 3 and x.ndim > 1:
            x = x[:, ::2]
        arrays.append(x)
    return arrays


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


@pytest.fixture(autouse=True)
def pretended(request, monkeypatch):
    if "driver" in request.fixturenames:
        driver = request.getfixturevalue("driver")
        monkeypatch.setattr(cuda, "array_maker", lambda: driver.empty)
        monkeypatch.setattr(cuda, "pinned_array", driver.pinned_array)
        cuda._kernel.cache_clear()
    yield
    cuda._kernel.cache_clear()


def test_what_is_packed_lies_in_the_packs_and_comes_back(driver):
    arrays, device = many(), Device("cuda")
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
    assert len(driver.calls("gather")) == len(driver.calls("down")) == count
    for x, y, z in zip(expected, there, back, strict=True):
        for moved in (y, z):
            assert moved.dtype == x.dtype.newbyteorder("=")
            assert (moved.shape, moved.flags.fnc) == (x.shape, x.flags.fnc)
            np.testing.assert_array_equal(moved.view(np.ndarray), x)
        assert type(z) is np.ndarray
        assert z.base is None


@pytest.mark.usefixtures("driver")
def test_strided_arrays_of_the_device_come_back_in_order():
    whole = cuda.upload([np.arange(24.0).reshape(4, 6)], Device("cuda"))[0]
    parts = [whole, whole.T, whole[::2, 1:], whole[:1, 0]]

    back = cuda.download(parts, Device("cuda"))

    for x, y in zip(parts, back, strict=True):
        np.testing.assert_array_equal(y, x.view(np.ndarray), strict=True)


def test_pinned_memory_in_use_is_bounded(driver):
    arrays = [np.full(8192, number, "f8") for number in range(16 * 40)]
    count = len(cuda.packs([x.nbytes for x in arrays]))

    there = cuda.upload(arrays, Device("cuda"))

    assert len(driver.calls("wait")) == count - cuda.IN_FLIGHT
    before = driver.waits
    cuda.download(there, Device("cuda"))
    assert driver.waits - before == -(-count // cuda.IN_FLIGHT)


@pytest.mark.usefixtures("driver")
def test_a_guard_counts_every_array_of_a_pack():
    arrays = [np.ones(3), np.ones(5)]
    with xdev.transfer_guard("allow") as counts:
        cuda.download(cuda.upload(arrays, Device("cuda")), Device("cuda"))
    assert (counts.copies, counts.nbytes) == (4, 2 * 64)
    with (
        xdev.transfer_guard("disallow"),
        pytest.raises(xdev.XdevError, match="cpu to cuda"),
    ):
        cuda.upload(arrays, Device("cuda"))


# -- the real thing -------------------------------------------------------------------


@pytest.mark.cuda
def test_every_dtype_shape_and_stride_goes_to_cuda_and_back(cuda):
    arrays = [*many(), np.arange(100_000.0), np.asfortranarray(np.ones((200, 300)))]

    there = xdev.adapt(cuda, arrays)

    for x, y in zip(arrays, there, strict=True):
        assert xdev.device_of(y) == cuda
        assert y.dtype == x.dtype.newbyteorder("=")
        assert y.flags.fnc == x.flags.fnc
        np.testing.assert_array_equal(y.get(), x)
    strided = [y[::2] if y.ndim else y for y in there]
    for made in (there, strided):
        for x, y in zip(made, xdev.adapt("cpu", made), strict=True):
            assert type(y) is np.ndarray
            assert y.flags.owndata or y.nbytes > IN_PACKS
            np.testing.assert_array_equal(y, x.get())


@pytest.mark.cuda
def test_a_result_does_not_change_with_its_source(cuda):
    arrays = [np.full(100, number) for number in range(1000)]

    there = xdev.adapt(cuda, arrays)
    for x in arrays:
        x[...] = -1

    assert [int(y[-1]) for y in there] == list(range(1000))
    back = xdev.adapt("cpu", there)
    for y in there:
        y[...] = -1
    assert [int(x[-1]) for x in back] == list(range(1000))


@pytest.mark.cuda
def test_a_pack_is_given_back_with_its_last_array_and_none_before(cuda):
    gc.collect()
    before = memory.allocated(cuda, "device")
    there = xdev.adapt(cuda, [np.ones(8), np.ones(8), np.ones(8)])
    assert memory.allocated(cuda, "device") - before == 3 * ALIGNMENT + 256

    with pytest.raises(xdev.InUseError):
        memory.free(there[1])
    last = there.pop()
    there.clear()
    assert memory.allocated(cuda, "device") > before
    np.testing.assert_array_equal(last.get(), np.ones(8))
    del last
    assert memory.allocated(cuda, "device") == before


@pytest.mark.cuda
def test_a_stream_orders_what_it_packs(cuda):
    with xdev.Stream(cuda):
        there = xdev.adapt(cuda, [np.full(50, number) for number in range(100)])
        twice = [x * 2 for x in there]
        back = xdev.adapt("cpu", twice)
    assert [int(x[0]) for x in back] == [2 * number for number in range(100)]


def test_arrays_of_another_device_are_left_to_others(driver, monkeypatch):
    there = on_device(driver, np.arange(3.0))
    monkeypatch.setattr(driver, "getDevice", lambda: 1)
    assert cuda.fetch(there) is None
