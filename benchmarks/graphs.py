"""A chain of 20 ufunc calls: one by one, and as a graph of one launch.

On CUDA a graph that CuPy captures by hand stands beside xdev's. ``host`` rows are the
time until the call returns, the queue being empty at its start; ``device`` rows the
time of a run of calls until the device is done, per call. On the CPU, where a graph
runs the function, there are ``wall`` rows: what the graph adds.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import record

import xdev

if TYPE_CHECKING:
    from collections.abc import Callable

LENGTH = 20  # calls in the chain
SIZES = (1_000, 100_000, 10_000_000)  # elements of float32
EAGER, GRAPH, BY_HAND = "xdev calls", "xdev graph", "CuPy graph by hand"

Calls = dict[str, "Callable[[], Any]"]


@xdev.vectorize
def step(x: Any, y: Any) -> Any:
    """Return what stays between 0 and 2."""
    return 0.5 * x + y * y


def chain(x: Any, y: Any) -> Any:
    """Call the ufunc on its own results."""
    for _ in range(LENGTH):
        x = step(x, y)
    return x


def candidates(n: int, device: str) -> Calls:
    """Return what to time, after a look that all compute the same."""
    rng = np.random.default_rng(0)
    x, y = (xdev.asarray(rng.random(n, np.float32), device=device) for _ in range(2))
    calls: Calls = {EAGER: lambda: chain(x, y), GRAPH: xdev.graph(chain, x, y)}
    if device == "cuda":
        calls[BY_HAND] = by_hand(x, y)
    first = xdev.to_numpy(chain(x, y))
    for name, call in calls.items():
        if not np.array_equal(xdev.to_numpy(call()), first):
            message = f"{name} differs from {EAGER}"
            raise RuntimeError(message)
    return calls


def by_hand(x: Any, y: Any) -> Callable[[], Any]:
    """Return what launches a graph that CuPy captured.

    Its arrays are made before: nothing keeps what is allocated in a capture by CuPy.
    """
    import cupy as cp

    made = [xdev.empty_like(x) for _ in range(2)]

    def work() -> Any:
        last = x
        for number in range(LENGTH):
            last = step(last, y, out=made[number % 2])
        return last

    work()  # compiles
    stream = cp.cuda.Stream(non_blocking=True)
    cp.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        result = work()
        graph = stream.end_capture()

    def launch() -> Any:
        graph.launch()
        return result

    return launch


def host_time(calls: Calls, repeat: int) -> dict[str, list[float]]:
    """Return seconds until a call returns [s]; each starts with an empty queue."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeat):
        for name, call in calls.items():
            xdev.synchronize("cuda")
            start = time.perf_counter()
            call()
            samples[name].append(time.perf_counter() - start)
    return samples


def main() -> None:
    """Run it."""
    options = record.arguments(__doc__ or "").parse_args()
    devices = [str(d.type) for d in xdev.devices() if d.type in {"cpu", "cuda"}]
    rows: list[dict[str, Any]] = []
    for device in dict.fromkeys(devices):
        for n in SIZES:
            calls = candidates(n, device)
            number = max(1, min(200, 2_000_000 // n))
            if device == "cuda":
                measured = {
                    "host": host_time(calls, 300),
                    "device": record.sample(
                        calls, number, 15, lambda: xdev.synchronize("cuda")
                    ),
                }
            else:
                measured = {"wall": record.sample(calls, number, 7)}
            for kind, samples in measured.items():
                rows += rows_of(device, kind, n, samples)
                report(device, kind, n, samples)
    record.write(options.json, rows, length=LENGTH)


def rows_of(
    device: str, kind: str, n: int, samples: dict[str, list[float]]
) -> list[dict[str, Any]]:
    """Return the rows of the record: a table for each device and kind of time."""
    group = f"{kind} time, {device}"
    return [
        {
            "name": f"{group}: {name}",
            "group": group,
            "candidate": name,
            "n": n,
            "samples": seconds,
        }
        for name, seconds in samples.items()
    ]


def report(device: str, kind: str, n: int, samples: dict[str, list[float]]) -> None:
    """Print medians, and how they compare to calls one by one."""
    base = statistics.median(samples[EAGER])
    for name, seconds in samples.items():
        median = statistics.median(seconds)
        print(
            f"{device:5} {kind:6} n={n:<9,} {name:20} {median * 1e6:10.2f} us"
            f"  {base / median:6.2f} x"
        )


if __name__ == "__main__":
    main()
