"""Graphs on CUDA: captured once, replayed by one launch."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NoReturn, final

from xdev import _optional
from xdev.device import device_of
from xdev.errors import CaptureError
from xdev.memory import registry
from xdev.memory.owners import mark_uses
from xdev.memory.streams import live_streams
from xdev.ufunc import cuda_fast, foreign
from xdev.ufunc.cuda_operands import Array, read
from xdev.ufunc.cuda_streams import ordered
from xdev.ufunc.graphs import capture, nesting
from xdev.ufunc.graphs.results import check_alive, check_arrays, leaves, name_of

if TYPE_CHECKING:
    from collections.abc import Callable


@final
class CudaGraph:
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
                message = (
                    f"the graph of {name_of(f)} cannot be made while another is "
                    "captured: make it before, and call it there"
                )
                raise CaptureError(message)
            operands = self._operands()
            with ordered(operands):
                _rehearse(f, arrays, operands)
            made = capture.Capture(self._pool, home, index)
            self._graph, self._results = made.run(f, arrays)
            self._arena, self._inner = made.arena, made.inner
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
                nesting.embed(stream.ptr, self._graph.graph)
                capture.includes(self)
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
                self._pool.stock.mark(block.chunk, (stream.ptr,))
        for graph in self._inner:
            graph._meet(stream)  # noqa: SLF001 - one of its kind

    def _place(self) -> Any:
        """Make the device current, where there is another."""
        return nullcontext() if self._alone() else self._cuda.Device(self._index)

    def _alone(self) -> bool:
        return cuda_fast.devices() == 1

    def _check_results(self) -> None:
        name = name_of(self._f)
        check_arrays(name, self._results)
        for x in leaves(self._results):
            foreign.claim(x, f"the graph of {name}")
            where = device_of(x)
            if where != f"cuda:{self._index}":
                message = (
                    f"{name} returns {type(x).__name__} of shape {tuple(x.shape)} on "
                    f"{where}, which a replay on cuda:{self._index} cannot write to"
                )
                raise CaptureError(message)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a graph works on arrays of this process, so it cannot be pickled: pickle "
            "its function, and make another there"
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
