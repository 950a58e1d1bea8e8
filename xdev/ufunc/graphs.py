"""Graphs: a function's work on fixed arrays, recorded once and repeated by one call."""

from __future__ import annotations

import gc
import importlib
import linecache
import threading
import traceback
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, final

import numpy as np

from xdev import _optional, native
from xdev._freed import is_freed, use_after_free
from xdev.device import default_device, device_of
from xdev.device.cuda import BACKEND
from xdev.device.streams import live_streams
from xdev.errors import CaptureError, XdevError
from xdev.memory import hooks, registry, tracking
from xdev.memory.arrays import is_fake, mark_uses
from xdev.memory.bridges.cupy import device_allocator
from xdev.memory.pools import Arena
from xdev.transfer.adaptation import ARRAY_PROTOCOLS, arrays_in
from xdev.transfer.copies import transfer_guard
from xdev.ufunc import foreign
from xdev.ufunc.argument_errors import mismatch
from xdev.ufunc.cuda_operands import Array, ordered, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from xdev.memory.pools import Block, Pool

__all__ = ["Graph", "graph"]

ABSENT = object()


class Graph:
    """What :func:`graph` returns."""

    def __init__(
        self, f: Callable[..., Any], arrays: tuple[Any, ...], found: list[Any]
    ) -> None:
        # Kept: arguments, and what the function's own variables refer to.
        self._f, self._arrays, self._found = f, arrays, found
        self._name = str(getattr(f, "__name__", None) or type(f).__name__)
        self._lock = threading.Lock()  # guards the results, and launches

    def __call__(self) -> Any:
        """Do the work again, and return the results: each time the same arrays."""
        raise NotImplementedError

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a graph works on arrays of this process, so it cannot be pickled: pickle "
            "its function, and make another there"
        )

    def __repr__(self) -> str:
        return f"<xdev graph of {self._name}>"

    def _refuse_freed(self, arrays: Iterable[Any], what: str) -> None:
        for x in arrays:
            if is_freed(x):
                raise use_after_free(x, f"the graph of {self._name}: {what}")

    def _checked(self, results: Any) -> list[Any]:
        """Return the arrays of what the function returned; refuse anything else."""
        for x in (arrays := leaves(results)):
            kind = type(x)
            if not isinstance(x, np.generic) and not any(
                hasattr(kind, protocol) for protocol in ARRAY_PROTOCOLS
            ):
                raise CaptureError(
                    f"{self._name} returns {kind.__name__}, which a replay cannot "
                    "write to: return arrays, or lists, tuples and dicts of them"
                )
        return arrays


def graph(f: Callable[..., Any], /, *arrays: Any) -> Graph:
    """Capture a function on these arrays, to repeat its work by a single launch.

    On CUDA ``f(*arrays)`` runs twice: once as it is, so that all is compiled, after
    which the arrays get back the values that they had; then while CuPy's current stream
    records, which computes nothing. A replay is queued on the current stream, reads
    what is in the arrays then (write new values into them, ``x[...] = values``), and
    writes the same results as every time. It costs the host one launch, however many
    there are in ``f``. What Python does in ``f``, an ``if`` among it, is done when the
    function is captured, and not again.

    Elsewhere a replay calls ``f`` and puts what it returns in the results of the first
    replay.

    Parameters
    ----------
    f : callable
        What to capture. Its results are arrays, or lists, tuples and dicts of them, or
        None. On CUDA it works through xdev and CuPy on the current stream; it does not
        wait for the device, copies nothing from or to the host, and allocates through
        them alone.
    *arrays
        Its arguments: arrays of one device, and containers of them.

    Returns
    -------
    Graph
        ``g()`` returns the results: always the same arrays, at the same addresses. The
        graph keeps its arguments, and the memory that ``f`` works in; of that, results
        that outlive it keep their own part.

    Raises
    ------
    CaptureError
        ``f`` does on CUDA what cannot be captured; the text names the call. The current
        stream is as it was. Elsewhere, when it is replayed: the results of two replays
        differ in form; on a fake device ``f`` copies from or to the host.
    DeviceMismatchError
        The arrays are of two devices.
    OutOfMemoryError
        There is no room for what ``f`` works in.
    UseAfterFreeError
        An array was freed; a replay says so of those freed later.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.zeros(3)
    >>> g = graph(lambda x: x + 1, x)
    >>> y = g()
    >>> x[...] = [1, 2, 3]
    >>> g() is y, y
    (True, array([2., 3., 4.]))
    """
    if not callable(f):
        message = f"a graph is of a function, not of {type(f).__name__}: graph(f, x, y)"
        raise TypeError(message)
    operands = arrays_in(arrays)
    where = device_of(operands[0]) if operands else default_device()
    for k, x in enumerate(operands):
        if device_of(x) != where:
            raise mismatch("graph", ("arrays[0]", operands[0]), (f"arrays[{k}]", x))
    if where.type == "cuda":
        return CudaGraph(f, arrays, operands, where.require().index)
    return HostGraph(f, arrays, operands)


