"""Graphs inside others: CUDA launches none into a stream that records.

What records gets a copy of the graph as one node instead. It is done by the driver's
functions as they were when CUDA 11.3 brought them, which every later driver has.
"""

from __future__ import annotations

import ctypes
from typing import Any

from xdev.errors import CaptureError
from xdev.transfer import cuda_driver

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
    library = cuda_driver.library()
    handle, child = ctypes.c_void_p(stream), ctypes.c_void_p(graph)
    status, whole = ctypes.c_int(), ctypes.c_void_p()
    before, count = ctypes.c_void_p(), ctypes.c_size_t()
    places = map(ctypes.byref, (status, whole, before, count))
    state, recorded, nodes, number = places
    _check(
        library.cuStreamGetCaptureInfo_v2(handle, state, None, recorded, nodes, number)
    )
    if status.value != RECORDS:
        message = "the stream does not record: a call before has ended that"
        raise CaptureError(message)
    node = ctypes.c_void_p()
    place = ctypes.byref(node)
    _check(library.cuGraphAddChildGraphNode(place, whole, before, count, child))
    one = ctypes.c_size_t(1)
    _check(library.cuStreamUpdateCaptureDependencies(handle, place, one, REPLACE))


def _check(status: Any) -> None:
    if status:
        raise CaptureError(cuda_driver.driver().explain(status))
