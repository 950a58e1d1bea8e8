"""Copies between the host and a CUDA device, beside the bus itself, CuPy and PyTorch.

    python benchmarks/transfers.py [--json FILE] [--largest 1024] [--repeat 7]

The bus is a raw ``cudaMemcpyAsync`` from or to pinned memory, of the same run. CuPy
allocates through xdev's pools here, as in any program that uses both. ``out=`` rows
write into a buffer that is there; the others return a new array each time. A table of
all ratios by size comes last. Without CUDA the rows are what a call costs that has
nothing to move.
"""

import importlib.util
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import record

import xdev

Calls = dict[str, Callable[[], object]]
KIB, MIB = 1 << 10, 1 << 20
SIZES = tuple(mib * MIB >> 4 for mib in (1, 4, 16, 64, 256, 1024, 4096, 16384))
ENOUGH = 256 * MIB  # to copy in one run of small sizes [B]
BUS, PINNED = "raw cudaMemcpyAsync, pinned", "xdev, pinned"
XDEV, CUPY, TORCH = "xdev, pageable", "CuPy, pageable", "PyTorch, pageable"
TORCH_PINNED = "PyTorch, pinned"
INTO, CUPY_INTO = "xdev, pageable, out=", "CuPy, pageable, out="
# What does the same.
WAYS = {
    "pinned": (BUS, PINNED, TORCH_PINNED),
    "pageable": (XDEV, CUPY, TORCH, INTO, CUPY_INTO),
}
#: What is compared: (row, with which other row).
RATIOS = (
    (PINNED, BUS),
    (PINNED, TORCH_PINNED),
    (XDEV, CUPY),
    (XDEV, TORCH),
    (INTO, CUPY_INTO),
    (XDEV, BUS),
)


def uploads(n: int) -> Calls:
    """Return the ways of ``n`` float32 to the device; each returns what came there."""
    import cupy as cp

    x = np.random.default_rng(0).random(n, np.float32)
    pinned, there = xdev.pin(x), cp.empty(n, np.float32)
    runtime, stream = cp.cuda.runtime, cp.cuda.get_current_stream

    def bus() -> object:
        runtime.memcpyAsync(
            there.data.ptr,
            pinned.ctypes.data,
            x.nbytes,
            runtime.memcpyHostToDevice,
            stream().ptr,
        )
        return there

    calls: Calls = {
        BUS: bus,
        PINNED: lambda: xdev.to_device(pinned, "cuda", non_blocking=True),
        XDEV: lambda: xdev.to_device(x, "cuda"),
        CUPY: lambda: cp.asarray(x),
    }
    if importlib.util.find_spec("torch"):
        import torch

        tensor, locked = torch.from_numpy(x), torch.from_numpy(x).pin_memory()
        calls[TORCH] = lambda: tensor.to("cuda")
        calls[TORCH_PINNED] = lambda: locked.to("cuda", non_blocking=True)
    return calls


def downloads(n: int) -> Calls:
    """Return the ways of ``n`` float32 to the host; each returns what came there."""
    import cupy as cp

    x = cp.random.default_rng(0).random(n, np.float32)
    pinned, theirs = xdev.empty_pinned(n, np.float32), np.empty(n, np.float32)
    ours = np.empty(n, np.float32)
    runtime, stream = cp.cuda.runtime, cp.cuda.get_current_stream

    def bus() -> object:
        runtime.memcpyAsync(
            pinned.ctypes.data,
            x.data.ptr,
            x.nbytes,
            runtime.memcpyDeviceToHost,
            stream().ptr,
        )
        return pinned

    calls: Calls = {
        BUS: bus,
        PINNED: lambda: xdev.to_numpy(x, out=pinned, non_blocking=True),
        XDEV: lambda: xdev.to_numpy(x),
        CUPY: lambda: cp.asnumpy(x),
        INTO: lambda: xdev.to_numpy(x, out=ours),
        CUPY_INTO: lambda: x.get(out=theirs),
    }
    if importlib.util.find_spec("torch"):
        import torch

        tensor = torch.as_tensor(x, device="cuda")
        calls[TORCH] = lambda: tensor.to("cpu")
    return calls


def agree(calls: Calls) -> None:
    """Call each once, and raise if one brought other values than the first."""
    expected = None
    for name, call in calls.items():
        made: Any = call()
        xdev.synchronize("cuda")
        values = np.asarray(xdev.to_numpy(made))
        expected = values.copy() if expected is None else expected
        if not np.array_equal(values, expected):
            message = f"{name} brought other values than {next(iter(calls))}"
            raise AssertionError(message)