# What a captured function returns: arrays in lists, tuples and dicts.


def rebuild(move: Callable[[Any], Any], whole: Any) -> Any:
    """Return the containers anew, each leaf moved; None is no leaf.

    Examples
    --------
    >>> rebuild(lambda x: x + 1, {"a": [1, 2], "b": (None, 3)})
    {'a': [2, 3], 'b': (None, 4)}
    """
    if whole is None:
        return None
    if isinstance(whole, dict):
        return {key: rebuild(move, part) for key, part in whole.items()}
    if isinstance(whole, list | tuple):
        plain = list if isinstance(whole, list) else tuple
        make: Any = getattr(type(whole), "_make", plain)
        return make([rebuild(move, part) for part in whole])
    return move(whole)


def leaves(whole: Any) -> list[Any]:
    """Return the leaves in order."""
    parts: list[Any] = []
    rebuild(parts.append, whole)
    return parts


# Graphs where there is nothing to capture: a replay calls the function.


@final
class HostGraph(Graph):
    """A function and its arguments; results stay where the first replay put them."""

    _results: Any = None
    _kept: Sequence[Any] = ()  # the arrays in them
    _form: Any = ABSENT  # their containers, shapes, dtypes

    def __call__(self) -> Any:
        """Call the function; return the arrays that hold what it returned."""
        self._refuse_freed(self._found, "an argument")
        self._refuse_freed(self._kept, "a result")
        results = self._called()
        arrays = self._checked(results)
        form = rebuild(lambda x: (x.shape, x.dtype), results)
        with self._lock:
            if self._form is ABSENT:
                for x in arrays:
                    foreign.begin_write(x, f"the graph of {self._name}")
                # NumPy's scalars become arrays, which later replays can write to.
                self._results = rebuild(
                    lambda x: np.asarray(x) if isinstance(x, np.generic) else x, results
                )
                self._kept, self._form = leaves(self._results), form
            elif form != self._form:
                raise CaptureError(
                    f"{self._name} returned {form}, after {self._form} when it was "
                    "first replayed: a graph's results keep their shapes and dtypes"
                )
            else:
                for kept, new in zip(self._kept, arrays, strict=True):
                    if new is not kept:
                        kept[...] = new
        return self._results

    def _called(self) -> Any:
        """Return what the function returns; on fake devices it copies as on CUDA."""
        if not any(map(is_fake, self._found)):
            return self._f(*self._arrays)
        try:
            with transfer_guard("disallow"):
                return self._f(*self._arrays)
        except XdevError as error:
            if type(error) is not XdevError:
                raise
            copied, where = str(error).partition(" under ")[0], _quoted(_raised(error))
            message = f"{self._name} cannot be captured: {where}: {copied}; {RULE}"
            raise CaptureError(message) from error


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
COMPILED = (".pyx", ".pxi", ".pxd")  # frames of CuPy's and cuda.core's modules


@final
class Capture(hooks.Listener):
    """The recording of one function; it hears of blocks that come past its arena.

    The arena's blocks come from the pool of the device, which is the current one, and
    follow the work of ``home``, the stream that was current.
    """

    def __init__(self, pool: Pool, home: Any, index: int) -> None:
        self._cuda = _optional.cupy().cuda
        self._pool, self._home, self._index = pool, home, index
        self._stream = self._cuda.Stream(non_blocking=True)
        self._thread = threading.get_ident()
        self._away = False  # what comes is the arena's own
        self._strangers: list[tracking.Frames] = []
        self.arena = Arena()  # what the function's work lies in

    def run(
        self, f: Callable[..., Any], arrays: tuple[Any, ...], name: str
    ) -> tuple[Any, Any]:
        """Return the graph, ready to launch, and what the function returned."""
        try:
            with self._recording():
                results = f(*arrays)
                graph = self._stream.end_capture()
        except MemoryError:
            raise
        except Exception as error:
            late = "invalidated" in str(error).lower()
            where = "by a call before" if late else _quoted(_raised(error))
            reason = f"{type(error).__name__}: {error}"
            message = f"{name} cannot be captured: {where}: {reason}; {RULE}"
            raise CaptureError(message) from error
        if self._strangers:
            where = tracking.origin(self._strangers[0])
            raise CaptureError(
                f"{name} cannot be captured: {_quoted(where)} allocates from "
                f"the pool of {self._pool.name}, and the memory could be another's "
                f"when the graph is replayed; {RULE}"
            )
        return graph, results

    @contextmanager
    def _recording(self) -> Iterator[None]:
        """Record this thread's work; whatever happens, recording is over after it."""
        cuda, stream = self._cuda, self._stream
        runtime, collects = cuda.runtime, gc.isenabled()
        take = partial(self.arena.take, self._acquire)
        allocate = device_allocator(take, cuda.get_current_stream, self._index)
        live_streams.captured.add(stream.ptr)
        hooks.subscribe(self)
        gc.disable()  # old garbage may hold what is freed by forbidden calls
        try:
            with stream, cuda.using_allocator(allocate):
                stream.begin_capture(runtime.streamCaptureModeThreadLocal)
                try:
                    yield
                finally:
                    with suppress(runtime.CUDARuntimeError):  # it is over already
                        runtime.graphDestroy(runtime.streamEndCapture(stream.ptr))
        finally:
            if collects:
                gc.enable()
            hooks.subscribe(self, on=False)
            live_streams.captured.discard(stream.ptr)
            native.calls.forget_stream(stream.ptr)  # nobody saw it

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


