"""CuPy's pointers by machine code, beside those that CuPy makes."""

import ctypes
import gc
import sys
import threading

import numpy as np
import pytest
from without_a_driver import TIB, Current, serving

from xdev import memory
from xdev._c_functions import address_of
from xdev.errors import OutOfMemoryError
from xdev.memory import records
from xdev.memory.native import cupy as native
from xdev.memory.pools import Pool
from xdev.memory.sources.fake import FakeSource

cupy = pytest.importorskip("cupy")


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

        kinds = cupy.ndarray, np.dtype("f8"), (), served.allocator
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
        errors = []

        def work():
            held = []
            for _ in range(2000):
                held.append(x := cupy.ndarray((1000,), "f4"))
                errors.append(owners.setdefault(x.data.ptr, x) is not x)
                for x in held[:-4]:
                    del owners[x.data.ptr]
                x = held = held[-4:]

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
