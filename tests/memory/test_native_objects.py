"""CuPy's pointers and arrays by machine code, beside those that CuPy makes."""

import ctypes
import gc
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import array_shapes
from without_a_driver import TIB, Current, array_like, like, serving

from xdev import memory
from xdev._c_functions import address_of
from xdev.errors import OutOfMemoryError
from xdev.memory import records
from xdev.memory.native import cupy as native
from xdev.memory.native.objects import DTYPE, EXTENTS, ORDERS, POINTER
from xdev.memory.pools import Pool
from xdev.memory.sources.fake import FakeSource

cupy = pytest.importorskip("cupy")

DTYPES = st.sampled_from("?bhilefdFD")


@pytest.fixture
def current():
    return Current()


@pytest.fixture
def pools():
    return [Pool(FakeSource(TIB)) for _ in range(2)]


@pytest.fixture
def served(pools, current):
    with serving(pools, current) as made:
        yield made


def told(pointer):
    """Return all there is to a pointer."""
    memory = pointer.mem
    return (
        *(type(pointer), pointer.ptr, pointer.device_id, gc.is_tracked(pointer)),
        *(type(memory), memory.ptr, memory.size, memory.device_id),
        *(native._words(pointer)[:-1], native._words(memory)),
        *(sys.getrefcount(pointer), sys.getrefcount(memory)),
    )


def all_told(x):
    """Return all there is to an array, but for where its extents and strides are."""
    flags, words = x.flags, native._words(x)
    return (
        *(type(x), x.shape, x.strides, x.size, x.nbytes, x.ndim, x.itemsize, x.dtype),
        *(flags.c_contiguous, flags.f_contiguous, flags.owndata, x._index_32_bits),
        *(x.base, gc.is_tracked(x), sys.getsizeof(x), sys.getrefcount(x)),
        *(words[:EXTENTS], words[ORDERS : DTYPE + 1], words[POINTER + 1 :]),
        *told(x.data),
    )


def as_by_cupy(served, shape, dtype):
    """Return all there is to an array that CuPy makes, and drop it."""
    with cupy.cuda.using_allocator(served.python):
        for _ in range(2):  # the first block may be none of the front's
            found = all_told(cupy.ndarray(shape, dtype))
    return found


class Callable:
    """It has nothing where a C function has its definition."""

    __slots__ = ("nothing",)

    def __call__(self):
        pass


class TestPointers:
    def test_a_block_of_the_class_is_served_without_python(self, served, pools):
        first = cupy.ndarray((1000,), "f4")
        assert served.asked == [4000] * 2
        address = first.data.ptr
        del first
        for _ in range(3):
            x = cupy.ndarray((1000,), "f4")
            assert (x.data.ptr, x.data.mem.size) == (address, 4000)
            assert pools[0].stats().allocated == 4096
            del x
        assert served.asked == [4000] * 2
        assert pools[0].stats().acquired == 4
        assert pools[0].stats().live == 0

    def test_a_pointer_is_as_the_one_that_cupy_makes(self, served):
        served.python(5000)
        expected = told(served.python(5000))
        del served.asked[:]
        found = told(served.allocator(5000))  # pytest would hold it in an assertion
        assert found == expected
        assert served.asked == []

    def test_views_keep_the_block(self, served, pools):
        served.allocator(4000)
        x = cupy.ndarray((1000,), "f4")
        views = [x[3:], x.reshape(10, 100).T, x.view("i4"), x.data + 8]
        del x
        assert pools[0].stats().live == 1
        while views:
            assert pools[0].stats().live == 1
            views.pop()
        assert pools[0].stats().live == 0

    def test_blocks_are_of_the_current_device_and_stream(self, served, pools, current):
        seen = set()
        for current.device, current.stream in [(0, 0), (1, 0), (0, 7), (1, 7)]:
            for _ in range(2):
                x = cupy.ndarray((1000,), "f4")
            assert x.data.device_id == x.data.mem.device_id == current.device
            pool = pools[current.device]
            assert pool.find(x.data.ptr).stream == current.stream
            seen.add((current.device, x.data.ptr))
        assert len(seen) == 4
        del x, served.asked[:]
        x = cupy.ndarray((1000,), "f4")
        assert x.data.device_id == x.data.mem.device_id == 1
        assert served.asked == []
        del x
        assert [pool.stats().live for pool in pools] == [0, 0]

    @pytest.mark.parametrize("nbytes", [0, -1, -(1 << 70), 1 << 70, 2.0, "3", None])
    def test_what_is_no_size_is_told_as_by_python(self, served, nbytes):
        served.allocator(512)

        def outcome(allocate):
            try:
                made = allocate(nbytes)
            except Exception as error:  # noqa: BLE001 - which one, is the point
                return type(error), str(error)
            return made.mem.size, made.ptr == 0

        assert outcome(served.allocator) == outcome(served.python)

    @pytest.mark.parametrize("nbytes", [np.int64(512), np.uint8(200), True])
    def test_other_integers_are_sizes(self, served, pools, nbytes):
        assert served.allocator(nbytes).ptr
        assert pools[0].stats().live == 0

    def test_a_refusal_says_what_it_said(self, served, pools):
        with pytest.raises(OutOfMemoryError) as theirs:
            served.python(2 * TIB)
        with pytest.raises(OutOfMemoryError) as ours:
            cupy.ndarray((2 * TIB,), "u1")
        assert str(ours.value) == str(theirs.value)
        assert "cannot allocate 2,199,023,255,552 B" in str(ours.value)
        assert pools[0].stats().live == 0

    def test_a_device_that_is_not_there_is_left_to_python(self, served, current):
        served.allocator(4000)
        current.device = 7  # there is none
        with pytest.raises(IndexError):
            served.allocator(4000)

    def test_what_asking_for_the_device_raises_is_forgotten(self, pools, current):
        """CuPy raises it again, or not: it is asked once more by Python."""
        current.device_at = address_of(ctypes.pythonapi.PyLong_AsLong)  # of no object
        with serving(pools, current) as served:
            assert served.allocator(4000).ptr
            assert array_like(like((1000,)), "f4") is None
            assert cupy.ndarray((1000,), "f4").size == 1000
        assert pools[0].stats().live == 0

    def test_tracked_blocks_come_from_python(self, served, pools):
        served.allocator(4000)
        with memory.track():
            x = cupy.ndarray((1000,), "f4")
            assert len(records.tracking.TRACKER.live[pools[0].stock]) == 1
            del x
        cupy.ndarray((1000,), "f4")
        del served.asked[:]
        cupy.ndarray((1000,), "f4")
        assert served.asked == []
        assert pools[0].stats().live == 0

    def test_nothing_is_left_of_ten_thousand_allocations(self, served, pools):
        def make(count):
            for k in range(count):
                cupy.ndarray((10, 1 + k % 5), "f8")
                array_like(x, "f8")

        x, kinds = like((3, 4)), (cupy.ndarray, np.dtype("f8"), (), served.allocator)
        make(100)
        gc.collect()
        before = sys.getallocatedblocks(), [sys.getrefcount(each) for each in kinds]
        nothing = sys.getrefcount(None)
        make(10_000)
        gc.collect()
        assert [sys.getrefcount(each) for each in kinds] == before[1]
        assert abs(sys.getrefcount(None) - nothing) < 100
        assert abs(sys.getallocatedblocks() - before[0]) < 100
        assert pools[0].stats().live == 0
        assert len(served.asked) < 20

    @pytest.mark.usefixtures("served")
    def test_threads_that_are_switched_at_any_time_share_no_block(self, pools):
        errors, x, is_array = [], like((1000,)), lambda y: y is not None

        def work():
            held = []
            for _ in range(2000):
                held += [cupy.ndarray((1000,), "f4"), array_like(x, "f4")]
                new = filter(is_array, held[-2:])
                errors.extend(owners.setdefault(y.data.ptr, y) is not y for y in new)
                for y in filter(is_array, held[:-4]):
                    del owners[y.data.ptr]
                y = new = held = held[-4:]

        owners, interval = {}, sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
        assert not any(errors)
        owners.clear()
        assert pools[0].stats().live == 0


