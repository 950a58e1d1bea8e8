"""Pinned host memory: ``cudaHostAlloc`` through CuPy, usable from every device."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, final

from xdev import _optional
from xdev.memory.sources.cuda import RuntimeCall
from xdev.memory.sources.host import host_total
from xdev.memory.streams import live_streams

ALIGNMENT = 512  # so that a block may start a copy on any device [B]
HANDLES = 1 << 64  # every stream handle is below it


def on_device(stream: int, index: int) -> int:
    """Return what to call a device's stream here, where all devices' streams meet."""
    return (index + 1) * HANDLES + stream


@final
class PinnedSource:
    """Page-locked host memory.

    A stream is a handle, of the current CUDA device, or :func:`on_device`'s number.
    """

    name = "cpu (pinned)"
    alignment = ALIGNMENT

    def __init__(self) -> None:
        self._cuda = _optional.cupy().cuda
        self._call = RuntimeCall(self._cuda.runtime)

    def total(self) -> int:
        """Return the memory that this process may use [B]."""
        return host_total()

    def allocate(self, nbytes: int) -> int:
        """Allocate and lock, for all devices."""
        runtime = self._cuda.runtime
        return self._call(runtime.hostAlloc, nbytes, runtime.hostAllocPortable)

    def free(self, address: int, nbytes: int) -> None:  # noqa: ARG002
        """Unlock and free."""
        self._cuda.runtime.freeHost(address)

    def record(self, stream: int) -> Any:
        """Record an event without timing.

        If the stream may be destroyed already, wait for its device instead.
        """
        number, handle = divmod(stream, HANDLES)
        with self._cuda.Device(number - 1) if number else nullcontext():
            event = self._cuda.Event(disable_timing=True)
            if live_streams.get(handle) is None:
                self._cuda.runtime.deviceSynchronize()
            else:
                self._cuda.runtime.eventRecord(event.ptr, handle)
        return event

    def wait(self, stream: int, event: Any) -> None:
        """Queue a wait on the device; the host goes on."""
        self._cuda.runtime.streamWaitEvent(stream, event.ptr)

    def done(self, event: Any) -> bool:
        """Ask the driver."""
        return bool(event.done)

    def synchronize(self) -> None:
        """Wait for every stream of every device."""
        for index in range(self._cuda.runtime.getDeviceCount()):
            with self._cuda.Device(index):
                self._cuda.runtime.deviceSynchronize()
