"""Graphs on CUDA: captured once, replayed by one launch."""

from __future__ import annotations

import ctypes
import gc
import importlib
import linecache
import sys
import threading
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, final

from xdev import _optional, native
from xdev.compile.launch import driver_library, kept_alive
from xdev.device import device_of
from xdev.device.cuda import BACKEND
from xdev.device.streams import live_streams
from xdev.errors import CaptureError
from xdev.memory import hooks, registry, tracking
from xdev.memory.arrays import mark_uses
from xdev.memory.bridges.cupy import device_allocator
from xdev.memory.pools import Arena
from xdev.transfer import pinned
from xdev.ufunc import foreign
from xdev.ufunc.cuda_operands import Array, ordered, read
from xdev.ufunc.graphs import Graph, check_alive, check_arrays, leaves, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from xdev.memory.pools import Block, Pool

# Graphs inside others: CUDA launches none into a stream that records.
#
# What records gets a copy of the graph as one node instead. It is done by the
# driver's functions as they were when CUDA 11.3 brought them, which every later
# driver has.

RECORDS = 1  # CU_STREAM_CAPTURE_STATUS_ACTIVE
REPLACE = 1  # CU_STREAM_SET_CAPTURE_DEPENDENCIES


def embed(stream: int, graph: int) -> None:
    """Put a copy of a graph where a stream's recording has got to.

    Parameters
    ----------
    stream : int
        The handle of a stream that records.
    graph : int
        The handle of a graph, as it was before it was made executable.

    Raises
    ------
    CaptureError
        The driver refuses: the stream does not record, or no longer.
    """
    library = driver_library()
    handle, child = ctypes.c_void_p(stream), ctypes.c_void_p(graph)
    status, whole = ctypes.c_int(), ctypes.c_void_p()
    before, count = ctypes.c_void_p(), ctypes.c_size_t()
    places = map(ctypes.byref, (status, whole, before, count))
    state, recorded, nodes, number = places
    _check(
        library.cuStreamGetCaptureInfo_v2(handle, state, None, recorded, nodes, number)
    )
    if status.value != RECORDS:
        raise CaptureError("the stream does not record: a call before has ended that")
    node = ctypes.c_void_p()
    place = ctypes.byref(node)
    _check(library.cuGraphAddChildGraphNode(place, whole, before, count, child))
    one = ctypes.c_size_t(1)
    _check(library.cuStreamUpdateCaptureDependencies(handle, place, one, REPLACE))


def _check(status: Any) -> None:
    if status:
        raise CaptureError(pinned.explain(status))


# One capture: a function's CUDA work recorded, its memory apart, its errors
# explained.
#
# The thread that captures may not allocate by the CUDA runtime meanwhile; other
# threads may do what they like. What the function allocates comes from an arena,
# which takes its blocks from the device's pool with that prohibition lifted, on a
# stream that does not record.

RULE = (
    "a captured function does not wait for the device or read values from it "
    "(float(x), print(x), if x.any()), and allocates through xdev and CuPy alone: do "
    "the rest before or after"
)
_here = threading.local()  # .inner: of the capture that this thread is in
COMPILED = (".pyx", ".pxi", ".pxd")  # frames of CuPy's and cuda.core's modules


