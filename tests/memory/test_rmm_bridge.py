"""RMM's allocations from the pool.

Without a driver: RMM's own resources, called directly, on fake and simulated memory.
With one: buffers for real.
"""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from xdev import memory
from xdev.device.streams import LiveStreams
from xdev.memory import Pool, bridges
from xdev.memory.bridges import opt_in as bridge
from xdev.testing import FakeSource

rmm = pytest.importorskip("rmm")
from rmm.pylibrmm.stream import Stream  # noqa: E402 - RMM may be missing


@pytest.fixture(autouse=True)
def streams(monkeypatch):
    """Hold the streams of a test apart from the process's."""
    found = LiveStreams()
    monkeypatch.setattr(bridge, "live_streams", found)
    return found


@pytest.fixture(autouse=True)
def as_it_was():
    before = rmm.mr.get_per_device_resource(0)
    yield
    bridges.uninstall("rmm")
    rmm.mr.set_per_device_resource(0, before)


@pytest.fixture
def pool():
    return Pool(FakeSource(1 << 30))


@pytest.fixture
def resource(pool):
    return bridge.resource(lambda _: pool, 0)


def on(handle):
    """Return RMM's stream of a handle, by CUDA's stream protocol."""
    return Stream(SimpleNamespace(__cuda_stream__=lambda: (0, handle)))


class TestResource:
    def test_a_block_belongs_to_the_stream_that_rmm_names(
        self, resource, pool, streams
    ):
        first = resource.allocate(1000, on(7))
        assert pool.find(first).stream == 7
        assert streams.several
        resource.deallocate(first, 1000, on(7))
        assert resource.allocate(1000) != first
        assert resource.allocate(1000, on(7)) == first

    def test_a_block_that_another_stream_gives_back_waits_for_both(
        self, resource, pool
    ):
        address = resource.allocate(1000, on(7))
        pool.state.mark(pool.find(address), (5,))  # as record_stream does
        resource.deallocate(address, 1000, on(9))
        assert pool.stats().allocated == 0
        recorded = [call for call in pool.state.source.log if call[0] == "record"]
        assert sorted(recorded) == [("record", 5), ("record", 9)]


# Whoever holds the buffer goes after the modules of xdev: what the bridge's functions
# need must not be among these. 7: the block is back.
LAST = """
import os, rmm
from xdev.memory.bridges import opt_in as bridge
from xdev.memory import Pool
from xdev.testing import FakeSource

class Buffer:
    def __init__(self, pool):
        self.resource = bridge.resource(lambda _: pool, 0)
        self.address = self.resource.allocate(1000)
        self.dropped, self.leave = pool.state.pending, os._exit

    def __del__(self):
        self.resource.deallocate(self.address, 1000)
        if [chunk.address for chunk in self.dropped] == [self.address]:
            self.leave(7)

os.kept = Buffer(Pool(FakeSource(1 << 20)))
"""


def run(program):
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_a_buffer_that_outlives_the_modules_still_gives_its_block_back():
    assert run(LAST) == (7, "")


class TestInstallation:
    def test_install_and_uninstall_restore_what_was_there(self):
        before = rmm.mr.get_per_device_resource(0)
        bridges.install("rmm")
        assert "rmm" in bridges.installed()
        mine = rmm.mr.get_per_device_resource(0)
        assert mine is bridge.resource(bridges.device_pool, 0)
        bridges.install("rmm")
        assert rmm.mr.get_per_device_resource(0) is mine
        bridges.uninstall("rmm")
        assert rmm.mr.get_per_device_resource(0) is before
        assert "rmm" not in bridges.installed()

    def test_a_resource_that_the_user_set_stays_and_is_named(self, resource):
        mine = rmm.mr.StatisticsResourceAdaptor(resource)
        rmm.mr.set_per_device_resource(0, mine)
        bridges.install("rmm")
        assert rmm.mr.get_per_device_resource(0) is mine
        assert "rmm" not in bridges.installed()
        found = bridges.left_alone()["rmm"]
        assert "of device 0 was set to" in found
        assert "StatisticsResourceAdaptor" in found
        rmm.mr.set_per_device_resource(0, rmm.mr.CudaMemoryResource())  # as it says
        bridges.install("rmm")
        assert "rmm" in bridges.installed()
        assert "rmm" not in bridges.left_alone()


@pytest.mark.cuda
def test_on_a_device_buffers_are_blocks_and_keep_their_bytes(cuda):
    bridges.install("rmm")
    before, pool = memory.allocated(cuda), memory.pool(cuda)
    held, streams = [], [Stream() for _ in range(4)]
    for turn in range(200):
        stream, data = streams[turn % 4], bytes([turn % 251]) * 1_000_000
        buffer = rmm.DeviceBuffer.to_device(data, stream)
        assert pool.find(buffer.ptr).address == buffer.ptr
        copy = rmm.DeviceBuffer(ptr=buffer.ptr, size=buffer.size, stream=stream)
        held.append((copy, data, stream))
        del buffer, copy  # the first one's block: perhaps with the copy under way
        if len(held) > 6:
            copy, data, stream = held.pop(0)
            assert copy.tobytes(stream) == data
            del copy
    bridges.uninstall("rmm")
    copy, data, stream = held.pop()
    assert copy.tobytes(stream) == data
    del copy
    held.clear()
    assert memory.allocated(cuda) == before
    program = (
        "import rmm; from xdev.memory import bridges; bridges.install('rmm');"
        "held = [rmm.DeviceBuffer(size=1000 << i) for i in range(12)];"
        "held.append(held); rmm.kept = rmm.DeviceBuffer(size=5)"
    )
    assert run(program) == (0, "")
