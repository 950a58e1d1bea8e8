"""Memory of one CUDA device, by the CUDA runtime through CuPy."""

from __future__ import annotations

import os
from typing import Any, final

from xdev import _optional
from xdev.device.cuda import FORKED
from xdev.errors import DeviceUnavailableError
from xdev.memory.streams import live_streams

OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation
ALIGNMENT = 512  # what cudaMalloc gives, and CuPy's and PyTorch's unit [B]


@final
class CudaSource:
    """``cudaMalloc`` and ``cudaFree`` on one device; events order its streams.

    ``cudaFree`` waits for queued work itself.

    Parameters
    ----------
    index : int
        Which device.
    """

    alignment = ALIGNMENT

    def __init__(self, index: int) -> None:
        self.index, self.name = index, f"cuda:{index}"
        self._cuda = _optional.cupy().cuda
        self._call = RuntimeCall(self._cuda.runtime)

    def total(self) -> int:
        """Return the memory of the card [B]."""
        return self.room()[1]

    def room(self) -> tuple[int, int]:
        """Return what the driver has left, and the memory of the card [B]."""
        with self._cuda.Device(self.index):
            free, total = self._cuda.runtime.memGetInfo()
        return int(free), int(total)

    def allocate(self, nbytes: int) -> int:
        """Allocate on the device."""
        self._call.check_process()
        live_streams.see(self._cuda.get_current_stream())
        device, malloc = self._cuda.Device(self.index), self._cuda.runtime.malloc
        with device: return self._call(malloc, nbytes)  # fmt: skip # noqa: E701 - nothing is raised once it is done

    def free(self, address: int, nbytes: int) -> None:  # noqa: ARG002
        """Free, once queued work that uses it is done."""
        runtime = self._cuda.runtime
        with self._cuda.Device(self.index): runtime.free(address)  # fmt: skip # noqa: E701 - likewise

    def record(self, stream: int) -> Any:
        """Record an event without timing.

        If the stream may be destroyed already, wait for the device instead: the event
        is then done as it stands.
        """
        with self._cuda.Device(self.index):
            event = self._cuda.Event(disable_timing=True)
            alive = live_streams.get(stream)
            if alive is None:
                self._cuda.runtime.deviceSynchronize()
            else:
                self._cuda.runtime.eventRecord(event.ptr, stream)
        return event

    def wait(self, stream: int, event: Any) -> None:
        """Queue a wait on the device; the host goes on."""
        live_streams.see(self._cuda.get_current_stream())
        with self._cuda.Device(self.index):
            self._cuda.runtime.streamWaitEvent(stream, event.ptr)

    def done(self, event: Any) -> bool:
        """Ask the driver."""
        return bool(event.done)

    def synchronize(self) -> None:
        """Wait for every stream of the device."""
        with self._cuda.Device(self.index):
            self._cuda.runtime.deviceSynchronize()

    def retired(self) -> list[int]:
        """Return the handles of streams that ended since, with their work done."""
        self._call.check_process()
        live_streams.see(self._cuda.get_current_stream())
        return live_streams.retire()


@final
class RuntimeCall:
    """Calls that allocate by the CUDA runtime, with the errors that a pool expects."""

    def __init__(self, runtime: Any) -> None:
        self._error = runtime.CUDARuntimeError
        self._process = os.getpid()

    def __call__(self, allocate: Any, *args: int) -> int:
        """Return an address, or raise ``MemoryError`` when there is no memory."""
        self.check_process()
        try:
            return int(allocate(*args))
        except self._error as error:
            if error.status != OUT_OF_MEMORY:
                raise
            raise MemoryError(str(error)) from error

    def check_process(self) -> None:
        """Raise DeviceUnavailableError in a child of the process that made this."""
        if os.getpid() != self._process:
            raise DeviceUnavailableError(FORKED)
