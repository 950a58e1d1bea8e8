"""CuPy's and Numba's allocations from the pool, device memory and pinned.

Without a driver: allocators and managers called directly, on fake memory. With one: the
same promises for real.
"""

import gc
from types import SimpleNamespace

import numpy as np
import pytest

import xdev
from xdev import memory
from xdev.errors import ConfigurationError
from xdev.memory import Pool, bridges
from xdev.testing import FakeSource

cupy = pytest.importorskip("cupy")
pytest.importorskip("numba_cuda")


@pytest.fixture
def pool():
    return Pool(FakeSource(1 << 30))


@pytest.fixture(autouse=True)
def as_it_was():
    """Leave the bridges, and CuPy's allocator, as each test found them.

    CUDA's first use puts bridges in, once: where it fell into a test, they would be out
    for all that comes after.
    """
    if xdev.Device("cuda").available:
        xdev.Device("cuda").require()
    before, allocator = bridges.installed(), cupy.cuda.get_allocator()
    yield
    bridges.uninstall()
    cupy.cuda.set_allocator(allocator)
    if before:
        cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)
        bridges.install(*before)


class TestInstallation:
    @pytest.fixture(autouse=True)
    def plain(self):
        bridges.uninstall()
        cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)

    def test_install_and_uninstall_restore_what_was_there(self):
        before = cupy.cuda.get_allocator()
        bridges.install("cupy")
        assert bridges.installed() == {"cupy"}
        mine = cupy.cuda.get_allocator()
        assert mine != before
        bridges.install("cupy")
        assert cupy.cuda.get_allocator() is mine
        bridges.uninstall("cupy")
        assert cupy.cuda.get_allocator() == before
        assert bridges.installed() == frozenset()
        bridges.uninstall("cupy")

    def test_an_allocator_that_the_user_set_stays_and_is_named(self):
        def mine(nbytes):  # noqa: ARG001
            raise MemoryError

        cupy.cuda.set_allocator(mine)
        bridges.install("cupy")
        assert cupy.cuda.get_allocator() is mine
        assert bridges.installed() == frozenset()
        assert "mine" in bridges.left_alone()["cupy"]
        cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)
        bridges.install("cupy")
        assert "cupy" not in bridges.left_alone()

    def test_one_that_the_user_set_later_stays_too(self):
        bridges.install("cupy")
        cupy.cuda.set_allocator(len)
        bridges.uninstall("cupy")
        assert cupy.cuda.get_allocator() is len

    def test_all_that_are_present_go_in_without_names(self):
        bridges.install()
        assert bridges.installed() == {"cupy", "numba"}
        bridges.uninstall()
        for call in (bridges.install, bridges.uninstall):
            with pytest.raises(ConfigurationError, match="'cupy', 'numba'"):
                call("cupy", "rmm")
        assert bridges.installed() == frozenset()

    def test_numbas_manager_is_set_and_restored_unless_the_user_chose_one(
        self, monkeypatch, numba_cuda
    ):
        driver = numba_cuda.cudadrv.driver
        bridges.install("numba")
        assert driver._memory_manager.__name__ == "XdevMemoryManager"
        bridges.uninstall("numba")
        assert driver._memory_manager is driver.NumbaCUDAMemoryManager
        monkeypatch.setattr(driver, "_memory_manager", FakeSource)
        bridges.install("numba")
        assert driver._memory_manager is FakeSource
        assert "FakeSource" in bridges.left_alone()["numba"]
        monkeypatch.setattr(driver.config, "CUDA_MEMORY_MANAGER", "rmm.numba")
        monkeypatch.setattr(driver, "_memory_manager", None)
        bridges.install("numba")
        assert "rmm.numba" in bridges.left_alone()["numba"]


def test_the_default_waits_for_numba_cuda_to_be_loaded(printed):
    program = """
import sys
from xdev.memory import bridges
bridges.install_default()
print(sorted(bridges.installed()), "numba.cuda" in sys.modules)
from numba import cuda
print(sorted(bridges.installed()), cuda.cudadrv.driver._memory_manager.__name__)
import importlib.util
print(importlib.util.find_spec("numba.cuda").name, type(cuda.__loader__).__module__)
"""
    first, second, third = printed(program).splitlines()
    assert first == "['cupy'] False"
    assert second == "['cupy', 'numba'] XdevMemoryManager"
    assert third.startswith("numba.cuda ")
    assert "xdev" not in third


def test_several_may_wait_for_one_library(printed):
    program = """
from xdev.memory import bridges
bridges.install_operators()
bridges.install_operators()
import cupy
print(sorted(bridges.installed()))
"""
    assert printed(program) == "['cupy-operators']\n"


