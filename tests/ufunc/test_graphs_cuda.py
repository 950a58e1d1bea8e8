"""Graphs on a real GPU: their kernels, memory, streams and threads."""

import gc
import threading

import numpy as np
import pytest
from chains import address, arrays, chain, step

import xdev


def nodes(g):
    from cuda.bindings import driver

    error, _, count = driver.cuGraphGetNodes(driver.CUgraph(g._graph.graph), 0)
    assert not error
    return count


@pytest.mark.cuda
def test_a_chain_is_one_graph_of_as_many_kernels(cuda):
    x, y = arrays(cuda)

    assert nodes(xdev.graph(chain, x, y)) == 5


@pytest.mark.cuda
def test_a_graph_inside_another_is_one_node_and_stays_with_it(cuda):
    x, y = arrays(cuda, n=1 << 20)
    inner = xdev.graph(chain, x, y)
    held = [inner]
    other = xdev.Stream(cuda)

    def outer(y):
        here = xdev.current_stream(cuda)
        other.wait(here.record())
        with other:
            made = held[0]() + y  # in a stream that joined the capture
        here.wait(other.record())
        return made

    g = xdev.graph(outer, y)
    assert nodes(g) == 2
    result = g()
    held.clear()
    del inner
    gc.collect()
    others = [xdev.full(1 << 20, 7, dtype=xdev.float32, device=cuda) for _ in range(8)]

    for _ in range(3):
        x += y
        expected = chain(x, y) + y
        assert g() is result
        np.testing.assert_array_equal(xdev.to_numpy(result), xdev.to_numpy(expected))
    del others


@pytest.mark.cuda
def test_replays_allocate_nothing_and_the_end_frees_everything(cuda):
    x, y = arrays(cuda, n=1 << 20)
    xdev.graph(chain, x, y)()
    gc.collect()
    xdev.synchronize(cuda)
    before = xdev.memory.allocated(cuda)
    g = xdev.graph(chain, x, y)
    held = xdev.memory.allocated(cuda)
    reserved = xdev.memory.reserved(cuda)

    assert held - before == 2 << 22  # a chain needs two arrays, however long
    for _ in range(100):
        g()
    assert xdev.memory.allocated(cuda) == held
    assert xdev.memory.reserved(cuda) == reserved
    gc.disable()
    try:
        del g
        assert xdev.memory.allocated(cuda) == before
    finally:
        gc.enable()


@pytest.mark.cuda
def test_results_outlive_their_graph(cuda):
    x, y = arrays(cuda, n=1 << 20)
    result = xdev.graph(chain, x, y)()
    expected = chain(x, y)
    others = [xdev.full(1 << 20, 7, dtype=xdev.float32, device=cuda) for _ in range(8)]

    np.testing.assert_array_equal(xdev.to_numpy(result), xdev.to_numpy(expected))
    assert len({*map(address, others), address(result)}) == 9


@pytest.mark.cuda
def test_replays_on_several_streams_follow_each_other(cuda):
    x = xdev.zeros(1 << 22, dtype=xdev.float32, device=cuda)
    g = xdev.graph(lambda x: step(x, 1.0, out=x), x)
    streams = [xdev.Stream(cuda) for _ in range(3)]
    ready = xdev.current_stream(cuda).record()
    for stream in streams:
        stream.wait(ready)
    expected = np.float32(0)
    for i in range(30):
        with streams[i % 3]:
            g()
        expected = np.float32(0.5) * expected + np.float32(1)
    xdev.synchronize(cuda)

    assert set(xdev.to_numpy(x).tolist()) == {float(expected)}


@pytest.mark.cuda
def test_memory_of_a_dropped_graph_waits_for_its_stream(cuda):
    x, y = arrays(cuda, n=1 << 22)

    def long(x, y):
        for _ in range(200):
            x = step(x, y)
        return x

    expected = xdev.to_numpy(long(x, y))
    copy = xdev.empty_like(x)
    for _ in range(5):
        g = xdev.graph(long, x, y)
        xdev.synchronize(cuda)
        with xdev.Stream(cuda) as stream:
            copy[...] = g()
        del g
        others = [xdev.full(1 << 22, 9, dtype=x.dtype, device=cuda) for _ in range(4)]
        stream.synchronize()
        np.testing.assert_array_equal(xdev.to_numpy(copy), expected)
        del others


@pytest.mark.cuda
def test_other_threads_may_allocate_meanwhile(cuda):
    cupy = pytest.importorskip("cupy")
    x, y = arrays(cuda)
    calls = {"runs": 0}
    go, done = threading.Event(), threading.Event()

    def other():
        go.wait(10)
        with cupy.cuda.Device(cuda.index):
            cupy.cuda.Memory(1 << 20)
            with xdev.Stream(cuda) as stream:
                chain(x, y)
            stream.synchronize()
        done.set()

    def f(x, y):
        calls["runs"] += 1
        made = step(x, y)
        if calls["runs"] == 2:
            go.set()
            assert done.wait(10)
        return step(made, y)

    thread = threading.Thread(target=other)
    thread.start()
    g = xdev.graph(f, x, y)
    thread.join()

    expected = xdev.to_numpy(step(step(x, y), y))
    np.testing.assert_array_equal(xdev.to_numpy(g()), expected)


@pytest.mark.cuda
def test_a_graph_makes_no_second_stream_of_one(cuda, monkeypatch):
    from xdev.memory.streams import live_streams

    x, y = arrays(cuda)
    monkeypatch.setattr(live_streams, "several", False)
    xdev.graph(chain, x, y)()

    assert not live_streams.several


@pytest.mark.cuda
def test_work_that_forks_and_joins(cuda):
    x, y = arrays(cuda)
    other = xdev.Stream(cuda)

    def forks(x, y):
        here = xdev.current_stream(cuda)
        other.wait(here.record())
        with other:
            there = chain(y, x)
            event = other.record()
        mine = chain(x, y)
        here.wait(event)
        return mine + there

    g = xdev.graph(forks, x, y)
    expected = xdev.to_numpy(chain(x, y) + chain(y, x))

    for _ in range(3):
        np.testing.assert_array_equal(xdev.to_numpy(g()), expected)


@pytest.mark.cuda
def test_functions_that_are_gone_run_in_replays(cuda):
    """Their code stays where it is, whatever is compiled and dropped after them."""
    x, _ = arrays(cuda)
    expected = xdev.to_numpy(x) * 3 + 1

    def inside(x):
        f = xdev.vectorize(lambda a: a * 3 + 1)
        return f(x)

    g = xdev.graph(inside, x)
    gc.collect()
    for f in (lambda a: a - 1, lambda a: a * 5, lambda a: a / 7):
        xdev.vectorize(f)(x)
    gc.collect()

    for _ in range(3):
        np.testing.assert_allclose(xdev.to_numpy(g()), expected, rtol=1e-6)
