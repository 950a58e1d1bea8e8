"""Copies that stay in host memory: done when the call returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from xdev.memory.arrays import host_array
from xdev.transfer.exporters import host_values

if TYPE_CHECKING:
    from xdev.device import Device, Stream


def check(dtype: np.dtype[Any], target: Device) -> None:
    """Take every dtype."""


def adopt(x: Any, target: Device) -> Any:  # noqa: ARG001 - there is one host
    """Return the same memory as a NumPy array; None for a dtype that DLPack lacks."""
    try:
        return shared(x)
    except (BufferError, RuntimeError):  # NumPy's and PyTorch's, JAX's
        return None


def shared(x: Any) -> Any:
    """Return a host array's memory as a NumPy array, or raise what DLPack does."""
    if isinstance(x, np.ndarray):
        return x
    # DLPack before its version 1 makes all read-only, NumPy's protocol says what is.
    told = hasattr(x, "__array_interface__") or not hasattr(x, "__dlpack__")
    return np.asarray(x) if told else np.from_dlpack(x)


def upload(
    values: np.ndarray[Any, Any],
    target: Device,  # noqa: ARG001 - there is one host
    stream: Stream | None,  # noqa: ARG001 - nothing is queued
    non_blocking: bool,  # noqa: ARG001 - likewise
    out: Any,
) -> Any:
    """Copy a NumPy array; what is laid out in Fortran's order stays so."""
    if out is None:
        out = host_array(values.shape, values.dtype, order_of(values))
    if hasattr(out, "dask"):  # it has no memory, but may be told other values
        out[...] = values.copy()
    else:
        np.copyto(shared(out), values)
    return out


def order_of(x: Any) -> Literal["C", "F"]:
    """Return how a copy of an array is laid out: as the array, or in C order."""
    return "F" if x.flags.fnc else "C"


def download(
    x: Any,
    source: Device,
    stream: Stream | None,
    non_blocking: bool,
    out: Any,
) -> Any:
    """Copy an array of any library that the host holds."""
    return upload(host_values(x), source, stream, non_blocking, out)


def copy(
    x: Any,
    source: Device,
    target: Device,  # noqa: ARG001 - there is one host
    stream: Stream | None,
    non_blocking: bool,
    out: Any,
) -> Any:
    """Do the same."""
    return download(x, source, stream, non_blocking, out)
