"""Blocks go from stream to stream in order; no stream ends while its handle is kept."""

import gc
import threading
import weakref

import pytest
from memory_laws import Slow

import xdev
from xdev import memory
from xdev.memory import Pool
from xdev.memory.state import PoolState
from xdev.memory.streams import LiveStreams, live_streams
from xdev.testing import FakeSource, SimulatedDevice, SimulatedSource


class Stream:
    """Stands in for CuPy's: it destroys itself."""

    def __init__(self, ptr, destroyed=None, *, done=True):
        self.ptr, self.done = ptr, done
        self.destroyed = [] if destroyed is None else destroyed

    def __del__(self):
        self.destroyed.append(self.ptr)


class ExternalStream:
    """A handle that somebody else may destroy."""

    ptr, done = 78, True


def test_a_stream_lives_while_its_work_is_under_way():
    destroyed = []
    live, stream = LiveStreams(), Stream(77, destroyed, done=False)
    live.see(stream)
    kept = weakref.ref(stream)
    del stream

    assert live.retire() == []
    assert live.get(77) is kept()

    held = kept()
    held.done = True
    assert live.retire() == [], "somebody holds it"
    del held
    assert live.retire() == [77]
    assert (live.get(77), destroyed) == (None, [77])
    again = Stream(77)  # has the handle
    live.see(again)
    assert live.get(77) is again


def test_default_streams_live_for_ever_and_foreign_ones_are_unknown():
    live = LiveStreams()
    live.see(ExternalStream())
    for handle in (1, 2):
        live.see(Stream(handle))

    assert live.retire() == []  # none of them is held
    assert live.get(78) is None
    assert live.get(79) is None
    assert all(live.get(handle) is not None for handle in (0, 1, 2))


def test_a_stream_that_may_have_joined_a_capture_is_not_asked():
    live, joined = LiveStreams(), []

    class Joined(Stream):
        @property
        def done(self):
            joined.append(self.ptr)
            return True

        @done.setter
        def done(self, _):
            pass

    live.see(Joined(77))
    live.captured.add(78)
    assert (live.retire(), joined) == ([], [])
    live.captured.clear()
    assert (live.retire(), joined) == ([77], [77])


def test_no_event_is_recorded_while_a_graph_is_captured(capturing):
    device = SimulatedDevice()
    pool = Pool(SimulatedSource(device, 1 << 30))
    first, second = device.stream(), device.stream()
    block = pool.acquire(4096, first.ptr)
    pool.state.mark(block.chunk, (second.ptr,))
    del block
    capturing(99)
    pool.acquire(1 << 20, first.ptr)
    assert pool.stats().events == 0
    capturing()
    pool.acquire(1 << 20, first.ptr)
    assert pool.stats().events == 1


def test_free_memory_of_a_stream_that_ended_goes_to_whoever_asks():
    device = SimulatedDevice()
    source = SimulatedSource(device, 1 << 30)
    pool = Pool(source)
    for _ in range(100):
        with device.stream() as stream:
            pool.acquire(40 << 20, stream.ptr)
        del stream
        device.now += 1.0
    assert pool.reserved <= 3 * (40 << 20)


@pytest.mark.cuda
def test_blocks_of_destroyed_streams_are_handed_out_again(cuda):
    import cupy

    nbytes = 64 << 20
    memory.reclaim()
    before = memory.reserved(cuda, "device")
    for _ in range(4):
        with cupy.cuda.Stream(non_blocking=True):
            x = cupy.ones(nbytes // 8)
            y = x * 2
        del x, y
    gc.collect()
    memory.set_limit(before + 3 * nbytes, cuda)
    try:
        held = [cupy.full(nbytes // 8, i) for i in range(2)]
        assert [float(x[-1]) for x in held] == [0, 1]
    finally:
        memory.set_limit(None, cuda)
    xdev.synchronize(cuda)


def test_no_thread_uses_a_second_stream_before_all_are_told():
    live, marking = LiveStreams(), []
    entered, go_on = threading.Event(), threading.Event()

    def tell():
        if not entered.is_set():  # the first thread is held up
            entered.set()
            go_on.wait(60)
        marking.append(True)

    live.when_several.append(tell)
    first = threading.Thread(target=live.see, args=(77,))
    first.start()
    entered.wait(60)

    live.see(88)
    assert marking
    go_on.set()
    first.join()
    told = len(marking)
    live.see(99)
    assert len(marking) == told


def test_a_finalizer_may_use_a_stream_while_all_are_told():
    live, told = LiveStreams(), []

    def tell():
        told.append(True)
        if len(told) == 1:
            live.see(88)  # as in a finalizer

    live.when_several.append(tell)
    live.see(77)
    assert live.several
    assert len(told) == 2


@pytest.mark.cuda
def test_a_stream_outlives_its_last_reference_until_its_work_is_done(cuda):
    import cupy

    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        x = cupy.ones(1 << 26)
        for _ in range(500):
            cupy.add(x, 1.0, out=x)
    handle = stream.ptr
    del stream
    assert live_streams.get(handle) is not None

    xdev.synchronize(cuda)
    memory.reclaim()
    with cupy.cuda.Stream(non_blocking=True):
        y = cupy.ones(1 << 24)
    xdev.synchronize(cuda)
    assert live_streams.get(handle) is None
    assert float(y[0]) + float(x[0]) == 502
    xdev.synchronize(cuda)


@pytest.mark.cuda
def test_a_recorded_stream_may_be_destroyed(cuda):
    import cupy

    before = memory.allocated(cuda)
    x = xdev.empty(100_000, device=cuda)
    memory.record_stream(x, cupy.cuda.Stream())
    gc.collect()
    del x

    assert memory.allocated(cuda) == before


def test_a_marked_block_comes_back_after_the_other_streams_work():
    source = Slow()
    pool = Pool(source)
    block = pool.acquire(4096, stream=1)
    address = block.address
    pool.state.mark(block.chunk, (5, 6))
    del block
    assert pool.stats().allocated == 0
    assert sorted(source.events) == [5, 6]
    assert pool.acquire(4096, stream=1).address != address
    source.finished.add(0)
    assert pool.acquire(4096, stream=1).address != address
    source.finished.add(1)
    taken = [pool.acquire(4096, stream=1) for _ in range(3)]
    assert address in {block.address for block in taken}


def test_what_a_reclaim_leaves_stays_with_the_stream_that_has_the_most():
    pool = Pool(FakeSource(1 << 30))
    pool.acquire(1, stream=0)
    held = [pool.acquire(100_000, stream=7) for _ in range(3)]
    del held[1]
    pool.reclaim()
    grown = pool.stats().grown
    pool.acquire(100_000, stream=7)
    assert pool.stats().grown == grown


def test_an_interrupt_amid_the_first_marks_loses_none(monkeypatch):
    pool = Pool(FakeSource(1 << 30))
    held = [pool.acquire(5000, stream=1) for _ in range(3)]
    mark, marked = PoolState.mark, []

    def interrupted(*args):
        marked.append(args)
        if len(marked) == 2:
            raise KeyboardInterrupt
        mark(*args)

    monkeypatch.setattr(PoolState, "mark", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pool.acquire(5000, stream=2)
    held.append(pool.acquire(5000, stream=2))
    assert [block.chunk.uses for block in held] == [{2}, {2}, {2}, None]
