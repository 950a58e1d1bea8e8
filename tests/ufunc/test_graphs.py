"""Graphs: replays equal to calls, results that stay, what is refused."""

import gc
import pickle
import re
import threading
from typing import Any, NamedTuple

import numpy as np
import pytest
from running import blend, host, library, same

import xdev
from xdev.errors import CaptureError


class Pair(NamedTuple):
    low: Any
    high: Any


def test_replays_equal_calls_on_what_the_arrays_hold_then(device):
    x, y = arrays(device)
    g, other = xdev.graph(chain, x, y), xdev.graph(blend, y, x)
    results = [g(), other()]

    for seed in range(3, 6):
        x[...] = xdev.asarray(values(seed), device=device)
        for replay, result in zip((g, other), results, strict=True):
            assert replay() is result
        expected = chain(values(seed), values(1))
        np.testing.assert_allclose(xdev.to_numpy(results[0]), expected, rtol=1e-6)
        same(results[1], host(blend(y, x)))


def test_containers_come_back_as_they_are_and_hold_arguments(device):
    x, y = arrays(device)
    g = xdev.graph(
        lambda both: {"a": [both["x"] + both["y"][0], None], "b": Pair(x, xdev.sum(y))},
        {"x": x, "y": [y]},
    )
    first = g()
    y[...] = 2.0

    assert g() is first
    assert first["b"].low is x
    assert first["a"][1] is None
    np.testing.assert_allclose(xdev.to_numpy(first["a"][0]), values(0) + 2)
    assert float(first["b"].high) == 2000


def test_work_in_place_is_done_once_a_replay_and_buffers_are_the_functions(device):
    x, y = arrays(device)
    buffer = xdev.empty_like(x)

    def add(x, y):
        x += y
        return blend(x, y, out=buffer)

    g = xdev.graph(add, x, y)
    np.testing.assert_array_equal(xdev.to_numpy(x), values(0))

    assert g() is g() is buffer
    np.testing.assert_array_equal(xdev.to_numpy(x), values(0) + values(1) + values(1))
    same(buffer, host(blend(x, y)))


def test_tensors_in_a_graph(real_device):
    tensor, kind = library("torch", real_device)
    x, y = map(tensor, map(values, range(2)))
    g = xdev.graph(chain, x, y)
    result = g()
    assert isinstance(result, kind)

    for seed in range(3):
        x.copy_(tensor(values(seed)))
        assert g() is result
        assert bool((result == chain(x, y)).all())


# On a real GPU: kernels, memory, streams and threads.


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
    result = xdev.graph(chain, x, y)()  # which outlives its graph
    expected = chain(x, y)
    others = [xdev.full(1 << 20, 7, dtype=xdev.float32, device=cuda) for _ in range(8)]
    np.testing.assert_array_equal(xdev.to_numpy(result), xdev.to_numpy(expected))
    del others


@pytest.mark.cuda
def test_memory_of_a_dropped_graph_waits_for_its_stream(cuda):
    x, y = arrays(cuda, n=1 << 22)

    def long(x, y):
        # A function that is gone: its code stays for the replays.
        half = xdev.vectorize(lambda x, y: 0.5 * x + y * y)
        for _ in range(200):
            x = half(x, y)
        return x

    expected = xdev.to_numpy(long(x, y))
    copy = xdev.empty_like(x)
    streams = [xdev.Stream(cuda) for _ in range(3)]
    for _ in range(5):
        g = xdev.graph(long, x, y)
        xdev.vectorize(lambda a: a - 1)(x)
        xdev.synchronize(cuda)
        for stream in streams:  # replays follow each other, whatever the stream
            with stream:
                copy[...] = g()
        del g
        gc.collect()
        others = [xdev.full(1 << 22, 9, dtype=x.dtype, device=cuda) for _ in range(4)]
        stream.synchronize()
        np.testing.assert_array_equal(xdev.to_numpy(copy), expected)
        del others


@pytest.mark.cuda
def test_other_threads_may_allocate_meanwhile(cuda):
    cupy = pytest.importorskip("cupy")
    x, y = arrays(cuda)
    runs = []
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
        runs.append(1)
        made = blend(x, y)
        if len(runs) == 2:
            go.set()
            assert done.wait(10)
        return blend(made, y)

    thread = threading.Thread(target=other)
    thread.start()
    g = xdev.graph(f, x, y)
    thread.join()

    expected = xdev.to_numpy(blend(blend(x, y), y))
    np.testing.assert_array_equal(xdev.to_numpy(g()), expected)


def values(seed, n=1000):
    return np.random.default_rng(seed).random(n, dtype=np.float32)


def arrays(device, count=2, n=1000):
    return [xdev.asarray(values(seed, n), device=device) for seed in range(count)]


def chain(x, y):
    for _ in range(5):
        x = blend(x, y)
    return x


def test_wrong_arguments_and_results(device):
    x, _ = arrays(device)
    for result in (3.5, "text", {"n": object()}):
        with pytest.raises(CaptureError, match=r"<lambda> returns \w+, which a rep"):
            xdev.graph(lambda x: (blend(x, x), result)[1], x)()  # noqa: B023
    if device != "cuda":
        z = xdev.asarray(np.arange(4), device=device)
        g = xdev.graph(lambda x: x[x > 1], z)
        assert xdev.to_numpy(g()).tolist() == [2, 3]
        z[...] = 5
        with pytest.raises(CaptureError, match="keep their shapes"):
            g()

    with pytest.raises(TypeError, match="of a function, not of"):
        xdev.graph(x)
    with pytest.raises(xdev.DeviceMismatchError, match="move one"):
        xdev.graph(blend, x, xdev.ones(3, device="fake:1"))
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(xdev.graph(chain, x, x))
    assert "graph of chain" in repr(xdev.graph(chain, x, x))