@final
class Capture(hooks.Listener):
    """The recording of one function; it hears of blocks that come past its arena.

    Parameters
    ----------
    pool : Pool
        Of the device: where the arena's blocks come from.
    home : cupy.cuda.Stream
        Whose work the blocks follow: the stream that was current.
    index : int
        The device's index; it is the current one.

    Attributes
    ----------
    arena : Arena
        What the function's work lies in.
    inner : list
        The graphs that are a part of this one: what they hold is in use here.
    kernels : list
        What it may launch.
    """

    def __init__(self, pool: Pool, home: Any, index: int) -> None:
        self._cuda = _optional.cupy().cuda
        self._pool, self._home = pool, home
        self._stream = self._cuda.Stream(non_blocking=True)
        self._index = index
        self._thread = threading.get_ident()
        self._away = False  # what comes is the arena's own
        self._strangers: list[tracking.Frames] = []
        self.arena = Arena()
        self.inner: list[Any] = []
        self.kernels: list[Any] = []

    def run(self, f: Callable[..., Any], arrays: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return the graph, ready to launch, and what the function returned.

        Raises
        ------
        CaptureError
            The function cannot be captured.
        """
        try:
            with self._recording():
                results = f(*arrays)
                graph = self._stream.end_capture()
        except MemoryError:
            raise
        except Exception as error:
            late = "invalidated" in str(error).lower()  # by a call before
            line = self._line(f, arrays) if late else None
            raise CaptureError(_explained(f, error, line)) from error
        if self._strangers:
            where = tracking.origin(self._strangers[0])
            raise CaptureError(
                f"{name_of(f)} cannot be captured: {_quoted(where)} allocates from "
                f"the pool of {self._pool.name}, and the memory could be another's "
                f"when the graph is replayed; {RULE}"
            )
        return graph, results

    @contextmanager
    def _recording(self) -> Iterator[None]:
        """Record this thread's work; whatever happens, recording is over after it."""
        cuda, stream = self._cuda, self._stream
        collects = gc.isenabled()
        current = cuda.get_current_stream
        take = partial(self.arena.take, self._acquire)
        allocate = device_allocator(take, current, self._index)
        live_streams.captured.add(stream.ptr)
        _here.inner = self.inner
        hooks.subscribe(self)
        gc.disable()  # old garbage may hold what is freed by forbidden calls
        try:
            with kept_alive() as self.kernels, stream, cuda.using_allocator(allocate):
                stream.begin_capture(cuda.runtime.streamCaptureModeThreadLocal)
                try:
                    yield
                finally:
                    self._abandon()
        finally:
            if collects:
                gc.enable()
            hooks.unsubscribe(self)
            _here.inner = None
            live_streams.captured.discard(stream.ptr)
            native.calls.forget_stream(stream.ptr)  # nobody saw it

    def _abandon(self) -> None:
        """End the recording, unless it is over, and drop what it has."""
        runtime = self._cuda.runtime
        with suppress(runtime.CUDARuntimeError):  # it was over, or invalidated
            runtime.graphDestroy(runtime.streamEndCapture(self._stream.ptr))

    def _acquire(self, nbytes: int) -> Block:
        """Return a block for the arena, ordered after the home stream's work."""
        self._away = True
        try:
            with _relaxed(), self._home:
                return self._pool.acquire(nbytes, self._home.ptr)
        finally:
            self._away = False

    def acquired(self, state: Any, _: Any) -> None:
        """Note who asked the pool, in this thread and past the arena."""
        mine = threading.get_ident() == self._thread and not self._away
        if mine and state is self._pool.state:
            self._strangers.append(tracking.stack(2))

    def _broken(self) -> bool:
        try:
            return not self._stream.is_capturing()
        except RuntimeError:  # invalidated
            return True

    def _line(self, f: Callable[..., Any], arrays: tuple[Any, ...]) -> str | None:
        """Return the line of the user's after which a recording no longer stands.

        None where that is not found. It takes another run of the function.
        """
        found: list[str] = []
        before: list[str] = []

        def trace(frame: Any, _: str, __: Any) -> Any:
            if found or tracking.is_library(frame.f_code.co_filename):
                return None
            if self._broken():
                found.extend(before[-1:])
            before.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
            return trace

        traced = sys.gettrace()
        with suppress(Exception), self._recording():
            sys.settrace(trace)
            try:
                f(*arrays)
            finally:
                sys.settrace(traced)
        return found[0] if found else None


def includes(graph: Any) -> None:
    """Note that a graph is a part of what this thread captures."""
    inner = getattr(_here, "inner", None)
    if inner is not None:  # else it is by CuPy alone
        inner.append(graph)


@contextmanager
def _relaxed() -> Iterator[None]:
    """Let this thread call what is forbidden to one that captures."""
    _optional.cuda_core()
    driver = importlib.import_module("cuda.bindings.driver")
    swap = driver.cuThreadExchangeStreamCaptureMode
    _, before = swap(driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
    try:
        yield
    finally:
        swap(before)


def _explained(f: Any, error: Exception, line: str | None) -> str:
    """Return the text for an error that came when the function was captured alone."""
    where = line or _raised(error.__traceback__)
    reason = f"{type(error).__name__}: {error}"
    return f"{name_of(f)} cannot be captured: {_quoted(where)}: {reason}; {RULE}"


def _raised(traceback: TracebackType | None) -> str:
    """Return ``file:line`` of the innermost call outside the libraries."""
    places: list[tuple[str, int, str]] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_filename.endswith(COMPILED):
            places.insert(0, (code.co_filename, traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
    return tracking.maker(places)


def _quoted(where: str) -> str:
    """Return ``file:line`` with the line itself."""
    file, _, number = where.rpartition(":")
    source = linecache.getline(file, int(number)).strip()
    return f"{where}, `{source}`" if source else where


@final
class CudaGraph(Graph):
    """A function's work on a CUDA device, ready to launch.

    Parameters
    ----------
    f : callable
        The function.
    arrays : tuple
        Its arguments.
    found : list of arrays
        The arrays in them, all on one device.
    index : int
        The device's index.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        arrays: tuple[Any, ...],
        found: list[Any],
        index: int,
    ) -> None:
        self._cuda = _optional.cupy().cuda
        self._index = index
        self._lock = threading.Lock()  # guards the launch and what is below
        # Kept: arguments, and what the function's own variables refer to.
        self._f, self._arrays, self._found = f, arrays, found
        self._kinds = frozenset(map(type, found))  # an array that is freed gets another
        self._pool = registry.pool(f"cuda:{index}")
        array = _optional.cupy().ndarray
        self._simple = self._alone() and all(type(x) is array for x in found)
        with self._place():
            home = self._cuda.get_current_stream()
            if home.is_capturing():
                raise CaptureError(
                    f"the graph of {name_of(f)} cannot be made while another is "
                    "captured: make it before, and call it there"
                )
            operands = self._operands()
            with ordered(operands):
                _rehearse(f, arrays, operands)
            capture = Capture(self._pool, home, index)
            self._graph, self._results = capture.run(f, arrays)
            self._arena, self._inner = capture.arena, capture.inner
            self._kernels = capture.kernels
            self._check_results()
            self._ready = home.record(self._cuda.Event(disable_timing=True))
        self._streams: set[int] = set()  # those that were launched on

    def __call__(self) -> Any:
        """Queue the work on the current stream; return the results' arrays."""
        self._refuse()
        if self._simple:
            self._launch()
        else:
            with self._place(), ordered(self._operands()):
                self._launch()
        return self._results

    def _refuse(self) -> None:
        """Refuse arguments that were freed, those of graphs inside this one too."""
        if not self._kinds.issuperset(map(type, self._found)):
            check_alive(name_of(self._f), self._found)
        for graph in self._inner:
            graph._refuse()  # noqa: SLF001 - one of its kind

    def _operands(self) -> list[Array]:
        """Return the arrays of the arguments, with their libraries' streams of now."""
        operands = [read(x, f"the graph of {name_of(self._f)}") for x in self._found]
        return [x for x in operands if isinstance(x, Array)]

    def _launch(self) -> None:
        stream = self._cuda.get_current_stream()
        with self._lock:  # CUDA's graphs are not safe to launch by two threads at once
            if live_streams.captured and stream.is_capturing():
                embed(stream.ptr, self._graph.graph)
                includes(self)
                return
            if stream.ptr not in self._streams:
                self._meet(stream)
                self._streams.add(stream.ptr)
            self._graph.launch(stream)

    def _meet(self, stream: Any) -> None:
        """See to the memory at a stream's first launch.

        Its blocks may be used by work before; and once they are dropped, they and the
        arguments are this stream's until it is done. (Launches of one graph follow each
        other whatever the stream.)
        """
        stream.wait_event(self._ready)
        mark_uses([x.held for x in self._operands()])
        for block in self._arena.blocks:
            if block.chunk.stream != stream.ptr:
                self._pool.state.mark(block.chunk, (stream.ptr,))
        for graph in self._inner:
            graph._meet(stream)  # noqa: SLF001 - one of its kind

    def _place(self) -> Any:
        """Make the device current, where there is another."""
        return nullcontext() if self._alone() else self._cuda.Device(self._index)

    def _alone(self) -> bool:
        return BACKEND.count() == 1

    def _check_results(self) -> None:
        name = name_of(self._f)
        check_arrays(name, self._results)
        for x in leaves(self._results):
            foreign.begin_write(x, f"the graph of {name}")
            where = device_of(x)
            if where != f"cuda:{self._index}":
                raise CaptureError(
                    f"{name} returns {type(x).__name__} of shape {tuple(x.shape)} on "
                    f"{where}, which a replay on cuda:{self._index} cannot write to"
                )

    def __repr__(self) -> str:
        return f"<xdev graph of {name_of(self._f)} on cuda:{self._index}>"


def _rehearse(
    f: Callable[..., Any], arrays: tuple[Any, ...], operands: list[Array]
) -> None:
    """Run the function as it is, so that all is compiled; then undo it.

    What it needs is loaded, and made by libraries for good, outside the capture, where
    that is allowed.
    """
    views = [x.cupy() for x in operands if x.writable]
    saved = [view.copy() for view in views]
    try:
        f(*arrays)
    finally:
        for view, values in zip(views, saved, strict=True):
            view[...] = values
