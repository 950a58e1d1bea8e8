"""How the time of ten functions grows with the array, from 1 element to 2^28 float32.

The limit that is drawn in is a copy of the array, whose bytes nothing can do without
moving. Small sizes show what a call costs; where a line meets the limit, the memory is
what it waits for. A function stops growing where a call takes longer than 0.3 s. Times
are wall times: to the end of the work of a run of calls, on the default stream.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import record

import xdev
from xdev import memory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SIZES = {device: [4**power for power in range(15)] for device in ("cpu", "cuda")}
LONG = 0.3  # of a call, beyond which larger arrays are left out [s]
RUN = 0.005  # of a run of calls, about [s]
CALLS = 200  # of a run, at most


def functions(n: int, device: xdev.Device) -> dict[str, Callable[[], object]]:
    """Return the calls, on arrays of n elements."""
    rng = xdev.random.default_rng(0, device=device)
    x, y = (rng.random(n, dtype=xdev.float32) for _ in range(2))
    above, places = x > 0.5, rng.integers(0, n, n)
    return {
        "a copy (the limit)": lambda: xdev.asarray(x, copy=True),
        "add": lambda: xdev.add(x, y),
        "sin": lambda: xdev.sin(x),
        "where": lambda: xdev.where(above, x, y),
        "sum": lambda: xdev.sum(x),
        "var": lambda: xdev.var(x),
        "argmax": lambda: xdev.argmax(x),
        "cumulative_sum": lambda: xdev.cumulative_sum(x),
        "sort": lambda: xdev.sort(x),
        "take": lambda: xdev.take(x, places),
        "nonzero": lambda: xdev.nonzero(above),
    }


def measure(
    device: xdev.Device, sizes: Sequence[int], repeat: int
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Time the functions at each size; return the rows and what was left out."""
    rows: list[dict[str, Any]] = []
    left_out: dict[str, str] = {}

    def finish() -> None:
        xdev.synchronize(device)

    for n in sizes:
        for name, call in functions(n, device).items():
            if name in left_out:
                continue
            call()  # may compile
            finish()
            start = time.perf_counter()
            call()
            finish()
            once = time.perf_counter() - start
            if once > LONG:
                left_out[name] = f"longer than {LONG:g} s from {n} elements on"
            number = max(1, min(CALLS, int(RUN / once)))
            samples = record.sample({name: call}, number, repeat, finish)[name]
            group = f"ten functions, float32, {device.type}"
            rows.append({"group": group, "candidate": name, "n": n, "samples": samples})
            print(f"{device} {n:>10} {name:20} {min(samples):.3g} s", flush=True)
        memory.reclaim()
    return rows, left_out


if __name__ == "__main__":
    record.on_devices(measure, SIZES, __doc__ or "")
