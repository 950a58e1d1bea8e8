"""Pinned host memory: ``cudaHostAlloc`` through CuPy, usable from every device."""

from __future__ import annotations

from typing import Any, final

from xdev import _optional
from xdev.memory.sources.cuda import RuntimeCall
from xdev.memory.sources.host import host_total

ALIGNMENT = 512  # so that a block may start a copy on any device [B]


@final
class PinnedSource:
    """Page-locked host memory. The streams are those of the current CUDA device."""

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
        """Record an event without timing."""
        event = self._cuda.Event(disable_timing=True)
        self._cuda.runtime.eventRecord(event.ptr, stream)
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
