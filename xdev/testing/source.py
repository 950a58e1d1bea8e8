"""Memory of a simulated device."""

from __future__ import annotations

from typing import final

from xdev.device.streams import LiveStreams
from xdev.memory.sources.fake import FakeSource
from xdev.testing.simulation import SimulatedDevice, SimulatedEvent, checked


@final
class SimulatedSource:
    """Memory that is not there, on a device whose streams and events are simulated.

    It does as a CUDA device does: ``free`` waits for all queued work first, and the
    next ``allocate`` of that size gets the address at once.

    Parameters
    ----------
    device : SimulatedDevice
        Whose memory.
    capacity : int
        How much can be lent at a time [B].

    Examples
    --------
    >>> from xdev.memory import Pool
    >>> from xdev.testing import SimulatedDevice
    >>> device = SimulatedDevice()
    >>> pool = Pool(SimulatedSource(device, capacity=1 << 30))
    >>> with device.stream() as stream:
    ...     block = pool.acquire(1000, stream.ptr)
    >>> device.tenant(block.address, block.nbytes).use(stream)
    >>> del block
    >>> pool.reclaim() > 0, device.hazards
    (True, [])
    """

    name = "simulated"
    alignment = FakeSource.alignment

    def __init__(self, device: SimulatedDevice, capacity: int) -> None:
        self.device, self.streams = checked(device, SimulatedDevice), LiveStreams()
        self._numbers = FakeSource(capacity)
        self.total, self.room = self._numbers.total, self._numbers.room
        self.lent = self._numbers.lent  # {address: nbytes}
        self._former: dict[int, list[int]] = {}  # by size; the last goes out first

    def allocate(self, nbytes: int) -> int:
        """Lend a range; it waits for nothing.

        Raises
        ------
        MemoryError
            There are not so many bytes.
        """
        self.streams.see(self.device.current_stream())
        with self.device.call():
            address = self._numbers.allocate(nbytes)
            if self._former.get(nbytes):
                del self.lent[address]
                address = self._former[nbytes].pop()
                self.lent[address] = nbytes
        return address

    def free(self, address: int, nbytes: int) -> None:
        """Take a range back, once all queued work is done.

        Raises
        ------
        ValueError
            No such range is lent.
        """
        self.device.synchronize()
        with self.device.call():
            self._numbers.free(address, nbytes)
            self._former.setdefault(nbytes, []).append(address)

    def record(self, stream: int) -> SimulatedEvent:
        """Return an event of a stream; of all work, if the stream may be destroyed.

        Raises
        ------
        RuntimeError
            There is no such stream.
        """
        if self.streams.get(stream) is None:
            self.device.synchronize()
            stream = 0
        return self.device.record(stream)

    def wait(self, stream: int, event: SimulatedEvent) -> None:
        """Queue a wait; the host goes on.

        Raises
        ------
        RuntimeError
            There is no such stream.
        """
        self.streams.see(self.device.current_stream())
        self.device.wait(stream, event)

    def done(self, event: SimulatedEvent) -> bool:
        """Ask the device."""
        return checked(event, SimulatedEvent).done

    def synchronize(self) -> None:
        """Wait for every stream."""
        self.device.synchronize()

    def retired(self) -> list[int]:
        """Return the handles of streams that ended since, with their work done."""
        self.streams.see(self.device.current_stream())
        return self.streams.retire()
