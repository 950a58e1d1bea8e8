"""Many small arrays in few copies: the layout, the steps on a pretended CUDA, CUDA."""

import ctypes
import gc
import types
from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

import xdev
from xdev import memory
from xdev.device import Device
from xdev.transfer import packs

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


class Pointer:
    """As CuPy's ``MemoryPointer``: some bytes, and where in them."""

    def __init__(self, bytes_, at=0):
        self.bytes, self.ptr, self.device_id = bytes_, bytes_.ctypes.data + at, 0

    def __add__(self, offset):
        return Pointer(self.bytes, self.ptr - self.bytes.ctypes.data + offset)

    def copy_from_host_async(self, address, nbytes):
        ctypes.memmove(self.ptr, address, nbytes)

    def copy_to_host_async(self, address, nbytes):
        ctypes.memmove(address, self.ptr, nbytes)


class Array:
    """As CuPy's array: NumPy's, somewhere in bytes that it keeps."""

    def __init__(self, shape, dtype, order, pointer):
        at = pointer.ptr - pointer.bytes.ctypes.data
        self.data = pointer
        self.values = np.ndarray(shape, dtype, pointer.bytes, at, order=order)

    def __getattr__(self, name):
        return getattr(self.values, name)

    @property
    def T(self):  # noqa: N802 - its name
        return turned(self, self.values.T)


def turned(x, values):
    made = object.__new__(Array)
    made.data, made.values = x.data, values
    return made


class Pretended:
    """What the packs use of CuPy, and a log of it."""

    ndarray = Array

    def __init__(self):
        self.log, self.fresh = [], []
        queue = types.SimpleNamespace(
            record=lambda _: self,
            synchronize=lambda: self.log.append("wait"),
        )
        self.cuda = types.SimpleNamespace(
            alloc=self.alloc,
            get_current_stream=lambda: queue,
            Event=lambda **_: None,
            Device=lambda _: nullcontext(),
        )

    def alloc(self, nbytes):
        self.log.append(("alloc", nbytes))
        return Pointer(np.empty(nbytes, np.uint8))

    def ascontiguousarray(self, x):
        made = Array(x.shape or (1,), x.dtype, "C", Pointer(np.empty(x.nbytes, "u1")))
        made.values[...] = x.values
        return made

    def synchronize(self):
        self.log.append("event")

    def RawKernel(self, source, name):  # noqa: N802 - its name
        assert name in source
        return self.gather

    def gather(self, grid, _, arguments):
        self.log.append("gather")
        table, pack = arguments
        rows = (ctypes.c_longlong * (3 * grid[0])).from_address(table)
        for number in range(grid[0]):
            address, at, nbytes = rows[3 * number : 3 * number + 3]
            ctypes.memmove(pack + at, address, nbytes)


@pytest.fixture
def pretended(monkeypatch):
    fake = Pretended()
    monkeypatch.setattr(packs._optional, "cupy", lambda: fake)
    monkeypatch.setattr(packs, "array_maker", lambda: Array)
    monkeypatch.setattr(packs, "keep", lambda *_: fake.log.append("keep"))
    monkeypatch.setattr(packs.memory, "pinned_array", np.empty)
    packs._kernel.cache_clear()
    yield fake
    packs._kernel.cache_clear()


def test_what_is_packed_lies_in_the_packs_and_comes_back(pretended):
    arrays = many()
    assert all(x.nbytes <= packs.SMALL for x in arrays)
    sizes = [x.nbytes for x in arrays]

    there = packs.upload(arrays, Device("cuda"))

    layout = packs.packs(sizes)
    assert pretended.log.count("keep") == len(layout) > 1
    assert sum(entry == ("alloc", layout[0].nbytes) for entry in pretended.log) >= 1
    for x, y in zip(arrays, there, strict=True):
        assert y.dtype == x.dtype.newbyteorder("=")
        assert y.flags.fnc == x.flags.fnc
        np.testing.assert_array_equal(y.values, x)
    back = packs.download(there, Device("cuda"))
    for x, y in zip(arrays, back, strict=True):
        assert (type(y), y.shape, y.flags.fnc) == (np.ndarray, x.shape, x.flags.fnc)
        assert y.dtype == x.dtype.newbyteorder("=")
        np.testing.assert_array_equal(y, x)
        assert y.base is None
    assert pretended.log.count("gather") == len(layout)


@pytest.mark.usefixtures("pretended")
def test_strided_arrays_of_the_device_come_back_in_order():
    whole = packs.upload([np.arange(24.0).reshape(4, 6)], Device("cuda"))[0]
    parts = [
        whole,
        whole.T,
        turned(whole, whole.values[::2, 1:]),
        turned(whole, whole.values[0, 0]),
    ]

    back = packs.download(parts, Device("cuda"))

    for x, y in zip(parts, back, strict=True):
        assert y.shape == x.shape
        np.testing.assert_array_equal(y, x.values)


def test_pinned_memory_in_use_is_bounded(pretended):
    arrays = [np.full(8192, number, "f8") for number in range(16 * 40)]

    there = packs.upload(arrays, Device("cuda"))

    waits = pretended.log.count("event")
    assert waits == len(packs.packs([x.nbytes for x in arrays])) - packs.IN_FLIGHT
    packs.download(there, Device("cuda"))
    assert pretended.log.count("wait") == -(-40 // packs.IN_FLIGHT)


@pytest.mark.usefixtures("pretended")
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