def measure(direction: str, calls: Calls, nbytes: int, repeat: int) -> dict[str, Any]:
    """Time the ways of one size, print them, and return the rows and the ratios."""
    agree(calls)
    number = max(1, min(200, ENOUGH // nbytes))
    samples = record.sample(calls, number, repeat, lambda: xdev.synchronize("cuda"))
    speeds = {name: nbytes / median(times) / 1e9 for name, times in samples.items()}
    print(f"\n{direction}, {nbytes / MIB:,g} MiB")
    for name, speed in speeds.items():
        print(f"{name:30}{speed:9.2f} GB/s")
    ratios = {
        f"{one} / {other}": speeds[one] / speeds[other]
        for one, other in RATIOS
        if one in speeds and other in speeds
    }
    for name, ratio in ratios.items():
        print(f"{name:60}{ratio:7.2f} x")
    rows = [
        {
            "name": name,
            "task": f"{direction}, {way}, {nbytes // KIB:,} KiB",
            "nbytes": nbytes,
            "samples": times,
        }
        for way, names in WAYS.items()
        for name, times in samples.items()
        if name in names
    ]
    return {"rows": rows, "ratios": {f"{direction}, {nbytes // KIB} KiB": ratios}}


def on_cuda(largest: int, repeat: int) -> dict[str, Any]:
    """Go through all sizes in both directions."""
    found: dict[str, Any] = {"rows": [], "ratios": {}}
    for nbytes in SIZES:
        if nbytes > largest:
            continue
        for direction, ways in (("up", uploads), ("down", downloads)):
            made = measure(direction, ways(nbytes // 4), nbytes, repeat)
            found["rows"] += made["rows"]
            found["ratios"] |= made["ratios"]
    return found


def table(ratios: dict[str, dict[str, float]]) -> None:
    """Print the ratios of all sizes, a line each."""
    for direction in ("up", "down"):
        print(f"\n{direction}: times as fast, by KiB")
        chosen = {
            int(key.split()[1]): found
            for key, found in ratios.items()
            if key.startswith(f"{direction},")
        }
        print(" " * 52 + "".join(f"{size:>9,d}" for size in chosen))
        for one, other in RATIOS:
            name = f"{one} / {other}"
            cells = [f"{at[name]:9.2f}" for at in chosen.values() if name in at]
            if cells:
                print(f"{name:52}" + "".join(cells))


def on_the_host(repeat: int) -> dict[str, Any]:
    """Time the calls that have nothing to move, and a copy within the host."""
    found: dict[str, Any] = {"rows": [], "ratios": {}}
    x, large = np.ones(1000, np.float32), np.ones(16 * MIB // 4, np.float32)
    groups: dict[str, tuple[int, Calls]] = {
        "there already": (
            20_000,
            {
                "NumPy asarray(x)": lambda: np.asarray(x),
                "xdev asarray(x)": lambda: xdev.asarray(x, device="cpu"),
                "xdev to_numpy(x)": lambda: xdev.to_numpy(x),
                "xdev to_device(x, 'cpu')": lambda: xdev.to_device(x, "cpu"),
            },
        ),
        "a copy of 16 MiB": (
            5,
            {
                "NumPy array(x)": lambda: np.array(large),
                "xdev to_device(x, copy=True)": lambda: xdev.to_device(
                    large, "cpu", copy=True
                ),
            },
        ),
    }
    for title, (number, calls) in groups.items():
        for call in calls.values():
            call()
        samples = record.sample(calls, number, repeat)
        print(f"\n{title}")
        base, *_ = (median(times) for times in samples.values())
        for name, times in samples.items():
            seconds = median(times)
            print(f"{name:30}{seconds * 1e9:14,.0f} ns{seconds / base:8.2f} x")
            found["rows"].append({"name": name, "task": title, "samples": times})
            found["ratios"][name] = seconds / base
    return found


def main() -> None:
    """Measure what this machine has, print it, and write the JSON if asked."""
    parser = record.arguments(__doc__.partition("\n")[0])
    parser.add_argument("--largest", type=int, default=1024, help="size [MiB]")
    parser.add_argument("--repeat", type=int, default=7, help="samples of each row")
    options = parser.parse_args()
    reason = xdev.Device("cuda").reason
    if reason is not None:
        print(f"left out, all between two devices: {reason}")
        found = on_the_host(options.repeat)
        record.write(options.json, found.pop("rows"), left_out=reason, **found)
        return
    xdev.Device("cuda").require()
    largest = options.largest * MIB
    found = on_cuda(largest, options.repeat)
    table(found["ratios"])
    record.write(options.json, found.pop("rows"), **found)


if __name__ == "__main__":
    main()
