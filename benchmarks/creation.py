"""Creation of arrays: what it costs to make and drop one, beside NumPy, CuPy, PyTorch.

The claims. On CUDA ``xdev.empty`` from the pool takes no longer than any peer's, and no
row asks the driver for memory once it runs. On the CPU large arrays come from the pool,
whose pages are there already. NumPy's large ``empty`` and ``zeros`` are promises of the
system, which makes the pages when they are touched, as in the rows that say so. RMM's
row is a buffer of its own pool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import peers
import record

import xdev
from xdev import _optional

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    # By the function's name.
    Calls = dict[str, Callable[[], object]]

PAGE = 4096  # of the host's memory [B]
SIZES = dict.fromkeys(("cpu", "cuda"), (100, 100_000, 1 << 24))  # of float32
FUNCTIONS = ("empty", "zeros", "full", "arange", "empty, touched", "zeros, touched")


def dropped(make: Callable[[], object]) -> Callable[[], None]:
    """Return a call that makes an array whose content is anything, and drops it."""

    def call() -> None:
        make()

    return call


def touched(make: Callable[[], Any]) -> Callable[[], None]:
    """Return a call that makes an array, writes to each page of it, and drops it."""

    def call() -> None:
        make()[:: PAGE // 4] = 1.0

    return call


def of_xdev(n: int, device: xdev.Device) -> Calls:
    """Return xdev's calls."""
    where = {"dtype": xdev.float32, "device": device}
    return {
        "empty": dropped(lambda: xdev.empty(n, **where)),
        "zeros": lambda: xdev.zeros(n, **where),
        "empty, touched": touched(lambda: xdev.empty(n, **where)),
        "zeros, touched": touched(lambda: xdev.zeros(n, **where)),
        "full": lambda: xdev.full(n, 0.5, **where),
        "arange": lambda: xdev.arange(n, **where),
    }


def of_numpy(n: int, library: Any) -> Calls:
    """Return the calls of NumPy or CuPy."""
    kind = np.float32
    return {
        "empty": dropped(lambda: library.empty(n, kind)),
        "zeros": lambda: library.zeros(n, kind),
        "empty, touched": touched(lambda: library.empty(n, kind)),
        "zeros, touched": touched(lambda: library.zeros(n, kind)),
        "full": lambda: library.full(n, 0.5, kind),
        "arange": lambda: library.arange(n, dtype=kind),
    }


def of_torch(n: int, device: xdev.Device) -> Calls:
    """Return PyTorch's calls."""
    import torch

    where = {"dtype": torch.float32, "device": str(device)}
    return {
        "empty": dropped(lambda: torch.empty(n, **where)),
        "zeros": lambda: torch.zeros(n, **where),
        "empty, touched": touched(lambda: torch.empty(n, **where)),
        "zeros, touched": touched(lambda: torch.zeros(n, **where)),
        "full": lambda: torch.full((n,), 0.5, **where),
        "arange": lambda: torch.arange(n, **where),
    }


def of_rmm(n: int) -> Calls:
    """Return RMM's buffer, of a pool that is not the current one of the device."""
    import rmm

    pool = rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), 1 << 30)
    return {"empty": dropped(lambda: rmm.DeviceBuffer(size=4 * n, mr=pool))}


def makers(n: int, device: xdev.Device) -> dict[str, Callable[[], Calls]]:
    """Return what makes each library's calls, the baseline first."""
    library = np if device.type == "cpu" else _optional.cupy()
    found: dict[str, Callable[[], Calls]] = {
        "NumPy" if device.type == "cpu" else "CuPy": lambda: of_numpy(n, library),
        "xdev": lambda: of_xdev(n, device),
        "PyTorch": lambda: of_torch(n, device),
    }
    if device.type == "cuda":
        found["RMM"] = lambda: of_rmm(n)
    return found


def measure(
    device: xdev.Device, sizes: Sequence[int], repeat: int
) -> tuple[list[Any], dict[str, str]]:
    """Measure on one device; return its rows and who was left out."""
    rows: list[dict[str, Any]] = []
    left_out: dict[str, str] = {}
    for n in sizes:
        for function in FUNCTIONS:
            task = {
                name: lambda make=make, function=function: make()[function]
                for name, make in makers(n, device).items()
                if name != "RMM" or function == "empty"  # all that a buffer has
            }
            group = f"{function}, n = {n}, {device.type}"
            found, absent = peers.compared(group, task, repeat=repeat, device=device)
            rows += found
            left_out |= absent
    return rows, left_out


if __name__ == "__main__":
    record.on_devices(measure, SIZES, __doc__ or "")