def _raised(error: Exception) -> str:
    """Return ``file:line`` of the innermost call outside the libraries."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    places = [
        (frame.filename, frame.lineno or 0, frame.name)
        for frame in frames
        if not frame.filename.endswith(COMPILED)
    ]
    return tracking.maker(places)


def _quoted(where: str) -> str:
    """Return ``file:line`` with the line itself."""
    file, _, number = where.rpartition(":")
    source = linecache.getline(file, int(number)).strip()
    return f"{where}, `{source}`" if source else where


@final
class CudaGraph(Graph):
    """A function's work on a CUDA device, given by its index, ready to launch."""

    def __init__(
        self,
        f: Callable[..., Any],
        arrays: tuple[Any, ...],
        found: list[Any],
        index: int,
    ) -> None:
        super().__init__(f, arrays, found)
        self._cuda, self._index = _optional.cupy().cuda, index
        self._pool = registry.pool(f"cuda:{index}")
        alone = BACKEND.count() == 1  # its device need not be made current
        self._place = nullcontext if alone else partial(self._cuda.Device, index)
        array = _optional.cupy().ndarray
        self._simple = alone and all(type(x) is array for x in found)
        with self._place():
            home = self._cuda.get_current_stream()
            if home.is_capturing():
                raise CaptureError(
                    f"the graph of {self._name} cannot be made while another is "
                    "captured: make it before, and call it there"
                )
            operands = self._operands()
            with ordered(operands):
                _rehearse(f, arrays, operands)
            capture = Capture(self._pool, home, index)
            self._graph, self._results = capture.run(f, arrays, self._name)
            self._arena = capture.arena
            for x in self._checked(self._results):
                foreign.begin_write(x, f"the graph of {self._name}")
                if (where := device_of(x)) != f"cuda:{index}":
                    raise CaptureError(
                        f"{self._name} returns {type(x).__name__} on {where}, which a "
                        f"replay on cuda:{index} cannot write to"
                    )
            self._ready = home.record(self._cuda.Event(disable_timing=True))
        self._streams: set[int] = set()  # those that were launched on

    def __call__(self) -> Any:
        """Queue the work on the current stream; return the results' arrays."""
        self._refuse_freed(self._found, "an argument")
        if self._simple:
            self._launch()
        else:
            with self._place(), ordered(self._operands()):
                self._launch()
        return self._results

    def _operands(self) -> list[Array]:
        """Return the arrays of the arguments, with their libraries' streams of now."""
        operands = [read(x, f"the graph of {self._name}") for x in self._found]
        return [x for x in operands if isinstance(x, Array)]

    def _launch(self) -> None:
        stream = self._cuda.get_current_stream()
        with self._lock:  # CUDA's graphs are not safe to launch by two threads at once
            if live_streams.captured and stream.is_capturing():
                raise CaptureError(
                    f"the graph of {self._name} cannot be launched while another is "
                    "captured: call its function there"
                )
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


def _rehearse(
    f: Callable[..., Any], arrays: tuple[Any, ...], operands: list[Array]
) -> None:
    """Run the function as it is, so that all is compiled and loaded; then undo it."""
    views = [x.cupy() for x in operands if x.writable]
    saved = [view.copy() for view in views]
    try:
        f(*arrays)
    finally:
        for view, values in zip(views, saved, strict=True):
            view[...] = values
