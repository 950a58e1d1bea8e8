"""How much of the copies ``batches`` hides behind computation, beside PyTorch's loader.

The claim: at least 90 % of the shorter of copy and compute. Hidden is what the loop
takes less than both one after the other: ``(copy + compute - loop) / min(copy,
compute)``. The computation is tuned to take as long as the copies, the hardest case.
On the CPU, where there is nothing to copy, it prints what a batch costs.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import numpy as np
import record

import xdev
from xdev import _optional

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BATCHES = 72  # the first copy, which nothing can hide, is a small part of all
DISTINCT = 8  # arrays that they are: more than any cache holds
FACTOR = 1.0001


def compute(x: Any, count: int) -> None:
    """Multiply in place so many times."""
    for _ in range(count):
        xdev.multiply(x, FACTOR, out=x)


def seconds(call: Callable[[], object], repeat: int, device: xdev.Device) -> float:
    """Return the median time of a call [s]."""
    call()
    runs = record.sample({"": call}, 1, repeat, lambda: xdev.synchronize(device))[""]
    return statistics.median(runs)


def uploads(source: Sequence[Any], device: xdev.Device) -> None:
    """Copy all batches, one after the other."""
    for x in source:
        xdev.to_device(x, device)


def in_turn(source: Sequence[Any], device: xdev.Device, count: int) -> None:
    """Copy a batch, compute, and so on."""
    for x in source:
        compute(xdev.to_device(x, device), count)


def ahead(source: Sequence[Any], device: xdev.Device, count: int) -> None:
    """Compute while the next batches are copied."""
    for x in xdev.batches(source, device):
        compute(x, count)


def tuned(x: Any, goal: float, device: xdev.Device, repeat: int) -> int:
    """Return how many multiplications take so long [s]."""
    one = seconds(lambda: compute(x, 100), repeat, device) / 100
    return max(1, round(goal / one))


def row(name: str, samples: dict[str, list[float]], **extra: Any) -> dict[str, Any]:
    """Print and return what a loop hid; ``samples`` has copy, compute and loop."""
    copy, work, loop = (
        statistics.median(samples[key]) for key in ("copy", "compute", "loop")
    )
    hidden = (copy + work - loop) / min(copy, work)
    print(
        f"{name:36}{copy / BATCHES * 1e3:9.2f}{work / BATCHES * 1e3:9.2f}"
        f"{loop / BATCHES * 1e3:9.2f}{hidden:9.0%}"
    )
    return {"name": name, "hidden": hidden, "samples": samples, **extra}


def cuda_rows(device: xdev.Device, nbytes: int, repeat: int) -> list[dict[str, Any]]:
    """Measure xdev's loops from pageable and pinned memory, then PyTorch's."""
    draw = np.random.default_rng(0)
    arrays = [draw.random(nbytes // 4, np.float32) for _ in range(DISTINCT)]
    print(f"\n{device}: {BATCHES} batches of {nbytes >> 20} MiB, ms a batch")
    print(f"{'':36}{'copy':>9}{'compute':>9}{'loop':>9}{'hidden':>9}")
    rows = []
    for kind, made in (("pageable", arrays), ("pinned", [*map(xdev.pin, arrays)])):
        source = [made[number % DISTINCT] for number in range(BATCHES)]
        there = xdev.to_device(source[0], device)
        copy = seconds(lambda source=source: uploads(source, device), repeat, device)
        count = tuned(there, copy / BATCHES, device, repeat)
        calls: dict[str, Callable[[], object]] = {
            "copy": lambda source=source: uploads(source, device),
            "compute": lambda x=there, n=count: compute(x, n * BATCHES),
            "in turn": lambda source=source, n=count: in_turn(source, device, n),
            "ahead": lambda source=source, n=count: ahead(source, device, n),
        }
        for call in calls.values():
            call()
        samples = record.sample(calls, 1, repeat, lambda: xdev.synchronize(device))
        for name, loop in (("one after the other", "in turn"), ("batches", "ahead")):
            chosen = {key: samples[key] for key in ("copy", "compute")}
            chosen["loop"] = samples[loop]
            rows.append(row(f"xdev {name}, {kind}", chosen, multiplications=count))
    if _optional.installed("torch"):
        rows += torch_rows(device, arrays, repeat)
    else:
        print("left out: PyTorch is not installed")
    return rows


def torch_rows(
    device: xdev.Device, arrays: list[Any], repeat: int
) -> list[dict[str, Any]]:
    """Measure PyTorch's loader with pinned memory, as its documentation has it."""
    torch = _optional.torch()
    tensors = [torch.from_numpy(arrays[n % DISTINCT]) for n in range(BATCHES)]
    where = f"cuda:{device.index}"

    def work(x: Any, count: int) -> None:
        for _ in range(count):
            x.mul_(FACTOR)

    rows = []
    for workers in (0, 2):
        loader = torch.utils.data.DataLoader(
            tensors,
            batch_size=None,
            pin_memory=True,
            num_workers=workers,
            persistent_workers=workers > 0,
        )

        def copies(loader: Any = loader) -> None:
            for x in loader:
                x.to(where, non_blocking=True)

        def loop(count: int, loader: Any = loader) -> None:
            for x in loader:
                work(x.to(where, non_blocking=True), count)

        there = tensors[0].to(where)
        copy = seconds(copies, repeat, device)
        one = seconds(lambda x=there: work(x, 100), repeat, device) / 100
        count = max(1, round(copy / BATCHES / one))
        calls: dict[str, Callable[[], object]] = {
            "copy": copies,
            "compute": lambda x=there, n=count: work(x, n * BATCHES),
            "loop": lambda loop=loop, n=count: loop(n),
        }
        samples = record.sample(calls, 1, repeat, lambda: xdev.synchronize(device))
        name = f"PyTorch, pinned, {workers} workers"
        rows.append(row(name, samples, multiplications=count))
    return rows


def cpu_rows(repeat: int) -> list[dict[str, Any]]:
    """Measure what a batch costs where there is nothing to copy."""
    source = [(np.zeros(3), np.zeros(3)) for _ in range(1000)]

    def loop(batches: Any) -> None:
        for _ in batches:
            pass

    calls: dict[str, Callable[[], object]] = {
        "a plain loop": lambda: loop(source),
        "batches": lambda: loop(xdev.batches(source, "cpu")),
    }
    for call in calls.values():
        call()
    samples = record.sample(calls, 3, repeat)
    print(f"cpu: {len(source)} batches of two arrays, us a batch")
    for name, runs in samples.items():
        print(f"{name:36}{statistics.median(runs) / len(source) * 1e6:9.2f}")
    return [{"name": f"cpu {name}", "samples": runs} for name, runs in samples.items()]


def main() -> None:
    """Measure on the CPU, and on CUDA where it is."""
    parser = record.arguments(__doc__ or "")
    parser.add_argument("--repeat", type=int, default=7, help="(default: 7)")
    parser.add_argument("--mib", type=int, default=64, help="of a batch (default: 64)")
    options = parser.parse_args()
    rows = cpu_rows(options.repeat)
    cuda = xdev.Device("cuda")
    if cuda.available:
        rows += cuda_rows(cuda.require(), options.mib << 20, options.repeat)
    else:
        print(f"\nleft out: {cuda} ({cuda.reason})")
    record.write(options.json, rows, claim="90 % of the shorter of copy and compute")


if __name__ == "__main__":
    main()
