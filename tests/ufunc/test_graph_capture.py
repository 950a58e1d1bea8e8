"""Captures with a stand-in for the driver: what is recorded, freed, and refused."""

import contextlib
import gc
from types import SimpleNamespace

import pytest

import xdev
from xdev import _optional
from xdev.device.streams import live_streams
from xdev.errors import CaptureError
from xdev.memory import Pool
from xdev.memory.sources.fake import FakeSource
from xdev.ufunc import graphs

pytestmark = pytest.mark.skipif(
    not _optional.installed("cupy"), reason="allocates by CuPy's memory objects"
)
MIB = 1 << 20


class DriverError(RuntimeError):
    """As CuPy's CUDARuntimeError is one."""


@pytest.fixture
def driver(monkeypatch):  # noqa: C901 - its own small functions
    """Streams that record, as far as the capture asks for them."""
    cupy, current, states, destroyed = _optional.cupy(), [], {}, []

    def end(handle):
        if states.pop(handle, "none") != "active":
            raise DriverError("cudaErrorStreamCaptureInvalidated: by a call before")
        return 7

    class Stream:
        handles = iter(range(100, 200))

        def __init__(self, *, non_blocking):
            assert non_blocking
            self.ptr = next(self.handles)

        def __enter__(self):
            current.append(self)

        def __exit__(self, *_):
            current.pop()

        def begin_capture(self, mode):
            assert mode == "thread-local"
            states[self.ptr] = "active"

        def end_capture(self):
            end(self.ptr)
            return "graph"

        def is_capturing(self):
            if states.get(self.ptr) == "invalidated":
                raise RuntimeError("an error has invalidated the capture sequence")
            return self.ptr in states

    cuda = SimpleNamespace(
        Stream=Stream,
        MemoryPointer=cupy.cuda.MemoryPointer,
        get_current_stream=lambda: current[-1],
        using_allocator=cupy.cuda.using_allocator,
        memory=cupy.cuda.memory,
        runtime=SimpleNamespace(
            streamCaptureModeThreadLocal="thread-local",
            CUDARuntimeError=DriverError,
            streamEndCapture=end,
            graphDestroy=destroyed.append,
        ),
    )
    monkeypatch.setattr(_optional, "cupy", lambda: SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(graphs, "_relaxed", contextlib.nullcontext)
    pool, home = Pool(FakeSource(capacity=1 << 26)), Stream(non_blocking=True)

    def run(f):
        capture = graphs.Capture(pool, home, 0)
        return capture.arena, *capture.run(f, (), f.__name__)

    yield SimpleNamespace(
        run=run,
        states=states,
        pool=pool,
        array=cupy.ndarray,
        destroyed=destroyed,
    )
    gc.collect()
    assert (states, current, live_streams.captured) == ({}, [], set())
    assert pool.stats().allocated == 0
    assert gc.isenabled()


def test_what_is_allocated_lies_in_blocks_that_go_with_the_last_user(driver):
    def f():
        for _ in range(10):
            x = driver.array(MIB, "u1")
        return x

    arena, graph, result = driver.run(f)

    assert graph == "graph"
    assert driver.pool.stats().allocated == 2 * MIB
    assert any(
        b.address <= result.data.ptr and result.data.ptr + MIB <= b.address + b.nbytes
        for b in arena.blocks
    )
    del arena
    assert driver.pool.stats().allocated == MIB


def raises(driver):
    driver.states.update(dict.fromkeys(driver.states, "invalidated"))
    raise DriverError("cudaErrorStreamCaptureUnsupported")


def breaks(driver):  # as a call does that synchronises without a word
    driver.states.update(dict.fromkeys(driver.states, "invalidated"))
    return driver.array(10, "u1")


def acquires(driver):
    return driver.pool.acquire(4096)


@pytest.mark.parametrize(
    ("function", "line", "words"),
    [
        (raises, 2, "`raise DriverError.*cudaErrorStreamCaptureUnsupported"),
        (breaks, 1, r"`driver\.states\.update"),
        (acquires, 1, r"`return driver\.pool\.acquire\(4096\)` allocates"),
    ],
)
def test_what_cannot_be_captured_is_named_by_line(driver, function, line, words):
    where = f"test_graph_capture.py:{function.__code__.co_firstlineno + line}, "

    with pytest.raises(CaptureError, match=f"cannot be captured: .*{where}{words}"):
        driver.run(lambda: function(driver))


def test_refusals_destroy_the_graph_and_other_errors_pass(driver):
    def raising(error):
        def f():
            raise error

        return f

    with pytest.raises(CaptureError, match="RuntimeError: the current stream is capt"):
        driver.run(raising(RuntimeError("the current stream is capturing")))
    with pytest.raises(KeyboardInterrupt):
        driver.run(raising(KeyboardInterrupt()))
    assert driver.destroyed == [7, 7]
    with pytest.raises(xdev.OutOfMemoryError):  # no fault of the function
        driver.run(lambda: driver.array(1 << 27, "u1"))
