"""One stream of a CUDA device, and a packed array there, for staged copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional
from xdev.device import registry
from xdev.memory.arrays import pinned_array
from xdev.transfer import schedule
from xdev.transfer.cuda_driver import driver
from xdev.transfer.lifetimes import PER_THREAD

if TYPE_CHECKING:
    from collections.abc import Sequence


@final
class CudaBus:
    """For Python's lanes.

    Parameters
    ----------
    packed : cupy.ndarray
        In C order.
    queue : cupy.cuda.Stream
        Where the copies go.
    index : int
        The device.
    """

    def __init__(self, packed: Any, queue: Any, index: int) -> None:
        self._cuda = _optional.cupy().cuda
        self._address, self._queue, self._index = packed.data.ptr, queue, index
        self.threads = threads_of(queue)

    def slots(self, count: int, nbytes: int) -> np.ndarray[Any, Any]:
        """Return pinned memory of the pool."""
        return pinned_array((count, nbytes), np.dtype(np.uint8))

    def entered(self) -> Any:
        """Make the device the thread's current one."""
        return registry.backend("cuda").use(self._index)

    def send(self, slot: np.ndarray[Any, Any], start: int) -> Any:
        """Queue a copy to the device; return its event."""
        runtime = self._cuda.runtime
        return self._copy(
            self._address + start, slot.ctypes.data, slot, runtime.memcpyHostToDevice
        )

    def fetch(self, start: int, slot: np.ndarray[Any, Any]) -> Any:
        """Queue a copy from the device; return its event."""
        runtime = self._cuda.runtime
        return self._copy(
            slot.ctypes.data, self._address + start, slot, runtime.memcpyDeviceToHost
        )

    def synchronize(self) -> None:
        """Wait for the stream."""
        self._queue.synchronize()

    def _copy(self, to: int, origin: int, slot: np.ndarray[Any, Any], kind: int) -> Any:
        self._cuda.runtime.memcpyAsync(to, origin, slot.nbytes, kind, self._queue.ptr)
        return self._queue.record(self._cuda.Event(disable_timing=True))


@final
class CudaLine:
    """For machine code; the parameters are :class:`CudaBus`'s, the device is current.

    Its other attributes are those of :class:`~xdev.transfer.express.Line`.
    """

    def __init__(self, packed: Any, queue: Any, index: int) -> None:
        self._queue, self._driver = queue, driver()
        self.name, self.threads = f"cuda:{index}", threads_of(queue)
        self.address, self.stream = packed.data.ptr, queue.ptr
        self.context = self._driver.context(index)
        self.enter, self.record = self._driver.enter, self._driver.record
        self.up, self.down = self._driver.up, self._driver.down
        self.wait, self.explain = self._driver.wait, self._driver.explain

    def slots(self, count: int, nbytes: int) -> np.ndarray[Any, Any]:
        """Return pinned memory of the pool."""
        return pinned_array((count, nbytes), np.dtype(np.uint8))

    def take_events(self, count: int) -> Sequence[int]:
        """Return events of the device."""
        return self._driver.take_events(self.context, count)

    def give_events(self, events: Sequence[int]) -> None:
        """Take them back."""
        self._driver.give_events(self.context, events)

    def synchronize(self) -> None:
        """Wait for the stream."""
        self._queue.synchronize()


def threads_of(queue: Any) -> int:
    """Return how many threads may use a stream at a time."""
    return 1 if queue.ptr == PER_THREAD else schedule.LANES
