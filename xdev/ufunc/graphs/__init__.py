"""Graphs: a function's work on fixed arrays, recorded once and repeated by one call."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NoReturn, final

import numpy as np

from xdev._freed import is_freed, use_after_free
from xdev.device import default_device, device_of
from xdev.errors import CaptureError, DeviceMismatchError
from xdev.ufunc import foreign

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from xdev.device import Device

__all__ = ["Graph", "graph"]


class Graph:
    """What :func:`graph` returns."""

    _f: Callable[..., Any]

    def __call__(self) -> Any:
        """Do the work again, and return the results: each time the same arrays."""
        raise NotImplementedError

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a graph works on arrays of this process, so it cannot be pickled: pickle "
            "its function, and make another there"
        )

    def __repr__(self) -> str:
        return f"<xdev graph of {name_of(self._f)}>"


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
        stream is as it was. Elsewhere: the results of two replays differ in form.
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
    from xdev.transfer.adaptation import arrays_in

    if not callable(f):
        message = f"a graph is of a function, not of {type(f).__name__}: graph(f, x, y)"
        raise TypeError(message)
    operands = list(arrays_in(arrays).values())
    where = _device(operands)
    if where.type == "cuda":
        from xdev.ufunc.graphs.cuda import CudaGraph

        return CudaGraph(f, arrays, operands, where.require().index)

    return HostGraph(f, arrays, operands)


def _device(operands: Iterable[Any]) -> Device:
    """Return the one device of arrays; the default one without any."""
    first: tuple[Any, Device] | None = None
    for x in operands:
        here = device_of(x)
        if first is None:
            first = x, here
        elif here != first[1]:
            raise DeviceMismatchError(
                "graph() got arrays of two devices: "
                f"{type(first[0]).__name__} of shape {tuple(first[0].shape)} is on "
                f"{first[1]}, {type(x).__name__} of shape {tuple(x.shape)} is on "
                f"{here}; move one with xdev.to_device(x, '{first[1]}')"
            )
    return default_device() if first is None else first[1]


# What a captured function returns: arrays in lists, tuples and dicts.

PROTOCOLS = ("__array_namespace__", "__cuda_array_interface__", "__dlpack__")


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
        parts = [rebuild(move, part) for part in whole]
        kind: Any = type(whole)
        if isinstance(whole, list):
            return parts
        return kind._make(parts) if hasattr(kind, "_make") else tuple(parts)
    return move(whole)


def leaves(whole: Any) -> list[Any]:
    """Return the leaves in order.

    Examples
    --------
    >>> leaves({"a": [1, 2], "b": (None, 3)})
    [1, 2, 3]
    """
    parts: list[Any] = []
    rebuild(parts.append, whole)
    return parts


def form(whole: Any) -> Any:
    """Return what does not change between replays: containers, shapes, dtypes."""
    return rebuild(lambda x: (x.shape, x.dtype), whole)


def check_arrays(name: str, whole: Any) -> None:
    """Raise CaptureError unless all leaves are arrays or NumPy scalars."""
    for x in leaves(whole):
        kind = type(x)
        if isinstance(x, np.generic) or any(hasattr(kind, p) for p in PROTOCOLS):
            continue
        raise CaptureError(
            f"{name} returns {kind.__name__}, which a replay cannot write to: return "
            "arrays, or lists, tuples and dicts of them"
        )


def check_alive(name: str, arrays: Iterable[Any], what: str = "an argument") -> None:
    """Raise UseAfterFreeError if one of a graph's arrays was freed since."""
    for x in arrays:
        if is_freed(x):
            raise use_after_free(x, f"the graph of {name}: {what}")


def name_of(f: Any) -> str:
    """Return what messages call a function.

    Examples
    --------
    >>> name_of(len)
    'len'
    """
    return str(getattr(f, "__name__", None) or type(f).__name__)


# Graphs where there is nothing to capture: a replay calls the function.


@final
class HostGraph(Graph):
    """A function and its arguments; results stay where the first replay put them.

    Parameters
    ----------
    f : callable
        The function.
    arrays : tuple
        Its arguments.
    operands : list of arrays
        The arrays in them.
    """

    def __init__(
        self, f: Callable[..., Any], arrays: tuple[Any, ...], operands: list[Any]
    ) -> None:
        self._f, self._arrays, self._found = f, arrays, operands
        self._lock = threading.Lock()  # guards the results
        self._results: Any = None
        self._kept: list[Any] = []  # the arrays in them
        self._form: Any = None
        self._first = True

    def __call__(self) -> Any:
        """Call the function; return the arrays that hold what it returned."""
        name = name_of(self._f)
        check_alive(name, self._found)
        check_alive(name, self._kept, "a result")
        results = self._f(*self._arrays)
        check_arrays(name, results)
        with self._lock:
            if self._first:
                for x in leaves(results):
                    foreign.begin_write(x, f"the graph of {name}")
                self._results = rebuild(_kept, results)
                self._kept = leaves(self._results)
                self._form = form(results)
                self._first = False
                return self._results
            if form(results) != self._form:
                raise CaptureError(
                    f"{name} returned {form(results)}, after {self._form} when it was "
                    "first replayed: a graph's results keep their shapes and dtypes"
                )
            for kept, new in zip(self._kept, leaves(results), strict=True):
                if new is not kept:
                    kept[...] = new
        return self._results


def _kept(x: Any) -> Any:
    """Return an array that later replays can write to."""
    return np.asarray(x) if isinstance(x, np.generic) else x
