"""RMM's device memory (RAPIDS Memory Manager), by its callback resource; opt-in.

Who owns what, for how long: the pools own the segments. RMM's buffers hold addresses; a
table of the bridge's holds the block of each until RMM deallocates the address: then
the block is on the pool's queue, without a lock or a driver call, so it may happen in a
finalizer. A block belongs to the stream that RMM named when it allocated. If RMM names
another when it deallocates, the block also waits for that one's work.

The pool's refusal is a ``MemoryError`` for RMM's users, in C++ ``rmm::out_of_memory``.
RMM's own pools hold a lock while they ask the resource below them; Python may collect
garbage in that call, a buffer of the same pool too, and wait for ever: put none on top.

Each device's resource stays for the life of the process: C++ code may keep a copy, and
that has the bare addresses of Python's functions. ``uninstall`` puts the former ones
back; buffers that are alive stay valid, and their blocks go back to xdev's pool.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any, final

from xdev import _optional
from xdev._forks import immortal
from xdev.device import registry as devices
from xdev.memory.bridges import Loans, device_pool
from xdev.memory.streams import live_streams

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.memory.pools import Pool


@cache
def resource(pools: Callable[[int], Pool], index: int) -> Any:
    """Return a device's pool as an ``rmm.mr.DeviceMemoryResource``; always the same."""
    loans = Loans(partial(pools, index))

    def allocate(nbytes: int, stream: Any) -> int:
        _, handle = stream.__cuda_stream__()
        return loans.take(nbytes, live_streams.see(handle))

    def deallocate(address: int, _: int, stream: Any) -> None:
        loans.take_back(address, stream.__cuda_stream__()[1])

    kind = _optional.rmm().mr.CallbackMemoryResource
    return immortal(kind(allocate, deallocate))


@final
class RmmBridge:
    """RMM's resource of each device.

    Parameters
    ----------
    pools : callable, optional
        Returns the pool of device number ``index``; the registry's without one.
    """

    def __init__(self, pools: Callable[[int], Pool] = device_pool) -> None:
        self._mr = _optional.rmm().mr
        self._pools = pools
        self._before: dict[int, Any] = {}  # the former resources, by device

    def install(self) -> str | None:
        """Set the resources, unless one is not of RMM's default kind.

        Where no device can be used, the first one's says why when it is asked.
        """
        mr = self._mr
        indices = range(max(1, devices.backend("cuda").count()))
        before = {index: mr.get_per_device_resource(index) for index in indices}
        for index, current in before.items():
            if not isinstance(current, mr.CudaMemoryResource):
                return (
                    f"RMM's resource of device {index} was set to {current!r}; to let "
                    f"xdev's pool in, call rmm.mr.set_per_device_resource({index}, "
                    f"rmm.mr.CudaMemoryResource()), then "
                    f"xdev.memory.bridges.install('rmm')"
                )
        for index in before:
            mr.set_per_device_resource(index, resource(self._pools, index))
        self._before = before
        return None

    def uninstall(self) -> None:
        """Put the former resources back, unless somebody set others since."""
        mr, before, self._before = self._mr, self._before, {}
        for index, former in before.items():
            if mr.get_per_device_resource(index) is resource(self._pools, index):
                mr.set_per_device_resource(index, former)
