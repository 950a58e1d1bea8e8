"""CuPy's arrays from the pools, by C functions and without them."""

from pathlib import Path

import pytest
from memory_laws import output
from running import within
from without_a_driver import TIB, Current, serving

from xdev import memory
from xdev.memory import Pool
from xdev.testing import FakeSource

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


class TestPointers:
    @pytest.mark.usefixtures("tier")
    def test_a_class_hit_is_cupys_own_memory_without_python(
        self, served, pools, monkeypatch
    ):
        cupy.ndarray((1000,), "f4")
        monkeypatch.setattr(Pool, "take", None)
        x = cupy.ndarray((1000,), "f4")
        assert type(x.data.mem) is cupy.cuda.memory.CFunctionAllocatorMemory
        assert x.data.mem.size == 4000
        assert pools[0].stats().live == 1
        del x
        assert served.hits == 2

    @pytest.mark.usefixtures("served")
    def test_blocks_are_of_the_current_device_and_stream(self, pools, current):
        seen = set()
        for current.device, current.stream in [(0, 0), (1, 0), (0, 7), (1, 7)]:
            for _ in range(2):
                x = cupy.ndarray((1000,), "f4")
            assert x.data.device_id == x.data.mem.device_id == current.device
            pool = pools[current.device]
            assert pool.find(x.data.ptr).stream == current.stream
            seen.add((current.device, x.data.ptr))
        assert len(seen) == 4
        del x
        assert [pool.stats().live for pool in pools] == [0, 0]

    def test_tracked_blocks_come_from_python(self, served, pools):
        served.allocator(4000)
        before = served.hits
        with memory.track():
            x = cupy.ndarray((1000,), "f4")
            assert pools[0].stats().live == 1
            del x
        assert served.hits == before
        cupy.ndarray((1000,), "f4")
        before = served.hits
        cupy.ndarray((1000,), "f4")
        assert served.hits == before + served.is_native
        assert pools[0].stats().live == 0

    @pytest.mark.usefixtures("served")
    def test_threads_that_are_switched_at_any_time_share_no_block(self, pools):
        owners = {}

        def work():
            held = []
            for _ in range(2000):
                held.append(x := cupy.ndarray((1000,), "f4"))
                assert owners.setdefault(x.data.ptr, x) is x
                for x in held[:-4]:
                    del owners[x.data.ptr]
                x = held = held[-4:]

        within(60, [work] * 4, interval=1e-6)
        owners.clear()
        assert pools[0].stats().live == 0


EXIT = """
import sys
sys.path.append({!r})
import cupy
from without_a_driver import Current, serving
from xdev.memory import Pool
from xdev.testing import FakeSource

serve = serving([Pool(FakeSource(1 << 30))], Current())
serve.__enter__()
for _ in range(3):
    kept = cupy.ndarray((1000,), "f4")

class Late:
    def __init__(self):
        self.array, self.make = cupy.ndarray((10,), "f4"), cupy.ndarray
    def __del__(self):
        self.make((10,), "f4")

late = Late()
late.me = late
sys.late = Late()
print("alive")
"""


def test_a_program_ends_with_arrays_alive():
    assert output(EXIT.format(str(Path(__file__).parent))) == "alive\n"