class TestArrays:
    @given(
        array_shapes(min_dims=0, min_side=1, max_dims=6, max_side=5),
        DTYPES,
        DTYPES,
    )
    @settings(deadline=None)
    def test_an_array_is_as_the_one_that_cupy_makes(self, shape, char, other):
        with serving([Pool(FakeSource(TIB))], Current()) as served:
            expected = as_by_cupy(served, shape, char)
            del served.asked[:]
            found = all_told(array_like(like(shape, other), char))
            assert found == expected
            assert served.asked == []

    @pytest.mark.parametrize("size", [(1 << 29) - 1, 1 << 29, (1 << 29) + 1])
    def test_how_far_its_addresses_reach(self, served, size):
        expected = as_by_cupy(served, (size,), "f4")
        found = all_told(array_like(like((size,)), "f4"))
        assert found == expected

    def test_the_other_arrays_strides_do_not_matter(self, served):
        for x in (like((1, 8))[:, ::2][:, :1], like((5, 1, 3))[::5]):
            assert x.flags.c_contiguous
            expected = as_by_cupy(served, x.shape, "f4")
            found = all_told(array_like(x, "f4"))
            assert found == expected

    def test_it_is_like_any_other_afterwards(self, served, pools):
        served.allocator(4800)
        x = array_like(like((30, 40)), "f4")
        x.shape = (2, 600)
        assert x.strides == (2400, 4)
        x.shape = (1, 2, 3, 200)
        y = x.T
        assert y.base is x
        del x, y
        assert pools[0].stats().live == 0

    def test_what_it_cannot_serve_it_leaves(self, served, pools, current):
        x = like((1000,))
        assert array_like(x, "f4") is None  # no block of the class
        served.allocator(4000)
        assert array_like(like((0, 3)), "f4") is None
        current.device = -1
        assert array_like(x, "f4") is None
        current.device = 0
        for other in (len, served.python, Callable(), cupy.ndarray.fill):
            with cupy.cuda.using_allocator(other):
                assert array_like(x, "f4") is None
        assert array_like(x, "f4") is not None
        pools[0].budget.set(1)
        assert array_like(x, "f4") is None
        assert pools[0].stats().live == 0

    def test_each_thread_has_its_allocator(self, served):
        served.allocator(4000)
        found = []
        with cupy.cuda.using_allocator(served.python):
            thread = threading.Thread(
                target=lambda: found.append(array_like(like((1000,)), "f4").size)
            )
            thread.start()
            thread.join()
            assert array_like(like((1000,)), "f4") is None
        assert found == [1000]
