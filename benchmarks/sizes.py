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

import xdev
from xdev.timing import sweep

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = {"cpu": [10**power for power in range(1, 8)], "cuda": [10**p for p in range(9)]}


def measure(
    device: xdev.Device, sizes: list[int], repeat: int
) -> tuple[list[Any], dict[str, Any]]:
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
    for name, reason in left_out.items():
        print(f"left out: {name} ({reason})")
    rows = [
        row
        for n, each in zip(found.sizes, found.comparisons, strict=True)
        for row in record.rows(each, group, n=n)
    ]
    return rows, left_out


def main() -> None:
    """Sweep the CPU, and CUDA where it is."""
    parser = record.arguments(__doc__ or "")
    parser.add_argument("--repeat", type=int, default=7, help="(default: 7)")
    parser.add_argument("--sizes", type=int, nargs="+", help="instead of the usual")
    options = parser.parse_args()
    rows, left_out = [], {}
    for device in map(xdev.Device, ("cpu", "cuda")):
        if not device.available:
            left_out[str(device)] = device.reason
            continue
        sizes = options.sizes or SIZES[device.type]
        found, left_out[str(device)] = measure(device, sizes, options.repeat)
        rows += found
    record.write(options.json, rows, left_out=left_out)


if __name__ == "__main__":
    main()
