"""CUDA's memory, by the runtime through CuPy: devices', and pinned host memory."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, final

from xdev import _optional
from xdev.device.cuda import BACKEND, FORKED
from xdev.device.streams import HANDLES, live_streams
from xdev.errors import ConfigurationError, DeviceUnavailableError
from xdev.memory.sources.host import host_total

OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation
ALIGNMENT = 512  # what cudaMalloc gives, and CuPy's and PyTorch's unit [B]


@final
class CudaSource:
    """``cudaMalloc`` and ``cudaFree`` on one device; events order its streams.

    ``cudaFree`` waits for queued work itself.
    """

    alignment = ALIGNMENT

    def __init__(self, index: int) -> None:
        self.index, self.name = index, f"cuda:{index}"
        self._cuda = _optional.cupy().cuda

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
        see_current(self._cuda)
        runtime, device = self._cuda.runtime, self._cuda.Device(self.index)
        with device: return allocated(runtime, runtime.malloc, nbytes)  # fmt: skip # noqa: E701 - nothing is raised once it is done

    def free(self, address: int, nbytes: int) -> None:  # noqa: ARG002
        """Free, once queued work that uses it is done."""
        runtime = self._cuda.runtime
        with self._cuda.Device(self.index): runtime.free(address)  # fmt: skip # noqa: E701 - likewise

    def record(self, stream: int) -> Any:
        """Record an event."""
        with self._cuda.Device(self.index):
            return recorded(self._cuda, stream)

    def wait(self, stream: int, event: Any) -> None:
        """Queue a wait on the device; the host goes on."""
        see_current(self._cuda)
        with self._cuda.Device(self.index):
            self._cuda.runtime.streamWaitEvent(stream, event.ptr)

    def done(self, event: Any) -> bool:
        """Ask the driver."""
        return bool(event.done)

    def synchronize(self) -> None:
        """Wait for every stream of the device."""
        with self._cuda.Device(self.index):
            self._cuda.runtime.deviceSynchronize()

    def in_stream_order(self) -> CudaAsyncSource:
        """Return the device's memory in stream order."""
        return CudaAsyncSource(self)

    def retired(self) -> list[int]:
        """Return the handles of streams that ended since, with their work done."""
        see_current(self._cuda)
        return live_streams.retire()


def recorded(cuda: Any, stream: int) -> Any:
    """Return an event, without timing, of a stream of the current device.

    If the stream may be destroyed already, wait for the device instead: the event is
    then done as it stands.
    """
    event = cuda.Event(disable_timing=True)
    if live_streams.get(stream) is None:
        cuda.runtime.deviceSynchronize()
    else:
        cuda.runtime.eventRecord(event.ptr, stream)
    return event


def allocated(runtime: Any, allocate: Any, *args: int) -> int:
    """Return the address of what the runtime allocates; MemoryError without memory."""
    try:
        return int(allocate(*args))
    except runtime.CUDARuntimeError as error:
        if error.status != OUT_OF_MEMORY:
            raise
        raise MemoryError(str(error)) from error


def see_current(cuda: Any) -> None:
    """Hold the current stream; DeviceUnavailableError in a forked child."""
    if BACKEND.forked:
        raise DeviceUnavailableError(FORKED)
    live_streams.see(cuda.get_current_stream())


ASYNC_ALIGNMENT = 256  # what CUDA promises of every allocation [B]
NEVER = (1 << 64) - 1  # as the threshold from which free memory goes back [B]


@final
class CudaAsyncSource:
    """A driver's memory pool on one device: ``cudaMallocAsync`` and ``cudaFreeAsync``.

    It is one of its own, not the device's default one: what it holds is then the
    ledger's alone, and nobody else's settings change. It keeps what is free until
    :meth:`trim`. The driver takes memory in pieces of 32 MiB or so; its memory cannot
    be used from other devices directly. The plain source answers for events and sizes.
    """

    alignment = ASYNC_ALIGNMENT

    def __init__(self, source: CudaSource) -> None:
        self._plain = source
        self._cuda = _optional.cupy().cuda
        self._runtime = runtime = self._cuda.runtime
        supports = runtime.cudaDevAttrMemoryPoolsSupported
        if not runtime.deviceGetAttribute(supports, self.index):
            text = f"{self.name} has no stream-ordered memory: policy 'async' needs it"
            raise ConfigurationError(f"{text}: use 'split'")
        kinds = runtime.cudaMemAllocationTypePinned, runtime.cudaMemHandleTypeNone
        place = runtime.cudaMemLocationTypeDevice, self.index
        props = runtime.MemPoolProps(*kinds, *place)
        with self._cuda.Device(self.index):
            self._pool = runtime.memPoolCreate(props)
        threshold = runtime.cudaMemPoolAttrReleaseThreshold
        runtime.memPoolSetAttribute(self._pool, threshold, NEVER)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def allocate(self, nbytes: int, stream: int) -> int:
        """Allocate in a stream's order."""
        see_current(self._cuda)
        runtime, device = self._runtime, self._cuda.Device(self.index)
        order = runtime.mallocFromPoolAsync, nbytes, self._pool, stream
        with device: return allocated(runtime, *order)  # fmt: skip # noqa: E701 - nothing is raised once it is done

    def free(self, address: int, nbytes: int, stream: int) -> None:  # noqa: ARG002
        """Free in a stream's order, or after all work where the stream may be gone."""
        with self._cuda.Device(self.index): self._free(address, stream)  # fmt: skip # noqa: E701 - likewise

    def _free(self, address: int, stream: int) -> None:
        if live_streams.get(stream) is None:
            self._runtime.deviceSynchronize()
            stream = 0
        self._runtime.freeAsync(address, stream)

    def held(self) -> int:
        """Ask the driver; a forked child has nothing."""
        if BACKEND.forked:
            return 0
        reserved = self._runtime.cudaMemPoolAttrReservedMemCurrent
        return int(self._runtime.memPoolGetAttribute(self._pool, reserved))

    def trim(self, keep: int) -> None:
        """Have the driver give back."""
        self._runtime.memPoolTrimTo(self._pool, keep)


def on_device(stream: int, index: int) -> int:
    """Return what to call a device's stream here, where all devices' streams meet."""
    return (index + 1) * HANDLES + stream


@final
class PinnedSource:
    """Page-locked host memory (``cudaHostAlloc``), usable from every device.

    A stream is a handle, of the current CUDA device, or :func:`on_device`'s number.
    """

    name = "cpu (pinned)"
    alignment = ALIGNMENT

    def __init__(self) -> None:
        self._cuda = _optional.cupy().cuda

    def total(self) -> int:
        """Return the memory that this process may use [B]."""
        return host_total()

    def allocate(self, nbytes: int) -> int:
        """Allocate and lock, for all devices."""
        if BACKEND.forked:
            raise DeviceUnavailableError(FORKED)
        runtime = self._cuda.runtime
        return allocated(runtime, runtime.hostAlloc, nbytes, runtime.hostAllocPortable)

    def free(self, address: int, nbytes: int) -> None:  # noqa: ARG002
        """Unlock and free."""
        self._cuda.runtime.freeHost(address)

    def record(self, stream: int) -> Any:
        """Record an event."""
        number, handle = divmod(stream, HANDLES)
        with self._cuda.Device(number - 1) if number else nullcontext():
            return recorded(self._cuda, handle)

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
