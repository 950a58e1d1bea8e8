"""Numba's memory manager on fake memory, without a driver."""

import gc
from types import SimpleNamespace

import pytest

from xdev import _optional
from xdev.memory import Pool
from xdev.testing import FakeSource

pytest.importorskip("numba_cuda")


@pytest.fixture
def pool():
    return Pool(FakeSource(1 << 30))


class Core:
    """A stand-in for cuda.core's device."""

    memory_resource = context = None


@pytest.fixture
def context():
    class Device:
        id = 0
        _dev = Core()

    class Context:
        device = Device()

    return Context()


@pytest.fixture
def manager(context, pool):
    from xdev.memory.bridges.numba import manager_type

    pinned = Pool(FakeSource(1 << 30))
    pools = {"device": pool, "pinned": pinned}
    found = manager_type.__wrapped__(lambda _, kind: pools[kind])(context=context)
    found.pinned = pinned
    return found


class TestNumbaManager:
    def test_device_memory_is_a_block_as_long_as_the_pointer_lives(self, manager, pool):
        pointer = manager.memalloc(1000)
        address = pointer.device_pointer_value
        assert pool.stats().allocated == 1024
        assert pool.find(address).address == address
        assert pointer.size == 1000
        view = pointer.view(100, 200)
        assert view.device_pointer_value == address + 100
        del pointer, view
        gc.collect()
        assert pool.stats().allocated == 0
        assert manager.memalloc(1000).device_pointer_value == address

    def test_free_by_hand_is_once(self, manager, pool):
        pointer = manager.memalloc(1000)
        pointer.free()
        assert pool.stats().allocated == 0
        with pytest.raises(RuntimeError, match="dead"):
            pointer.free()

    def test_pinned_memory_is_a_buffer_on_the_pinned_pool(self, manager):
        pointer = manager.memhostalloc(1000, portable=True)
        assert manager.pinned.stats().allocated == 1024
        assert manager.pinned.find(pointer.host_pointer) is not None
        del pointer
        gc.collect()
        assert manager.pinned.stats().allocated == 0
        assert ("record", 0) in manager.pinned.state.source.log

    def test_reset_gives_everything_back(self, manager, pool):
        pointers = [manager.memalloc(n) for n in (10, 2000, 3000)]
        manager.reset()
        assert pool.stats().allocated == 0
        del pointers
        gc.collect()
        assert pool.stats().live == 0
        assert pool.stats().released == 3

    def test_cleanup_may_be_deferred(self, manager, pool):
        with manager.defer_cleanup():
            pointer = manager.memalloc(10)
            del pointer
            gc.collect()
        assert pool.stats().allocated == 0

    def test_memory_info_counts_the_cache_as_free(self, manager, pool):
        pointer = manager.memalloc(1000)
        info = manager.get_memory_info()
        assert info.total == 1 << 30
        assert info.free == (1 << 30) - pool.stats().allocated
        assert pool.stats().cached > 0
        del pointer

    def test_the_interface_is_whole(self, manager):
        cuda = _optional.numba_cuda()
        base = cuda.BaseCUDAMemoryManager
        assert isinstance(manager, base)
        assert manager.interface_version == 1
        for name in ("mempin", "memallocmanaged", "get_ipc_handle", "initialize"):
            assert callable(getattr(manager, name))
        assert type(manager)(context=None).interface_version == 1

    def test_host_arguments_come_from_the_pool_too(self, manager, context):
        from xdev.memory.bridges.numba import resource_type

        before = context.device._dev.memory_resource = object()
        manager.initialize()
        manager.initialize()
        assert isinstance(context.device._dev.memory_resource, resource_type())
        manager.retire()
        assert context.device._dev.memory_resource is before

    def test_a_context_without_cuda_core_is_left_as_it_is(self, pool):
        from xdev.memory.bridges.numba import manager_type

        bare = SimpleNamespace(device=SimpleNamespace(id=0))
        made = manager_type.__wrapped__(lambda _, kind: pool)(context=bare)  # noqa: ARG005
        made.initialize()
        made.retire()
        assert made.context is bare


class TestCoreResource:
    def test_a_block_goes_out_and_comes_back(self, pool):
        from xdev.memory.bridges.numba import resource_type

        found = resource_type()(pool)
        assert (found.is_device_accessible, found.is_host_accessible) == (True, False)
        assert found.device_id == 0
        found.deallocate(found._loans.take(1000, 0), 1000, stream=0)
        assert pool.stats().allocated == 0

    def test_a_buffer_dropped_on_another_stream_waits_for_it(self, pool):
        from xdev.memory.bridges.numba import resource_type

        found = resource_type()(pool)
        found.deallocate(
            found._loans.take(1000, 0), 1000, stream=SimpleNamespace(handle=9)
        )
        assert pool.stats().allocated == 0
        assert ("record", 9) in pool.state.source.log
