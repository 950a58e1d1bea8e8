"""CuPy's pinned memory on fake memory, without a driver."""

import pytest

from xdev.memory.pools import Pool
from xdev.memory.sources.fake import FakeSource

cupy = pytest.importorskip("cupy")


@pytest.fixture
def pool():
    return Pool(FakeSource(1 << 30))


def test_pinned_memory_of_cupy_is_a_block(pool):
    from xdev.memory.bridges.cupy import pinned_allocator

    pointer = pinned_allocator(lambda: pool)(1000)
    assert pool.find(pointer.ptr).address == pointer.ptr
    assert pointer.size() >= 1000
    del pointer
    assert pool.stats().allocated == 0


class TestPinnedUninstall:
    """CuPy does not tell which pinned allocator is set: an allocation has to."""

    @pytest.fixture
    def bridge(self, pool):
        """A bridge whose pinned allocator is in, as with a driver."""
        from xdev.memory.bridges.cupy import CupyBridge, pinned_allocator

        bridge = CupyBridge()
        bridge._pinned = lambda: pool
        cupy.cuda.set_pinned_memory_allocator(pinned_allocator(lambda: pool))
        yield bridge
        default = cupy.get_default_pinned_memory_pool().malloc
        cupy.cuda.set_pinned_memory_allocator(default)

    @pytest.fixture
    def restored(self, monkeypatch):
        """What the bridge sets."""
        found = []
        monkeypatch.setattr(cupy.cuda, "set_pinned_memory_allocator", found.append)
        return found

    def test_its_own_allocator_is_taken_out(self, bridge, pool, restored):
        bridge.uninstall()
        assert restored == [cupy.get_default_pinned_memory_pool().malloc]
        assert pool.stats().live == 0
        bridge.uninstall()
        assert len(restored) == 1

    def test_so_it_is_where_the_pool_has_nothing_left(self, bridge, pool, restored):
        pool.budget.set(0)
        bridge.uninstall()
        assert len(restored) == 1

    @pytest.mark.parametrize("error", [None, RuntimeError, MemoryError])
    def test_one_that_the_user_set_since_stays(self, bridge, pool, error, restored):
        theirs = Pool(FakeSource(1 << 20), name="theirs")

        class Memory:
            ptr, size = theirs.acquire(512).address, 512

        def mine(nbytes):  # noqa: ARG001
            if error is not None:
                raise error
            return cupy.cuda.PinnedMemoryPointer(Memory(), 0)

        before = pool.stats().acquired
        cupy.cuda.pinned_memory.set_pinned_memory_allocator(mine)
        bridge.uninstall()
        assert restored == []
        assert pool.stats().acquired == before
