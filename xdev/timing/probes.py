"""What timing asks of a device beside streams and events, by device type."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev._forks import module_lock

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.device import Device, Event

# Where the system does not say how large its caches are [B].
USUAL_CACHE = 64 << 20
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Probe:
    """The host, and any device of which no more is known.

    Parameters
    ----------
    device : Device
        Which.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._buffer: Any = None

    def hold(self, seconds: float) -> Event | None:  # noqa: ARG002 - see the others
        """Keep the current stream busy so long [s]; the host goes on.

        Returns
        -------
        Event or None
            It is done when the time is over; None where a stream cannot be held.
        """
        return None

    def flush(self) -> None:
        """Overwrite the caches up to the last, on the current stream."""
        if self._buffer is None:
            self._buffer = np.empty(2 * host_cache(), np.uint8)
        self._buffer.fill(1)

    def clock_rate(self) -> float | None:
        """Return how fast the processor's clock ticks now [Hz]; None if unknown."""
        return None

    def slowed_by(self) -> tuple[str, ...]:
        """Return the driver's names of what slows the clock now."""
        return ()


def host_cache() -> int:
    """Return the size of the host's largest cache [B]."""
    sizes = []
    for path in CACHES.glob("index*/size"):
        try:
            text = path.read_text(encoding="ascii").strip()
            sizes.append(int(text[:-1]) * UNITS[text[-1]])
        except (OSError, ValueError, KeyError, IndexError):
            continue
    return max(sizes, default=USUAL_CACHE)


def _cuda(device: Device) -> Probe:
    from xdev.timing.cuda import CudaProbe  # loads CuPy

    return CudaProbe(device)


_lock = module_lock()  # guards the registry
_probes: dict[str, Callable[[Device], Probe]] = {"cuda": _cuda}


def register(type: str, make: Callable[[Device], Probe]) -> None:
    """Let devices of a type be asked by what ``make`` returns."""
    with _lock:
        _probes[type] = make


def probe(device: Device) -> Probe:
    """Return the probe of a device; keep it as long as it is in use."""
    return _probes.get(device.type, Probe)(device)
