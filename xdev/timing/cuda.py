"""CUDA devices: a stream held for a time, caches overwritten, the clock's true rate."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional
from xdev.timing.probes import Probe
from xdev.timing.runs import record

if TYPE_CHECKING:
    from xdev.device import Device, Event

# One thread reads the timer until the time is over, and counts the processor's cycles
# meanwhile: their quotient is the clock's rate as it is, whatever the driver tells.
HOLD = """
__device__ unsigned long long now() {
    unsigned long long nanoseconds;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
    return nanoseconds;
}

extern "C" __global__
void xdev_hold(unsigned long long nanoseconds, unsigned long long* spent) {
    const unsigned long long begin = now();
    const long long cycles = clock64();
    unsigned long long passed;
    do {
        passed = now() - begin;
    } while (passed < nanoseconds);
    spent[0] = passed;
    spent[1] = clock64() - cycles;
}
"""
# The timer moves in steps of up to a microsecond: 0.5 % of this [s].
RATE_SECONDS = 200e-6
# Of the reasons that NVML gives, those that slow a device which has work.
SLOWING = (
    *("sw_power_cap", "hw_slowdown", "sw_thermal_slowdown"),
    *("hw_thermal_slowdown", "hw_power_brake_slowdown"),
)


@final
class CudaProbe(Probe):
    """A CUDA device."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._cupy = _optional.cupy()
        with self._here():
            self._spent = self._cupy.zeros(2, np.uint64)
        self.clock_rate()  # compiles the kernel

    def hold(self, seconds: float) -> Event:
        """Queue a kernel of one thread that lasts so long [s]."""
        with self._here():
            arguments = (np.uint64(round(seconds * 1e9)), self._spent)
            _kernel()((1,), (1,), arguments)
        return record(self.device)

    def flush(self) -> None:
        """Queue a write of twice the L2 cache."""
        with self._here():
            if self._buffer is None:
                runtime = self._cupy.cuda.runtime
                known = runtime.getDeviceProperties(self.device.index)
                self._buffer = self._cupy.empty(2 * known["l2CacheSize"], np.uint8)
            self._buffer.data.memset_async(1, self._buffer.nbytes)

    def clock_rate(self) -> float:
        """Count the cycles of a short kernel [Hz]."""
        self.hold(RATE_SECONDS)
        with self._here():
            nanoseconds, cycles = self._spent.tolist()
        return float(cycles / nanoseconds * 1e9)

    def slowed_by(self) -> tuple[str, ...]:
        """Ask NVML, where it is there and permitted."""
        try:
            device = _optional.cuda_core().Device(self.device.index)
            reasons = device.to_system_device().current_clock_event_reasons
        except Exception:  # noqa: BLE001 - each way of refusing has a class of its own
            return ()
        names = [str(getattr(reason, "value", reason)) for reason in reasons]
        return tuple(name for name in names if name in SLOWING)

    def _here(self) -> Any:
        return self._cupy.cuda.Device(self.device.index)


@cache
def _kernel() -> Any:
    return _optional.cupy().RawKernel(HOLD, "xdev_hold")
