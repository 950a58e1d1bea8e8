"""Graphs: a function's work on fixed arrays, recorded once and repeated by one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from xdev.device import default_device, device_of
from xdev.errors import DeviceMismatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from xdev.device import Device

__all__ = ["Graph", "graph"]


class Graph(Protocol):
    """What :func:`graph` returns."""

    def __call__(self) -> Any:
        """Do the work again, and return the results: each time the same arrays."""


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
    from xdev.transfer.structures import arrays_in

    if not callable(f):
        message = f"a graph is of a function, not of {type(f).__name__}: graph(f, x, y)"
        raise TypeError(message)
    found = list(arrays_in(arrays).values())
    where = _device(found)
    if where.type == "cuda":
        from xdev.ufunc.graphs.cuda import CudaGraph

        return CudaGraph(f, arrays, found, where.require().index)
    from xdev.ufunc.graphs.host import HostGraph

    return HostGraph(f, arrays, found)


def _device(found: Iterable[Any]) -> Device:
    """Return the one device of arrays; the default one without any."""
    first: tuple[Any, Device] | None = None
    for x in found:
        here = device_of(x)
        if first is None:
            first = x, here
        elif here != first[1]:
            message = (
                "graph() got arrays of two devices: "
                f"{type(first[0]).__name__} of shape {tuple(first[0].shape)} is on "
                f"{first[1]}, {type(x).__name__} of shape {tuple(x.shape)} is on "
                f"{here}; move one with xdev.to_device(x, '{first[1]}')"
            )
            raise DeviceMismatchError(message)
    return default_device() if first is None else first[1]
