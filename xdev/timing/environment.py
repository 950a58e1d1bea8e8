"""Where a measurement is made: what a record says of it, and what a device tells."""

from __future__ import annotations

import platform
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _config, _optional
from xdev.device import Device, current_stream, registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.device import Event

# Libraries, and the distributions that bring them: CUDA's have one for each major.
LIBRARIES = {
    **{name: (name.replace("-", "_"),) for name in ("numpy", "numba", "numba-cuda")},
    "cupy": ("cupy_cuda13x", "cupy_cuda12x", "cupy"),
    "cuda-core": ("cuda_core",),
    "array-api-compat": ("array_api_compat",),
    **{name: (name,) for name in ("dask", "numexpr", "torch", "jax")},
    "warp": ("warp_lang",),
    "rmm": ("rmm_cu13", "rmm_cu12"),
}


def versions() -> dict[str, str | None]:
    """Return the version of Python and of each library, None where it is absent.

    Reads the installed packages' records; imports none of them.
    """
    installed = _optional.distributions()
    own = {"python": platform.python_version(), "xdev": sys.modules["xdev"].__version__}
    for library, names in LIBRARIES.items():
        own[library] = next(filter(None, map(installed.get, names)), None)
    return own


def cuda_name(index: int = 0) -> str | None:
    """Return a CUDA device's name, as in ``"NVIDIA H200"``.

    None without a device, and where this process has not loaded CuPy: a record of
    a run on the CPU is not worth the seconds that a driver takes to start.
    """
    if sys.modules.get("cupy") is None:
        return None
    runtime = _optional.cupy().cuda.runtime
    with suppress(RuntimeError):  # CUDARuntimeError: no driver, no device
        return str(runtime.getDeviceProperties(index)["name"].decode())
    return None


def device_name(device: Device) -> str:
    """Return what a record calls a device: its product's name, where it has one."""
    name = cuda_name(device.index) if device.type == "cuda" else None
    return name or str(device)


def processor_name() -> str:
    """Return the processor's model name, or its architecture where none is known."""
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def environment() -> dict[str, Any]:
    """Return what a reader of the record must know to judge its numbers."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "platform": platform.platform(),
        "processor": processor_name(),
        "cores": _config.processors(),
        "cuda": cuda_name(),
        "program": "/".join(Path(sys.argv[0]).parts[-2:]),
    }


def record(device: Device) -> Event:
    """Record an event on the current stream of a device, current or not."""
    with registry.backend(device.type).use(device.index):
        return current_stream(device).record()


# One thread reads the timer until the time is over.
HOLD = """
__device__ unsigned long long now() {
    unsigned long long nanoseconds;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
    return nanoseconds;
}

extern "C" __global__ void xdev_hold(unsigned long long nanoseconds) {
    const unsigned long long begin = now();
    while (now() - begin < nanoseconds) { }
}
"""


def hold(device: Device, seconds: float) -> Event | None:
    """Keep the current stream of a device busy so long [s]; the host goes on.

    Return an event that is done when the time is over; None where a stream cannot be
    held.
    """
    if device.type not in HOLDS:
        return None
    HOLDS[device.type](device, seconds)
    return record(device)


def _hold_cuda(device: Device, seconds: float) -> None:
    cupy = _optional.cupy()
    kernel = cupy.RawKernel(HOLD, "xdev_hold")  # CuPy compiles it once a process
    with cupy.cuda.Device(device.index):
        kernel((1,), (1,), (np.uint64(round(seconds * 1e9)),))


#: By the type of a device: what queues nothing but a wait of so many seconds.
HOLDS: dict[str, Callable[[Device, float], None]] = {"cuda": _hold_cuda}