@pytest.mark.cuda
class TestOnADevice:
    """The same promises where there is a driver."""

    @pytest.fixture(autouse=True)
    def bridged(self, cuda):
        bridges.install()
        assert bridges.installed() == {"cupy", "numba"}
        self.cuda = cuda

    def used(self):
        return memory.allocated(self.cuda)

    def test_cupy_and_numba_share_the_pool(self, numba_cuda):
        before = self.used()
        x = cupy.arange(100_000, dtype="f4")
        y = numba_cuda.to_device(np.arange(100_000, dtype="f4"))
        assert self.used() - before == 2 * 400_384
        assert cupy.array_equal(cupy.asarray(y), x)
        assert np.array_equal(numba_cuda.as_cuda_array(x).copy_to_host(), x.get())
        del x, y
        gc.collect()
        assert self.used() == before

    def test_numba_pinned_and_managed_memory(self, numba_cuda):
        pinned = numba_cuda.pinned_array(1000, "f4")
        pinned[:] = 3
        assert memory.is_pinned_address(pinned.ctypes.data)
        managed = numba_cuda.managed_array(1000, "f4")
        managed[:] = 4
        host = np.zeros(1000, "f4")
        with numba_cuda.pinned(host):
            assert numba_cuda.to_device(host).copy_to_host().sum() == 0
        assert (pinned.sum(), managed.sum()) == (3000, 4000)

    def test_uninstall_gives_cupy_its_own_pool_back(self):
        x = cupy.arange(1000)
        bridges.uninstall()
        y = cupy.arange(1000)
        assert self.used() >= x.nbytes
        assert not memory.pool(self.cuda).find(y.data.ptr)
        assert int(x.sum()) == int(y.sum())


@pytest.mark.parametrize("theirs", ["ours", "theirs", RuntimeError])
def test_pinned_memory_is_given_back_unless_somebody_else_serves_it(
    pinned_bridge, monkeypatch, theirs
):
    """CuPy does not tell which pinned allocator is set: an allocation has to."""

    class Memory:
        ptr = size = 512

    def mine(_):
        if theirs is RuntimeError:
            raise theirs
        return cupy.cuda.PinnedMemoryPointer(Memory(), 0)

    if theirs != "ours":
        cupy.cuda.pinned_memory.set_pinned_memory_allocator(mine)
    restored = []
    monkeypatch.setattr(cupy.cuda, "set_pinned_memory_allocator", restored.append)
    pinned_bridge.uninstall()
    pinned_bridge.uninstall()
    default = cupy.get_default_pinned_memory_pool().malloc
    assert restored == [default] * (theirs == "ours")


def test_pinned_memory_is_taken_over_from_cupys_own_pool_alone(pinned_bridge):
    """A request tells which allocator is set; it asks no driver, nor takes memory."""

    def mine(_):
        raise RuntimeError

    own = cupy.get_default_pinned_memory_pool().malloc
    for theirs in (own, None, mine):
        pinned_bridge._pinned = False
        cupy.cuda.set_pinned_memory_allocator(theirs)
        pinned_bridge._install_pinned()
        assert pinned_bridge._pinned is (theirs is own)


class Context(SimpleNamespace):
    """Numba's, which is referred to weakly."""


@pytest.fixture
def manager(pool, manager_on):
    core = SimpleNamespace(memory_resource=None, context=None)  # cuda.core's device
    context = Context(device=SimpleNamespace(id=0, _dev=core))
    pinned = Pool(FakeSource(1 << 30))
    manager = manager_on(context, device=pool, pinned=pinned)
    manager.kept, manager.pinned = context, pinned
    return manager


def test_numbas_device_memory_is_a_block_as_long_as_its_pointer_lives(manager, pool):
    pointer = manager.memalloc(1000)
    address = pointer.device_pointer_value
    assert pool.stats().allocated == 1024
    assert pool.find(address).address == address
    view = pointer.view(100, 200)
    assert view.device_pointer_value == address + 100
    info = manager.get_memory_info()  # the cache is free memory
    assert (info.total, info.free) == (1 << 30, (1 << 30) - 1024)
    assert pool.stats().cached > 0
    del pointer, view
    gc.collect()
    assert pool.stats().allocated == 0
    assert manager.memalloc(1000).device_pointer_value == address


def test_numbas_pinned_memory_waits_for_its_copies(manager):
    pointer = manager.memhostalloc(1000, portable=True)
    assert manager.pinned.find(pointer.host_pointer) is not None
    del pointer
    gc.collect()
    assert manager.pinned.stats().allocated == 0
    assert ("record", 0) in manager.pinned.state.source.log


def test_a_reset_of_numbas_context_gives_everything_back(manager, pool):
    pointers = [manager.memalloc(n) for n in (10, 2000, 3000)]
    manager.reset()
    assert pool.stats().allocated == 0
    del pointers
    gc.collect()
    assert pool.stats().released == 3


def test_host_arguments_of_numbas_kernels_come_from_the_pool(
    manager, pool, core_resource
):
    device = manager.context.device._dev
    before = device.memory_resource = object()
    manager.initialize()
    resource = device.memory_resource
    assert isinstance(resource, core_resource)
    assert (resource.is_device_accessible, resource.is_host_accessible) == (True, False)
    for stream in (0, SimpleNamespace(handle=9)):  # in whose order it is dropped
        resource.deallocate(resource.take(1000, 0), 1000, stream=stream)
        assert pool.stats().allocated == 0
    assert ("record", 9) in pool.state.source.log
    manager.retire()
    assert device.memory_resource is before
