"""Streams whose work may be under way are held, and a second one is told of in time."""

import threading

import pytest

import xdev
from xdev import memory
from xdev.device.streams import LiveStreams, live_streams


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