def test_a_freed_argument_is_refused(device):
    x, y = (xdev.zeros(100_000, device=device) for _ in range(2))
    alone = xdev.graph(blend, x, y)
    held = xdev.graph(lambda d: d["y"][0] + 1, {"y": [y]})
    graphs = {alone: "blend", held: "<lambda>"}
    for g in graphs:
        g()

    xdev.memory.free(y)
    words = r"the graph of {}: an argument of shape \(100000,\) was freed"
    for g, name in graphs.items():
        with pytest.raises(xdev.UseAfterFreeError, match=words.format(name)):
            g()
    assert not xdev.any(x)
    with pytest.raises(xdev.UseAfterFreeError):
        xdev.graph(blend, x, y)()
    if device != "cuda":  # where replays write into results, not calls
        g = xdev.graph(xdev.ones_like, x)
        xdev.memory.free(g())
        with pytest.raises(xdev.UseAfterFreeError, match=r"the graph of .*: a result "):
            g()


def waits(x):
    made = blend(x, x)
    xdev.synchronize(xdev.device_of(x))
    return made


def asks(x):
    made = blend(x, x)
    print(xdev.current_stream(xdev.device_of(x)).done)  # noqa: T201
    return made


def allocates(x):
    import cupy

    memory = cupy.cuda.Memory(x.nbytes)
    blend(x, x, out=cupy.ndarray(x.shape, "f4", cupy.cuda.MemoryPointer(memory, 0)))


def multiplies(x):
    x = xdev.reshape(x, (20, 50))  # of vectors it is a kernel, which can be captured
    return xdev.matmul(x, x.T)


REFUSED = [
    *((waits, 2), (allocates, 3), (multiplies, 2)),
    (lambda x: float(x[0]), 0),
    (lambda x: blend(x, x) if x.any() else x, 0),
    (lambda x: xdev.memory.pool(xdev.device_of(x)).acquire(4096), 0),
    (lambda x: blend(x, xdev.asarray(values(3), device=xdev.device_of(x))), 0),
]


@pytest.mark.fake
@pytest.mark.parametrize("k", [3, 4, 6])
def test_a_fake_device_refuses_copies_as_cuda_does(k):
    f, _ = REFUSED[k]
    graph = xdev.graph(f, xdev.ones(3, device="fake"))
    place = f"{f.__name__} cannot be captured: {__file__}:{f.__code__.co_firstlineno}, "
    with pytest.raises(CaptureError, match=re.escape(place)):
        graph()


def interrupted(x):
    blend(x, x)
    raise KeyboardInterrupt


ENDED = [
    (interrupted, KeyboardInterrupt),
    (lambda x: xdev.empty(1 << 50, device=xdev.device_of(x)), xdev.OutOfMemoryError),
]


@pytest.mark.cuda
@pytest.mark.parametrize(("f", "error"), ENDED)
def test_errors_of_others_pass_and_leave_all_as_it_was(cuda, f, error):
    x, y = arrays(cuda)
    with pytest.raises(error):
        xdev.graph(f, x)
    assert not xdev.current_stream(cuda).ptr
    same(xdev.graph(chain, x, y)(), host(chain(x, y)))


@pytest.mark.cuda
@pytest.mark.parametrize(("f", "offset"), REFUSED)
def test_what_cannot_be_captured_is_named_and_leaves_all_as_it_was(cuda, f, offset):
    x, y = arrays(cuda)
    blend(x, y)
    gc.collect()
    before = xdev.memory.allocated(cuda)
    here = xdev.current_stream(cuda)

    with pytest.raises(CaptureError) as error:
        xdev.graph(f, x)

    line = f"{__file__}:{f.__code__.co_firstlineno + offset}, `"
    assert f"{f.__name__} cannot be captured: {line}" in str(error.value)
    del error
    gc.collect()
    assert xdev.memory.allocated(cuda) == before
    assert xdev.current_stream(cuda) == here
    np.testing.assert_array_equal(
        xdev.to_numpy(xdev.graph(chain, x, y)()), xdev.to_numpy(chain(x, y))
    )


@pytest.mark.cuda
def test_forks_that_do_not_join_and_graphs_inside_are_refused(cuda):
    x, y = arrays(cuda)

    def forks(x):
        event = xdev.current_stream(cuda).record()
        with xdev.Stream(cuda) as other:
            other.wait(event)
            return blend(x, x)

    with pytest.raises(CaptureError, match=r"forks cannot be captured: .*Unjoined"):
        xdev.graph(forks, x)
    with pytest.raises(CaptureError, match="asks cannot be captured: by a call befo"):
        xdev.graph(asks, x)
    with pytest.raises(CaptureError, match="while another is captured"):
        xdev.graph(lambda x: xdev.graph(chain, x, y)(), x)
    inner = xdev.graph(chain, x, y)
    with pytest.raises(CaptureError, match="call its function there"):
        xdev.graph(lambda y: inner() + y, y)
    same(inner(), host(chain(x, y)))


@pytest.mark.cuda
def test_jax_arrays_are_refused_in_a_capture(cuda):
    put, _ = library("jax", cuda)
    x, y = xdev.asarray(values(0), device=cuda), put(values(1))

    with pytest.raises(CaptureError, match="no part in the order of JAX's work"):
        xdev.graph(lambda x: blend(x, y), x)
