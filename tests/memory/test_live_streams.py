"""A handle is used only while its stream is known to be there."""

import gc

import pytest

import xdev
from xdev import memory
from xdev.memory.sources.cuda import LiveStreams


class Stream:
    """Stands in for CuPy's."""

    def __init__(self, ptr):
        self.ptr = ptr


class ExternalStream(Stream):
    """A handle that somebody else may destroy."""


def test_a_stream_is_known_while_it_lives():
    live, stream = LiveStreams(), Stream(77)
    live.see(stream)
    assert live.get(77) is stream

    del stream
    gc.collect()

    assert live.get(77) is None


def test_a_handle_that_comes_back_is_its_new_stream():
    live, first = LiveStreams(), Stream(77)
    live.see(first)
    second = Stream(77)
    live.see(second)
    del first

    assert live.get(77) is second


def test_default_streams_live_for_ever_and_foreign_ones_are_unknown():
    live, foreign = LiveStreams(), ExternalStream(78)
    live.see(foreign)

    assert live.get(78) is None
    assert live.get(79) is None
    assert all(live.get(handle) is not None for handle in (0, 1, 2))


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


@pytest.mark.cuda
def test_a_recorded_stream_may_be_destroyed(cuda):
    import cupy

    before = memory.allocated(cuda)
    x = xdev.empty(100_000, device=cuda)
    memory.record_stream(x, cupy.cuda.Stream())
    gc.collect()
    del x

    assert memory.allocated(cuda) == before
