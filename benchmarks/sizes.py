"""``x + y`` of float32 from 10 elements to what fills the memory bus, beside all peers.

Each writes into an array that is there but JAX, which has no such thing. Small sizes
show what a call costs, large ones the bandwidth, and the lines cross where one library
overtakes another. Times are wall times: to the end of the work of a run of calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import peers
import record

from xdev.timing import sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import xdev

SIZES = {"cpu": [10**power for power in range(1, 8)], "cuda": [10**p for p in range(9)]}


def measure(
    device: xdev.Device, sizes: Sequence[int], repeat: int
) -> tuple[list[Any], dict[str, str]]:
    """Sweep one device; return its rows and who was left out."""
    left_out: dict[str, str] = {}

    def calls(n: int) -> dict[str, Callable[[], object]]:
        x, y = np.random.default_rng(0).random((2, n), np.float32)
        found, absent = peers.made(peers.ADD[device.type], x, y, device)
        left_out.update(absent)
        return found

    group = f"x + y, float32, {device.type}"
    found = sweep(calls, sizes, repeat=repeat, device=device, nbytes=lambda n: 12 * n)
    print(f"\n{group}\n{found}")
    rows = [
        row
        for n, each in zip(found.sizes, found.comparisons, strict=True)
        for row in record.rows(each, group, n=n)
    ]
    return rows, left_out


if __name__ == "__main__":
    record.on_devices(measure, SIZES, __doc__ or "")
