"""Captures with a stand-in for the driver: what is recorded, freed, and refused."""

import contextlib
import gc
import types

import pytest

import xdev
from xdev import _optional
from xdev.errors import CaptureError
from xdev.memory import Pool, hooks
from xdev.memory.sources.fake import FakeSource
from xdev.memory.streams import live_streams
from xdev.ufunc import graphs as captures

pytestmark = pytest.mark.skipif(
    not _optional.installed("cupy"), reason="allocates by CuPy's memory objects"
)
MIB = 1 << 20


class DriverError(RuntimeError):
    """As CuPy's CUDARuntimeError is one."""


class Driver:
    """Streams that record, as far as the capture asks for them."""

    def __init__(self):
        self.current = []
        self.status = {}  # by handle: "active" or "invalidated"
        self.destroyed = []

    def begin(self, handle):
        assert handle not in self.status
        self.status[handle] = "active"

    def end(self, handle):
        if handle not in self.status:
            raise DriverError("cudaErrorIllegalState")
        if self.status.pop(handle) == "invalidated":
            raise DriverError("cudaErrorStreamCaptureInvalidated: by a call before")
        return 7

    def invalidate(self):
        self.status = dict.fromkeys(self.status, "invalidated")


@pytest.fixture
def driver(monkeypatch):
    made = Driver()

    class Stream:
        handles = iter(range(100, 200))

        def __init__(self, *, non_blocking):
            assert non_blocking
            self.ptr = next(self.handles)

        def __enter__(self):
            made.current.append(self)

        def __exit__(self, *_):
            made.current.pop()

        def begin_capture(self, mode):
            assert mode == "thread-local"
            made.begin(self.ptr)

        def end_capture(self):
            made.end(self.ptr)
            return "graph"

        def is_capturing(self):
            if made.status.get(self.ptr) == "invalidated":
                raise RuntimeError("an error has invalidated the capture sequence")
            return self.ptr in made.status

    cupy = _optional.cupy()
    cuda = types.SimpleNamespace(
        Stream=Stream,
        MemoryPointer=cupy.cuda.MemoryPointer,
        get_current_stream=lambda: made.current[-1],
        using_allocator=cupy.cuda.using_allocator,
        runtime=types.SimpleNamespace(
            streamCaptureModeThreadLocal="thread-local",
            CUDARuntimeError=DriverError,
            streamEndCapture=made.end,
            graphDestroy=made.destroyed.append,
        ),
    )
    cuda.memory = cupy.cuda.memory
    stand_in = types.SimpleNamespace(cuda=cuda)
    monkeypatch.setattr(_optional, "cupy", lambda: stand_in)
    monkeypatch.setattr(captures, "_relaxed", contextlib.nullcontext)
    made.array = cupy.ndarray
    made.home = Stream(non_blocking=True)
    made.pool = Pool(FakeSource(capacity=1 << 26))
    yield made
    assert not made.status
    assert not made.current
    assert not live_streams.captured
    assert gc.isenabled()
    assert not any(isinstance(x, captures.Capture) for x in hooks._listeners)


def run(driver, f):
    capture = captures.Capture(driver.pool, driver.home, 0)
    return capture.arena, *capture.run(f, ())


def test_what_is_allocated_lies_in_blocks_that_go_with_the_last_user(driver):
    def f():
        for _ in range(10):
            x = driver.array(MIB, "u1")
        return x

    arena, graph, result = run(driver, f)

    assert graph == "graph"
    nbytes = sum(block.nbytes for block in arena.blocks)
    assert driver.pool.stats().allocated == nbytes == 2 * MIB
    assert any(
        b.address <= result.data.ptr and result.data.ptr + MIB <= b.address + b.nbytes
        for b in arena.blocks
    )
    chunk = result.data.mem.xdev_chunk
    assert chunk.address <= result.data.ptr < chunk.address + chunk.nbytes
    del arena, chunk
    assert driver.pool.stats().allocated == MIB
    del result
    assert driver.pool.stats().allocated == 0


def line(f, after):
    return f"{__file__}:{f.__code__.co_firstlineno + after}"


def test_a_call_that_raises_is_named(driver):
    def f():
        _ = driver.array(MIB, "u1")
        driver.invalidate()  # as a synchronising call does
        raise DriverError("cudaErrorStreamCaptureUnsupported")

    with pytest.raises(CaptureError) as error:
        run(driver, f)

    start = f"f cannot be captured: {line(f, 3)}, `raise DriverError("
    assert str(error.value).startswith(start)
    assert "cudaErrorStreamCaptureUnsupported" in str(error.value)
    del error
    gc.collect()
    assert driver.pool.stats().allocated == 0


def test_a_call_that_breaks_the_capture_without_a_word_is_named(driver):
    def inner():
        driver.status = dict.fromkeys(driver.status, "invalidated")

    def f():
        x = driver.array(10, "u1")
        inner()
        return x

    with pytest.raises(CaptureError) as error:
        run(driver, f)

    assert f"{line(inner, 1)}, `driver.status = " in str(error.value)


def test_memory_from_elsewhere_is_refused_by_line(driver):
    def f():
        return driver.pool.acquire(4096)

    with pytest.raises(CaptureError) as error:
        run(driver, f)

    where = f"{line(f, 1)}, `return driver.pool.acquire(4096)` allocates"
    assert where in str(error.value)


def test_refusals_destroy_the_graph_and_other_errors_pass(driver):
    def raising(error):
        def f():
            raise error

        return f

    with pytest.raises(CaptureError, match="RuntimeError: the current stream is capt"):
        run(driver, raising(RuntimeError("the current stream is capturing")))
    with pytest.raises(KeyboardInterrupt):
        run(driver, raising(KeyboardInterrupt()))
    assert driver.destroyed == [7, 7]
    with pytest.raises(xdev.OutOfMemoryError):  # no fault of the function
        run(driver, lambda: driver.array(1 << 27, "u1"))
