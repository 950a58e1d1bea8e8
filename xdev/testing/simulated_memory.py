"""The memory of a simulated device, as a pool's source."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from xdev.memory.blocks import round_up
from xdev.memory.streams import LiveStreams

if TYPE_CHECKING:
    from xdev.testing.simulation import SimulatedDevice, SimulatedEvent

BASE = 1 << 30  # the first address [B]


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
    alignment = 512

    def __init__(self, device: SimulatedDevice, capacity: int) -> None:
        self.device, self.capacity, self.streams = device, capacity, LiveStreams()
        self.lent: dict[int, int] = {}  # {address: nbytes}
        self._former: dict[int, list[int]] = {}  # by size; the last goes out first
        self._next = BASE

    def total(self) -> int:
        """Return the capacity [B]."""
        return self.capacity

    def room(self) -> tuple[int, int]:
        """Return what is left, and the capacity [B]."""
        return self.capacity - sum(self.lent.values()), self.capacity

    def allocate(self, nbytes: int) -> int:
        """Lend a range; it waits for nothing.

        Raises
        ------
        MemoryError
            There are not so many bytes.
        """
        self.streams.see(self.device.current_stream())
        with self.device.call():
            if nbytes > self.room()[0]:
                message = f"{nbytes} B over a capacity of {self.capacity} B"
                raise MemoryError(message)
            former = self._former.get(nbytes)
            if former:
                address = former.pop()
            else:
                address = self._next
                self._next += round_up(nbytes, self.alignment)
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
            if self.lent.get(address) != nbytes:
                message = f"{nbytes} B at {address:#x} are not lent"
                raise ValueError(message)
            del self.lent[address]
            self._former.setdefault(nbytes, []).append(address)

    def record(self, stream: int) -> SimulatedEvent:
        """Return an event of a stream; of all work, if the stream may be destroyed."""
        alive = self.streams.get(stream)
        if alive is None:
            self.device.synchronize()
            stream = 0
        return self.device.record(stream)

    def wait(self, stream: int, event: SimulatedEvent) -> None:
        """Queue a wait; the host goes on."""
        self.streams.see(self.device.current_stream())
        self.device.wait(stream, event)

    def done(self, event: SimulatedEvent) -> bool:
        """Ask the device."""
        return event.done

    def synchronize(self) -> None:
        """Wait for every stream."""
        self.device.synchronize()

    def retired(self) -> list[int]:
        """Return the handles of streams that ended since, with their work done."""
        self.streams.see(self.device.current_stream())
        return self.streams.retire()
