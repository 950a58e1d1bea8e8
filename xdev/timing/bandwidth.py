"""How fast this machine copies memory: what other bandwidths are measured against."""

from __future__ import annotations

from typing import Any

import numpy as np

from xdev import facade, memory, transfer
from xdev._forks import module_lock
from xdev.compile import threads
from xdev.device import Device, as_device
from xdev.timing.sampling import begin

# Far more than caches hold [B].
SIZE = 256 << 20
COPIES = 5  # of one run
RUNS = 5
PIECE = 1 << 20  # of random bytes [B]
GRAIN = 4096  # threads start at a page [B]

_measured: dict[Device, float] = {}
_lock = module_lock()  # guards _measured; one thread measures


def copy_bandwidth(device: Device | str | None = None) -> float:
    """Return how many bytes a second a copy within a device's memory moves.

    Bytes read and bytes written both count. Measured at the first call in a process
    and for a device, in under a second: 256 MiB of random bytes, the best of five runs.
    On the CPU by as many threads as xdev's ufuncs may use (``XDEV_NUM_THREADS``).

    Parameters
    ----------
    device : Device or str, optional
        Where; left out, on the default device.

    Returns
    -------
    float
        Bytes read and written per second [B/s].

    Raises
    ------
    DeviceUnavailableError
        The device cannot be used.
    OutOfMemoryError
        It has no 513 MiB to spare.
    """
    where = as_device(device)
    with _lock:
        if where not in _measured:
            _measured[where] = _measure(where)
        return _measured[where]


def _measure(device: Device) -> float:
    seconds = _copy_seconds(device)
    memory.reclaim(2 * SIZE, device)  # a measurement leaves no cache behind
    return 2 * SIZE / seconds


def _fill(array: Any, device: Device) -> None:
    """Write random bytes: pages that nobody wrote share one page of zeros."""
    numbers = np.random.default_rng(0).integers(0, 256, PIECE, np.uint8)
    piece = facade.asarray(numbers, device=device)
    for start in range(0, SIZE, PIECE):
        array[start : start + PIECE] = piece


def _copy_seconds(device: Device) -> float:
    origin, target = (
        facade.empty(SIZE, dtype=facade.uint8, device=device) for _ in range(2)
    )
    _fill(origin, device)

    def here() -> None:
        threads.run(part, SIZE, grain=GRAIN)

    def part(start: int, stop: int) -> None:
        target[start:stop] = origin[start:stop]

    def there() -> None:
        transfer.to_device(origin, device, out=target, non_blocking=True)

    copy = here if device.type == "cpu" else there
    candidate, _ = begin(copy, device)  # the first call touches every page
    return min(candidate.run(COPIES).device for _ in range(RUNS)) / COPIES
