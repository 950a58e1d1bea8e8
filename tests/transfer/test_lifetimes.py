"""Whose stream a pinned block waits for, on a stand-in for CuPy with two devices."""

from types import SimpleNamespace

import numpy as np
import pytest

from xdev import _optional
from xdev.memory import Pool
from xdev.memory.sources import cuda
from xdev.memory.sources.cuda import PinnedSource
from xdev.transfer import pinned as lifetimes


class Driver:
    """Two devices; events know where they were made and what was recorded on them."""

    hostAllocPortable = 1  # noqa: N815 - CuPy's name
    CUDARuntimeError = RuntimeError

    def __init__(self):
        self.current, self.waits, self.buffers = 0, [], {}
        self.events = {}
        driver = self

        class Device:
            def __init__(self, index):
                self.index = index

            def __enter__(self):
                self.before, driver.current = driver.current, self.index

            def __exit__(self, *_):
                driver.current = self.before

        class Event:
            def __init__(self, **_):
                self.device, self.stream, self.done = driver.current, None, False
                self.ptr = len(driver.events) + 1
                driver.events[self.ptr] = self

        self.cuda = SimpleNamespace(runtime=self, Device=Device, Event=Event)

    def hostAlloc(self, nbytes, _):  # noqa: N802
        made = np.empty(nbytes + 512, np.uint8)
        address = -(-made.ctypes.data // 512) * 512
        self.buffers[address] = made
        return address

    def freeHost(self, address):  # noqa: N802
        del self.buffers[address]

    def eventRecord(self, event, stream):  # noqa: N802
        assert self.events[event].device == self.current, "of two devices"
        self.events[event].stream = stream


class Stream:
    """One that destroys itself, as CuPy's do."""

    def __init__(self, ptr):
        self.ptr, self.done, self.events = ptr, True, []

    def __del__(self):
        pass

    def record(self):
        self.events.append(SimpleNamespace(done=False))
        return self.events[-1]


@pytest.fixture
def driver(monkeypatch):
    driver = Driver()
    monkeypatch.setattr(_optional, "cupy", lambda: driver)
    monkeypatch.setattr(lifetimes, "_under_way", type(lifetimes._under_way)())
    fresh = type(lifetimes.live_streams)()
    monkeypatch.setattr(lifetimes, "live_streams", fresh)
    monkeypatch.setattr(cuda, "live_streams", fresh)
    return driver


def test_a_dropped_block_waits_for_the_copy(driver, monkeypatch):
    pool, stream = Pool(PinnedSource()), Stream(0x7000)
    block = pool.acquire(1 << 20)
    address = block.address
    x = np.frombuffer(driver.buffers[address], np.uint8)  # starts in it, or before
    found = [block.chunk]
    monkeypatch.setattr(lifetimes, "find", lambda *_: found.pop())

    lifetimes.keep(stream, 1, x)
    del block, stream
    other = pool.acquire(1 << 20)
    (event,) = driver.events.values()

    assert not lifetimes._under_way
    assert (event.device, event.stream) == (1, 0x7000)
    assert other.address != address, "the block is on the bus"
    event.done = True
    again = pool.acquire(1 << 20)
    assert again.address == address


def test_memory_of_others_is_kept_until_its_event(driver, monkeypatch):
    monkeypatch.setattr(lifetimes, "find", lambda *_: None)
    first, second = Stream(0x7000), Stream(0x8000)

    lifetimes.keep(first, 0, np.ones(3))
    lifetimes.keep(second, 0, np.zeros(3))
    lifetimes.drop_done()
    assert len(lifetimes._under_way) == 2

    second.events[0].done = True  # in another order than they came
    lifetimes.drop_done()
    ((event, (kept,)),) = lifetimes._under_way
    assert event is first.events[0]
    assert kept[0] == 1
    assert driver.events == {}, "no pool's block was marked"
