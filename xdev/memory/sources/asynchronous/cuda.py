"""Memory of one CUDA device in stream order: ``cudaMallocAsync`` and ``cudaFreeAsync``.

The driver's pool is one of its own, not the device's default one: what it holds is
then the ledger's alone, and nobody else's settings change. It keeps what is free until
:meth:`CudaAsyncSource.trim`. The driver takes memory in pieces of 32 MiB or so; its
memory cannot be used from other devices directly.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, final

from xdev import _optional
from xdev.errors import ConfigurationError
from xdev.memory.sources.cuda import RuntimeCall
from xdev.memory.streams import live_streams

if TYPE_CHECKING:
    from xdev.memory.sources.cuda import CudaSource

ALIGNMENT = 256  # what CUDA promises of every allocation [B]
NEVER = (1 << 64) - 1  # as the threshold from which free memory goes back [B]


@final
class CudaAsyncSource:
    """A driver's memory pool on one device.

    Parameters
    ----------
    source : CudaSource
        The device's plain source; it answers for events and sizes.

    Raises
    ------
    ConfigurationError
        The device or its driver has no such pools.
    """

    alignment = ALIGNMENT

    def __init__(self, source: CudaSource) -> None:
        self._plain, self.index, self.name = source, source.index, source.name
        self.total, self.room = source.total, source.room
        self.record, self.wait = source.record, source.wait
        self.done, self.synchronize = source.done, source.synchronize
        self.retired = source.retired
        self._process = os.getpid()
        self._cuda = _optional.cupy().cuda
        self._runtime = runtime = self._cuda.runtime
        self._call = RuntimeCall(runtime)
        if not runtime.deviceGetAttribute(
            runtime.cudaDevAttrMemoryPoolsSupported, self.index
        ):
            message = f"{self.name} has no stream-ordered memory, which policy 'async' "
            raise ConfigurationError(f"{message}needs: use 'split'")
        props = runtime.MemPoolProps(
            runtime.cudaMemAllocationTypePinned,
            runtime.cudaMemHandleTypeNone,
            runtime.cudaMemLocationTypeDevice,
            self.index,
        )
        with self._cuda.Device(self.index):
            self._pool = runtime.memPoolCreate(props)
        threshold = runtime.cudaMemPoolAttrReleaseThreshold
        runtime.memPoolSetAttribute(self._pool, threshold, NEVER)

    def allocate(self, nbytes: int, stream: int) -> int:
        """Allocate in a stream's order."""
        self._call.check_process()
        live_streams.see(self._cuda.get_current_stream())
        order = self._runtime.mallocFromPoolAsync, nbytes, self._pool, stream
        with self._cuda.Device(self.index): return self._call(*order)  # fmt: skip # noqa: E701 - nothing is raised once it is done

    def free(self, address: int, nbytes: int, stream: int) -> None:  # noqa: ARG002
        """Free in a stream's order, or after all work where the stream may be gone."""
        with self._cuda.Device(self.index): self._free(address, stream)  # fmt: skip # noqa: E701 - likewise

    def _free(self, address: int, stream: int) -> None:
        alive = live_streams.get(stream)
        if alive is None:
            self._runtime.deviceSynchronize()
            stream = 0
        self._runtime.freeAsync(address, stream)

    def held(self) -> int:
        """Ask the driver; a forked child has nothing."""
        if os.getpid() != self._process:
            return 0
        reserved = self._runtime.cudaMemPoolAttrReservedMemCurrent
        return int(self._runtime.memPoolGetAttribute(self._pool, reserved))

    def trim(self, keep: int) -> None:
        """Have the driver give back."""
        self._runtime.memPoolTrimTo(self._pool, keep)
