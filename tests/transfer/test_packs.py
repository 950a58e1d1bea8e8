"""Many small arrays in few copies: the layout, the steps on a pretended CUDA, CUDA."""

import gc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

import xdev
from xdev import memory
from xdev.device import Device
from xdev.transfer import packs, pinned

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


@given(sizes=st.lists(st.integers(0, packs.LARGEST + 5) | st.integers(0, 999)))
def test_a_layout_has_a_place_for_every_array(sizes):
    made = packs.packs(sizes)

    numbers = [n for pack in made for n in range(*pack.members.indices(len(sizes)))]
    assert numbers == list(range(len(sizes)))
    for pack in made:
        members = sizes[pack.members]
        ends = [at + size for at, size in zip(pack.offsets, members, strict=True)]
        assert all(at % packs.ALIGNMENT == 0 for at in pack.offsets)
        assert all(end <= at for end, at in zip(ends, pack.offsets[1:], strict=False))
        assert ends[-1] <= pack.nbytes
        assert pack.nbytes <= packs.LARGEST or len(members) == 1
        assert len(set(pack.offsets)) == len(members)
    for before, after in pairwise(made):
        assert before.nbytes + max(sizes[after.members][0], 1) > packs.LARGEST - 256


# -- the steps, where device memory is the host's -------------------------------------


@pytest.fixture(autouse=True)
def pretended(request, monkeypatch):
    if "driver" in request.fixturenames:
        driver = request.getfixturevalue("driver")
        monkeypatch.setattr(packs, "array_maker", lambda: driver.empty)
        monkeypatch.setattr(packs.memory, "pinned_array", driver.pinned_array)
        packs._kernel.cache_clear()
    yield
    packs._kernel.cache_clear()


def test_what_is_packed_lies_in_the_packs_and_comes_back(driver):
    arrays, cuda = many(), Device("cuda")
    assert all(x.nbytes <= packs.SMALL for x in arrays)
    expected = [x.copy("K") for x in arrays]

    there = packs.upload(arrays, cuda)
    for x in arrays:  # they may be changed as soon as it has returned
        x[...] = 0
    kept = [memory for _, held in pinned._under_way for memory in held]
    back = packs.download(there, cuda)

    count = len(packs.packs([x.nbytes for x in arrays]))
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
    whole = packs.upload([np.arange(24.0).reshape(4, 6)], Device("cuda"))[0]
    parts = [whole, whole.T, whole[::2, 1:], whole[:1, 0]]

    back = packs.download(parts, Device("cuda"))

    for x, y in zip(parts, back, strict=True):
        np.testing.assert_array_equal(y, x.view(np.ndarray), strict=True)


def test_pinned_memory_in_use_is_bounded(driver):
    arrays = [np.full(8192, number, "f8") for number in range(16 * 40)]
    count = len(packs.packs([x.nbytes for x in arrays]))

    there = packs.upload(arrays, Device("cuda"))

    assert len(driver.calls("wait")) == count - packs.IN_FLIGHT
    before = driver.waits
    packs.download(there, Device("cuda"))
    assert driver.waits - before == -(-count // packs.IN_FLIGHT)


@pytest.mark.usefixtures("driver")
def test_a_guard_counts_every_array_of_a_pack():
    arrays = [np.ones(3), np.ones(5)]
    with xdev.transfer_guard("allow") as counts:
        packs.download(packs.upload(arrays, Device("cuda")), Device("cuda"))
    assert (counts.copies, counts.nbytes) == (4, 2 * 64)
    with (
        xdev.transfer_guard("disallow"),
        pytest.raises(xdev.XdevError, match="cpu to cuda"),
    ):
        packs.upload(arrays, Device("cuda"))


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
            assert y.flags.owndata or y.nbytes > packs.SMALL
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
    assert memory.allocated(cuda, "device") - before == 3 * packs.ALIGNMENT + 256

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
