"""What only a real GPU shows of ufuncs: its arithmetic, launches, order and size."""

import importlib
import itertools

import numpy as np
import pytest
from running import add, sample, within
from stand_ins import Exporter

import xdev

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.usefixtures("cuda"),
    # numba-cuda's own import, under NumPy 2.5:
    pytest.mark.filterwarnings("ignore:The 'generic' unit:DeprecationWarning"),
]


above = xdev.vectorize(lambda x, y: x > y)


@pytest.mark.parametrize("char", "bHfdFD")
def test_operands_misaligned_apart(cp, char):
    whole = [sample(100_003, char, seed) for seed in range(3)]
    for starts in itertools.product((0, 1, 5), repeat=3):
        x, y, _ = (v[s : s + 99_000] for v, s in zip(whole, starts, strict=True))
        dx, dy = (
            cp.asarray(v)[s : s + 99_000]
            for v, s in zip(whole[:2], starts[:2], strict=True)
        )
        memory = cp.asarray(whole[2])

        add(dx, dy, memory[starts[2] : starts[2] + 99_000])

        expected = whole[2].copy()
        expected[starts[2] : starts[2] + 99_000] = x + y
        np.testing.assert_array_equal(memory.get(), expected)


@pytest.mark.full_card
def test_more_elements_than_32_bits_count(cp):
    n = 2**31 + 7
    x = cp.ones(n, "b")
    out = cp.empty(n, "b")

    add(x, x, out)

    assert int(out[0]) == int(out[-1]) == int(out[2**31]) == 2
    add(x[::-1], x, out)
    assert bool((out == 2).all())
    out[...] = 0
    add(x[1:], x[:-1], out[1:])  # misaligned
    assert int(out[0]) == 0
    assert bool((out[1:] == 2).all())
    rows = n // 2**16
    square, row = (v[: rows * 2**16].reshape(rows, -1) for v in (x, out))
    out[...] = 0
    add(square, square[0], row)
    assert bool((row == 2).all())
    assert int(add.reduce(x, axis=0, dtype="l")) == n


def nodes(cp, call):
    """Return the kernels and other work that a call queues; to synchronise fails."""
    driver = importlib.import_module("cuda.bindings.driver")
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        call()
        graph = stream.end_capture()
    error, _, count = driver.cuGraphGetNodes(driver.CUgraph(graph.graph), 0)
    assert not error
    return count


def test_a_call_is_one_launch_and_nothing_else(cp):
    cuda = pytest.importorskip("numba.cuda")
    x, y, o = (cp.asarray(sample((100, 100), "f", i)) for i in range(3))
    mask = x > 0
    foreign = cuda.device_array((100, 100), np.float32)
    calls = {
        "contiguous": lambda: add(x, y, o),
        "broadcast": lambda: add(x, y[0], o),
        "zero-d": lambda: add(x, y[0, 0], o),
        "number": lambda: add(x, 2.0, o),
        "numpy scalar": lambda: add(x, np.float32(2), o),
        "strided": lambda: add(x.T, y, o),
        "mask": lambda: add(x, y, o, where=mask),
        "numba": lambda: add(x, y, foreign),
        "cast": lambda: above(x, y, o),
    }
    for name, call in calls.items():
        call()  # compiles
        assert nodes(cp, call) == 1, name


@pytest.mark.parametrize("shape", [(1000,), (1000, 1)])
def test_a_thread_without_a_context_can_call(cp, shape):
    x, flat, strided = cp.ones(shape, "f"), cp.zeros(shape, "f"), cp.zeros(2000, "f")
    add(x, x, flat)
    flat[...] = 0
    cp.cuda.Device().synchronize()

    def work():
        add(x, x, flat)
        add(x.ravel(), 1.0, strided[::2])

    within(60, [work])
    assert (flat.get() == 2).all()
    assert (strided[::2].get() == 2).all()


def test_work_goes_to_the_current_stream(cp):
    x, out = cp.ones(1 << 20, "f"), cp.zeros(1 << 20, "f")
    add(x, x, out)
    out[...] = 0
    cp.cuda.Device().synchronize()
    stream = cp.cuda.Stream(non_blocking=True)

    with stream:
        stream.begin_capture()
        add(x, x, out)
        graph = stream.end_capture()

    assert not out.get().any()  # it was captured on that stream, and not run
    graph.launch(stream)
    stream.synchronize()
    assert (out.get() == 2).all()


def test_the_stream_of_a_foreign_array_is_waited_for_and_waits(cp):
    n = 1 << 26
    theirs = cp.cuda.Stream(non_blocking=True)
    x, out = cp.zeros(n, "f"), cp.zeros(n, "f")
    mine, result = Exporter(x, stream=theirs.ptr), Exporter(out, stream=theirs.ptr)
    cp.cuda.Device().synchronize()
    add(mine, 1.0, result)
    cp.cuda.Device().synchronize()
    with theirs:
        for _ in range(50):
            x += 1
    add(mine, 1.0, result)
    with theirs:
        out += 1
        x[...] = 0

    cp.cuda.Device().synchronize()
    assert float(out[0]) == float(out[-1]) == 52


def test_a_reduction_is_repeated_on_streams_and_in_threads(cp):
    x = cp.asarray(sample(300_000, "f"))
    total = float(add.reduce(x))
    found = []

    def work():
        found.extend(float(add.reduce(x)) for _ in range(20))

    for stream in (cp.cuda.Stream(non_blocking=True), cp.cuda.Stream()):
        cp.cuda.Device().synchronize()
        with stream:
            work()
    within(60, [work] * 4)
    assert found == [total] * 120
